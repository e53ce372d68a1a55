"""Lines of the catalogue that need a connection, a key or a service of their own."""

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from ingest.refusals import MARKER, MIB, assert_refused

from gapwatch.accounts import make_key
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database
from parts import Project, Service, episode, make_project, reachable, start_service, wait_until

CLOSED_WITHIN_S = 17.5


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Iterator[Service]:
    """A service whose servers may be stopped, with two web processes that race for the same rows."""
    service = start_service(reachable(tmp_path_factory.mktemp("connections")) / "data", GAPWATCH_WEB_PROCESSES="2")
    yield service
    service.stop()


@pytest.fixture
def own_project(own: Service) -> Iterator[Project]:
    database = Database(own.database_url)
    yield make_project(own, database)
    database.close()


def quarantined(project: Project) -> int:
    return project.value("SELECT count(*) FROM rejected_records WHERE project_id = :p")


def connect(project: Project) -> socket.socket:
    address = urlsplit(project.url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def head(project: Project, *headers: str, path: str = "/api/v1/episodes") -> bytes:
    given = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {project.keys['ingest']}",
        "Content-Type: application/json",
        *headers,
    ]
    return "\r\n".join([*given, "", ""]).encode()


def request(project: Project, body: bytes) -> bytes:
    return head(project, f"Content-Length: {len(body)}") + body


def body_of(**fields) -> bytes:
    return json.dumps(episode(**({"provenance": {"note": MARKER}} | fields))).encode()


def answer_on(connection: socket.socket) -> httpx.Response | None:
    """The answer that comes on a connection; None when it is closed without one."""
    response = http.client.HTTPResponse(connection, method="POST")
    try:
        response.begin()
        return httpx.Response(response.status, headers=response.getheaders(), content=response.read())
    except (http.client.BadStatusLine, ConnectionError):
        return None


def is_closed(connection: socket.socket, within_s: float = 5.0) -> bool:
    """Whether the other side closes, reading away what may still come."""
    connection.settimeout(within_s)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def goes_on(project: Project) -> None:
    """The service still takes episodes, and promptly."""
    started = time.monotonic()
    with project.client() as client:
        assert client.post("/episodes", json=episode()).status_code == 201
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("path", "length"),
    [("/api/v1/episodes", MIB + 1), ("/api/v1/episodes/batch", 20 * MIB + 1), ("/api/v1/episodes", 10**18)],
)
def test_a_declared_length_over_the_limit_is_refused_before_the_body_is_sent(project, path, length):
    with connect(project) as connection:
        connection.sendall(head(project, f"Content-Length: {length}", path=path))
        answer = answer_on(connection)
        assert answer is not None
        assert_refused(answer, 413, "body-too-large")
        assert is_closed(connection)
    assert project.stored() == quarantined(project) == 0


@pytest.mark.parametrize(("path", "limit"), [("/api/v1/episodes", MIB), ("/api/v1/episodes/batch", 20 * MIB)])
def test_chunks_beyond_the_limit_are_refused_while_they_come(project, path, limit):
    """The sender would go on to 200 MiB; it is answered soon after the limit, and cut off if it does not stop."""
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    sent = 0
    with connect(project) as connection:
        connection.sendall(head(project, "Transfer-Encoding: chunked", path=path))
        # A send may fail before the answer is looked for; what came before is still to be read.
        with contextlib.suppress(ConnectionError):
            while sent < 200 * MIB and not select.select([connection], [], [], 0)[0]:
                connection.sendall(chunk)
                sent += 65536
        answer = answer_on(connection)
        assert answer is not None, f"closed without an answer after {sent} bytes"
        assert_refused(answer, 413, "body-too-large")
        # What the kernel's buffers hold was sent but not read.
        assert sent < limit + 16 * MIB
        assert is_closed(connection)
    assert project.stored() == quarantined(project) == 0


def trickle(connection: socket.socket, parts: bytes | list[bytes]) -> None:
    """One part or byte a second, until all are sent or something comes back."""
    for part in [bytes([byte]) for byte in parts] if isinstance(parts, bytes) else parts:
        connection.sendall(part)
        if select.select([connection], [], [], 1)[0]:
            return


def start_of(project: Project) -> bytes:
    return head(project, f"Content-Length: {len(body_of())}")


def too_little_body(connection, project):
    body = body_of()
    connection.sendall(head(project, f"Content-Length: {len(body) + 1}") + body)


def no_body(connection, project):
    connection.sendall(start_of(project))


def slow_body(connection, project):
    connection.sendall(start_of(project))
    trickle(connection, body_of())


def slow_body_of_a_batch(connection, project):
    connection.sendall(head(project, "Content-Length: 10000", path="/api/v1/episodes/batch"))
    trickle(connection, b"[" + body_of() * 10)


def slow_chunks(connection, project):
    connection.sendall(head(project, "Transfer-Encoding: chunked"))
    trickle(connection, [b"1\r\n \r\n"] * 60)


def slow_headers(connection, project):
    trickle(connection, start_of(project))


def endless_headers(connection, _):
    connection.sendall(b"POST /api/v1/episodes HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    trickle(connection, [b"X-Header: a\r\n"] * 60)


def half_a_request_line(connection, _):
    connection.sendall(b"POST /api/v1/epi")


def nothing(*_):
    pass


def slow_headers_of_a_second_request(connection, project):
    connection.sendall(request(project, body_of()))
    answer = answer_on(connection)
    assert answer is not None
    assert answer.status_code == 201
    trickle(connection, start_of(project))


SLOW_BODIES = (too_little_body, no_body, slow_body, slow_body_of_a_batch, slow_chunks)
SLOW_HEADS = (slow_headers, endless_headers, half_a_request_line, nothing, slow_headers_of_a_second_request)


def test_slow_requests_are_ended_after_fifteen_seconds_and_hold_up_nobody(project):
    def run(slow: Callable) -> tuple[float, httpx.Response | None]:
        with connect(project) as connection:
            started = time.monotonic()
            with contextlib.suppress(ConnectionError):
                slow(connection, project)
            answer = answer_on(connection)
            assert is_closed(connection), slow.__name__
            return time.monotonic() - started, answer

    with ThreadPoolExecutor(10) as threads:
        running = {slow: threads.submit(run, slow) for slow in (*SLOW_BODIES, *SLOW_HEADS)}
        for _ in range(10):
            time.sleep(1)
            goes_on(project)
        found = {slow: future.result() for slow, future in running.items()}
    seconds = {slow.__name__: round(took, 1) for slow, (took, _) in found.items()}
    assert min(seconds.values()) > 10, seconds
    assert max(seconds.values()) < CLOSED_WITHIN_S, seconds
    for slow, (_, answer) in found.items():
        # A head that does not come is no request yet, so its connection may be closed without a word.
        if answer is not None or slow in SLOW_BODIES:
            assert answer is not None, slow.__name__
            assert_refused(answer, 408, "request-timeout")
    assert project.stored() == 10 + 1
    assert quarantined(project) == 0


@pytest.mark.parametrize("rudely", [False, True], ids=["closing", "resetting"])
def test_a_client_that_goes_away_in_the_middle_of_its_body_leaves_no_trace(service, project, rudely):
    body = body_of()
    before = len(service.log)
    for share in (0, len(body) // 2, len(body) - 1):
        for length in (f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"):
            with connect(project) as connection:
                part = body[:share]
                sent = part if "Length" in length else b"%x\r\n%s\r\n" % (share, part) if share else b""
                connection.sendall(head(project, length) + sent)
                time.sleep(0.05)
                if rudely:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    goes_on(project)
    time.sleep(0.5)
    assert project.stored() == 1
    assert quarantined(project) == 0
    new = service.log[before:]
    assert "Traceback" not in new
    assert "unexpected" not in new
    assert MARKER not in new


def test_a_client_that_goes_away_after_its_body_can_ask_again(project):
    bodies = [body_of() for _ in range(20)]
    for number, body in enumerate(bodies):
        with connect(project) as connection:
            connection.sendall(request(project, body))
            time.sleep(0.001 * (number % 5))
            if number % 2:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with project.client() as client:
        for body in bodies:
            answer = client.post("/episodes", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code in {200, 201}
            assert answer.json()["status"] == {200: "duplicate", 201: "accepted"}[answer.status_code]
    assert project.stored() == 20
    assert quarantined(project) == 0


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: {n}", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: {n}"],
        ["Transfer-Encoding: chunked", "Content-Length: 0"],
        ["Transfer-Encoding: chunked, identity", "Content-Length: {n}"],
        ["Transfer-Encoding: xchunked", "Content-Length: {n}"],
        ["Transfer-Encoding: gzip", "Content-Length: {n}"],
        ["Content-Length: {n}", "Content-Length: 0"],
        ["Content-Length: 0", "Content-Length: {n}"],
        ["Content-Length: {n}, 0"],
        ["Content-Length: -1"],
        ["Content-Length: +{n}"],
        ["Content-Length: 0x10"],
        ["Content-Length: 1 0"],
        ["Content-Length:"],
        ["Content-Length: 99999999999999999999999999"],
        ["Content-Length : {n}"],
    ],
    ids=str,
)
def test_a_request_whose_length_is_ambiguous_is_refused_and_what_follows_it_is_not_read(project, headers):
    body = body_of()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    sent = chunked if "chunked" in str(headers) else body
    hidden = request(project, body_of())
    with connect(project) as connection:
        connection.sendall(head(project, *(header.format(n=len(sent)) for header in headers)) + sent + hidden)
        answer = answer_on(connection)
        assert answer is not None
        assert_refused(answer, 400)
        assert is_closed(connection)
    assert project.stored() == quarantined(project) == 0


@pytest.mark.parametrize("size", [65 * 1024, MIB], ids=["65 KiB", "1 MiB"])
def test_a_head_of_more_than_64_kib_is_refused(project, size):
    body = body_of()
    length = f"Content-Length: {len(body)}"
    many = [f"X-{number}: {'a' * 100}" for number in range(size // 100)]
    for words, status, sent in (
        ("one header", 431, head(project, f"X-Large: {'a' * size}", length) + body),
        ("many headers", 431, head(project, *many, length) + body),
        ("a header's name", 431, head(project, f"X-{'a' * size}: a", length) + body),
        ("a header without end", 431, head(project, f"X-Large: {'a' * size}").rstrip()),
        ("the address", 414, head(project, length, path=f"/api/v1/episodes?{'a' * size}") + body),
        ("an address without end", 414, f"POST /{'a' * size}".encode()),
    ):
        with connect(project) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(sent)
            answer = answer_on(connection)
            assert answer is not None, words
            assert_refused(answer, status, secrets=(MARKER, "aaaa"))
            assert is_closed(connection), words
    assert project.stored() == quarantined(project) == 0


def test_a_head_of_ordinary_size_is_not_refused(project):
    with project.client() as client:
        answer = client.post("/episodes", json=episode(), headers={"X-Trace": "a" * 8000})
        assert answer.status_code == 201


def at_once(count: int, do: Callable[[int], httpx.Response]) -> list[httpx.Response]:
    barrier = threading.Barrier(count)

    def run(number: int) -> httpx.Response:
        barrier.wait()
        return do(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


def test_fifty_equal_posts_at_once_store_one_episode(own_project):
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    with own_project.client(limits=limits) as client:
        # Names that are new as well: the race is for the registry too.
        new = uuid.uuid4().hex
        record = episode(
            task=f"task-{new}",
            deployment=f"deployment-{new}",
            robot=f"robot-{new}",
            conditions={"a": new},
            signals={f"s-{new}": 1.0},
            contract={"a": new},
        )
        answers = at_once(50, lambda _: client.post("/episodes", json=record))
        assert sorted(answer.status_code for answer in answers) == [200] * 49 + [201]
        assert own_project.stored() == 1

        other = episode()
        answers = at_once(50, lambda _: client.post("/episodes/batch", json=[other]))
        assert {answer.status_code for answer in answers} == {200}
        assert sum(answer.json()["accepted"] for answer in answers) == 1
        assert sum(answer.json()["duplicates"] for answer in answers) == 49
        assert own_project.stored() == 2

        third = episode()
        answers = at_once(50, lambda number: client.post("/episodes", json=third | {"reward": float(number)}))
        assert sorted(answer.status_code for answer in answers) == [201] + [409] * 49
        assert own_project.stored() == 3


def test_the_same_id_in_two_projects_is_two_episodes(service, service_database, project):
    other = make_project(service, service_database)
    record = episode()
    for one in (project, other):
        with one.client() as client:
            assert client.post("/episodes", json=record).status_code == 201
    with other.client() as client:
        changed = client.post("/episodes", json=record | {"outcome": "failure"})
        assert_refused(changed, 409, "episode-conflict")
    assert project.stored() == other.stored() == 1


def test_the_key_decides_the_project_whatever_the_body_says(service, service_database, project):
    other = make_project(service, service_database)
    with project.client() as client:
        for name, value in (("project", other.slug), ("project_id", other.id), ("tenant", other.slug)):
            answer = client.post("/episodes", json=episode(**{name: value}))
            assert_refused(answer, 422, "unknown-field", secrets=(other.slug,))
            batch = client.post("/episodes/batch", json=[episode(**{name: value})])
            assert_refused(batch, 422, "unknown-field", secrets=(other.slug,))
        for path in (f"/projects/{other.slug}/episodes", f"/{other.slug}/episodes"):
            assert_refused(client.post(path, json=episode()), 404, secrets=(other.slug,))
    assert project.stored() == other.stored() == quarantined(other) == 0


def test_every_key_that_is_not_valid_gets_the_same_answer(service, project):
    def key(**options) -> str:
        secret = Settings(data_dir=service.data_dir).server_secret()
        return make_key(project.database, secret, project=project.slug, scope="ingest", name="test", **options)

    def post(*headers: tuple[str, str]) -> httpx.Response:
        return httpx.post(f"{service.url}/api/v1/episodes", json=episode(), headers=list(headers))

    good, expired = key(), key(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    expiring = key(expires_at=datetime.now(UTC) + timedelta(seconds=1))
    assert post(("Authorization", f"Bearer {good}")).status_code == 201
    assert post(("Authorization", f"Bearer {expiring}")).status_code == 201
    with project.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE api_keys SET revoked_at = now() WHERE prefix = %s", (good[:11],))
    time.sleep(1)
    answers = {
        "none": post(),
        "empty": post(("Authorization", "")),
        "no secret": post(("Authorization", "Bearer")),
        "unknown": post(("Authorization", f"Bearer gw_{'x' * 43}")),
        "right prefix, wrong rest": post(("Authorization", f"Bearer {good[:11]}{'x' * 32}")),
        "one letter more": post(("Authorization", f"Bearer {good}x")),
        "other scheme": post(("Authorization", f"Basic {good}")),
        "no scheme": post(("Authorization", good)),
        "revoked": post(("Authorization", f"Bearer {good}")),
        "expired": post(("Authorization", f"Bearer {expired}")),
        "expired meanwhile": post(("Authorization", f"Bearer {expiring}")),
    }
    bodies = set()
    for answer in answers.values():
        body = assert_refused(answer, 401, "unauthorized", secrets=(good[4:], expired[4:], expiring[4:]))
        assert answer.headers["www-authenticate"] == "Bearer"
        bodies.add(json.dumps(body | {"instance": ""}))
    assert len(bodies) == 1
    assert project.stored() == 2


def test_a_key_of_another_scope_is_refused(project):
    for path, body in (("/episodes", episode()), ("/episodes/batch", [episode()])):
        with project.client("read") as client:
            assert_refused(client.post(path, json=body), 403, "forbidden")
    with project.client("ingest") as client:
        assert_refused(client.get("/episodes"), 403, "forbidden")
    assert project.stored() == 0
    with project.client("admin") as client:
        assert client.post("/episodes", json=episode()).status_code == 201
        assert client.get("/episodes").status_code == 200


def test_a_key_in_the_address_is_not_taken_and_not_logged(service, project):
    key = project.keys["ingest"]
    ids = []
    for name in ("key", "api_key", "token", "access_token", "authorization"):
        ids.append(f"query-{uuid.uuid4().hex}")
        answer = httpx.post(
            f"{service.url}/api/v1/episodes?{name}={key}", json=episode(), headers={"X-Request-Id": ids[-1]}
        )
        assert_refused(answer, 401, "unauthorized", secrets=(key,))
    assert project.stored() == 0
    wait_until(lambda: all(one in service.log for one in ids), what="the log lines")
    assert key not in service.log
    assert key[:20] not in service.log


def test_a_header_that_is_no_key_is_refused(service, project):
    good = f"Bearer {project.keys['ingest']}".encode()
    for words, headers in (
        ("10 kB", [(b"Authorization", b"Bearer gw_" + b"x" * 10_000)]),
        ("the good one and 10 kB", [(b"Authorization", good + b"x" * 10_000)]),
        ("UTF-8", [(b"Authorization", "Bearer gw_schlüssel".encode())]),
        ("Latin-1", [(b"Authorization", "Bearer gw_schlüssel".encode("latin-1"))]),
        ("the good one and a letter beyond ASCII", [(b"Authorization", good + b"\xe9")]),
        ("two, equal", [(b"Authorization", good), (b"Authorization", good)]),
        ("two, one wrong", [(b"Authorization", good), (b"Authorization", b"Bearer gw_x")]),
        ("two in one", [(b"Authorization", good + b", " + good)]),
    ):
        answer = httpx.post(f"{service.url}/api/v1/episodes", json=episode(), headers=headers)
        assert answer.status_code in {400, 401}, words
        assert_refused(answer, answer.status_code, secrets=("xxxx", "schl", project.keys["ingest"]))
    assert project.stored() == 0


@pytest.fixture
def limited(tmp_path) -> Iterator[Service]:
    """A service that takes five episodes a second from each key."""
    service = start_service(reachable(tmp_path) / "data", GAPWATCH_INGEST_RATE="5")
    yield service
    service.stop()


@pytest.fixture
def limited_database(limited: Service) -> Iterator[Database]:
    database = Database(limited.database_url)
    yield database
    database.close()


def test_a_sender_over_its_rate_is_told_when_to_come_back(limited, limited_database):
    project, other = make_project(limited, limited_database), make_project(limited, limited_database)
    with project.client() as client:
        # More than its rate is taken and paid for later: a robot that was offline for days can send what it has.
        answer = client.post("/episodes/batch", json=[episode() for _ in range(40)])
        assert answer.status_code == 200
        assert answer.json()["accepted"] == 40
        refused = client.post("/episodes", json=episode())
        assert_refused(refused, 429, "too-many-requests")
        wait_s = int(refused.headers["retry-after"])
        assert 2 <= wait_s <= 40 / 5
        assert_refused(client.post("/episodes/batch", json=[episode()]), 429, "too-many-requests")
        assert project.stored() == 40
        assert quarantined(project) == 0

        # Nobody else is slowed down: neither another project nor another key of this one.
        for neighbour in (other.client(), project.client("admin")):
            with neighbour:
                assert neighbour.post("/episodes", json=episode()).status_code == 201

        time.sleep(wait_s)
        assert client.post("/episodes", json=episode()).status_code == 201
        assert project.stored() == 40 + 2


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Processes that take connections and never answer."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def assert_unavailable(project: Project, path: str, body: object, within_s: float) -> None:
    with project.client() as client:
        started = time.monotonic()
        answer = client.post(path, json=body, timeout=within_s + 5)
        assert_refused(answer, 503, "unavailable")
        assert int(answer.headers["retry-after"]) > 0
        assert time.monotonic() - started < within_s


@pytest.mark.parametrize("how", ["killed", "silent"])
def test_without_postgres_the_answer_is_503_and_a_time_to_retry(own, own_project, how):
    one, many = episode(), [episode(), episode()]
    bad = episode(outcome=MARKER)
    [postgres] = own.children("postgres")
    goes_on(own_project)
    supervisor = own.process.pid
    if how == "killed":
        # While the supervisor sleeps nobody starts it again.
        with stopped(supervisor):
            os.kill(postgres, signal.SIGKILL)
            for path, body in (("/episodes", one), ("/episodes/batch", many), ("/episodes", bad)):
                assert_unavailable(own_project, path, body, within_s=10)
            assert httpx.get(f"{own.url}/healthz").status_code == 200
            assert httpx.get(f"{own.url}/readyz").status_code == 503
    else:
        family = [postgres, *(child.pid for child in psutil.Process(postgres).children(recursive=True))]
        with stopped(*family), ThreadPoolExecutor(3) as threads:
            waiting = [
                threads.submit(assert_unavailable, own_project, path, body, within_s=24)
                for path, body in (("/episodes", one), ("/episodes/batch", many), ("/episodes", bad))
            ]
            for future in waiting:
                future.result()
            assert httpx.get(f"{own.url}/healthz").status_code == 200

    def sends_again() -> bool:
        with own_project.client() as client:
            return client.post("/episodes", json=one).status_code in {200, 201}

    wait_until(sends_again, seconds=20, what="accepting again")
    with own_project.client() as client:
        assert client.post("/episodes/batch", json=many).status_code == 200
    own_project.database.engine.dispose()
    assert own_project.stored() == 1 + 1 + 2


def test_with_a_full_disk_the_answer_is_507_and_a_time_to_retry(own, own_project):
    """Postgres says it has no space left; what it does on a disk that is really full is tested with the faults."""
    goes_on(own_project)
    statements = (
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
        "CREATE TRIGGER full_disk BEFORE INSERT ON episodes EXECUTE FUNCTION full_disk()",
        "CREATE TRIGGER full_disk BEFORE INSERT ON rejected_records EXECUTE FUNCTION full_disk()",
    )
    with own_project.database.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    try:
        with own_project.client() as client:
            for path, body in (
                ("/episodes", episode()),
                ("/episodes/batch", [episode()]),
                ("/episodes", episode(outcome=MARKER)),
            ):
                answer = client.post(path, json=body)
                assert_refused(answer, 507, "disk-full")
                assert int(answer.headers["retry-after"]) > 0
    finally:
        with own_project.database.engine.begin() as connection:
            connection.exec_driver_sql("DROP FUNCTION full_disk CASCADE")
    assert own_project.stored() == 1
    goes_on(own_project)
    assert own_project.stored() == 2


@pytest.mark.parametrize("how", ["killed", "silent"])
def test_without_redis_episodes_are_accepted(own, own_project, how):
    [redis] = own.children("valkey-server")
    with stopped(own.process.pid if how == "killed" else redis):
        if how == "killed":
            os.kill(redis, signal.SIGKILL)
        with own_project.client() as client:
            for _ in range(20):
                assert client.post("/episodes", json=episode(), timeout=2).status_code == 201
            answer = client.post("/episodes/batch", json=[episode() for _ in range(20)], timeout=2)
            assert answer.json()["accepted"] == 20
        assert own_project.stored() == 40
    wait_until(lambda: own.children("valkey-server"), what="Redis")
    wait_until(
        lambda: own_project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0,
        seconds=20,
        what="everything folded",
    )
