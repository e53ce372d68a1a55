"""The catalogue of bad input, catalogue.yaml: a hundred lines, each a request with its answer and what is stored after it.

Lines that need a connection, a key or a service of their own are functions of `test_connections.py`; the last test
here sees to it that none is missing.

Three rules hold for every case, so the catalogue does not repeat them: what is refused is problem+json; it never
repeats a value of the sender's; and a record that was read and refused (422) is in the quarantine.
"""

import ast
import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil
import pytest
from ingest.catalogue import CASES, ELSEWHERE, JSON, SLOW, Case, Request
from ingest.refusals import ANSWERED_WITHIN_S, MARKER, MIB, assert_refused

from gapwatch.accounts import make_key
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database
from parts import Project, Service, episode, reachable, start_service, wait_until

NDJSON = {"Content-Type": "application/x-ndjson"}
HERE = "@here@"


def record(**fields):
    return episode(**({"provenance": {"note": MARKER}} | fields))


def spliced(text: str, **fields) -> bytes:
    """A record with the given text in the place of HERE, whatever a JSON writer would say of it."""
    return json.dumps(record(**fields)).replace(f'"{HERE}"', text).encode()


def ahead(**by: float) -> str:
    return (datetime.now(UTC) + timedelta(**by)).isoformat()


def send(client: httpx.Client, case: Case, request: Request) -> httpx.Response:
    for body in request.first:
        assert client.request(case.method, case.path, content=body, headers=request.headers).is_success
    return client.request(case.method, case.path, content=request.body, headers=request.headers)


def check(case: Case, project: Project, client: httpx.Client) -> None:
    answer = send(client, case, case.request())
    assert answer.elapsed.total_seconds() < ANSWERED_WITHIN_S
    if case.status >= 400:
        body = assert_refused(answer, case.status, case.code, case.secrets)
    else:
        assert answer.status_code == case.status, answer.text[:2000]
        body = answer.json()
        assert {name: body.get(name) for name in case.answer} == case.answer
        if "sent" in body:
            assert body["sent"] == sum(body[n] for n in ("accepted", "duplicates", "conflicts", "rejected"))
        for secret in case.secrets:
            assert secret not in json.dumps(body.get("errors", []))
    faults = body.get("errors", [])
    if case.code is not None and case.status < 400:
        assert case.code in {fault["code"] for fault in faults}
    if case.pointer is not None:
        named = {fault["pointer"] for fault in faults if case.code in {None, fault["code"]}}
        assert any(f"{pointer}/".startswith(f"{case.pointer}/") for pointer in named), faults[:20]
    if case.path == "/episodes/batch" and case.status in {200, 422} and case.quarantined:
        assert all(isinstance(fault["index"], int) for fault in faults)
    for name, value in case.answer_headers.items():
        assert value in answer.headers[name]
    assert project.stored() == case.stored
    in_quarantine = project.value("SELECT count(*) FROM rejected_records WHERE project_id = :p")
    assert case.quarantined is None or in_quarantine == case.quarantined
    if case.reads is not None:
        sql, expected = case.reads
        assert project.value(sql) == expected


@contextlib.contextmanager
def own_project(service: Service, database: Database, scope: str) -> Iterator[tuple[Project, httpx.Client]]:
    """A project with one key, and a client that spends no time on certificates: there are many cases."""
    slug = f"project-{uuid.uuid4().hex[:12]}"
    secret = Settings(data_dir=service.data_dir).server_secret()
    key = make_key(database, secret, project=slug, scope=scope, name="test")
    project = Project(slug, 0, service.url, {scope: key}, database)
    project.id = project.value("SELECT id FROM projects WHERE slug = :slug", slug=slug)
    with project.client(scope, verify=False) as client:
        yield project, client


@pytest.fixture(scope="module")
def database_of_service(service: Service) -> Iterator[Database]:
    database = Database(service.database_url)
    yield database
    database.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_line(case: Case, service: Service, database_of_service: Database):
    with own_project(service, database_of_service, case.scope) as (project, client):
        check(case, project, client)


def test_no_case_of_the_table_leaves_a_value_or_a_key_in_the_log(service, project):
    """Runs after the table, on the log of the same service."""
    with project.client() as client:
        client.post("/episodes", json=record(outcome=MARKER), headers={"X-Request-Id": "after-the-table"})
    wait_until(lambda: "after-the-table" in service.log, what="the log line")
    assert MARKER not in service.log
    assert "Bearer gw_" not in service.log


def test_a_batch_names_the_one_bad_record_by_its_place(project):
    [case] = [case for case in CASES if case.words == "1 bad of 100"]
    with project.client() as client:
        errors = send(client, case, case.request()).json()["errors"]
    assert [(fault["index"], fault["pointer"]) for fault in errors] == [(37, "/outcome")]


def test_a_record_sent_again_with_another_measure_of_the_clock_is_a_duplicate(project):
    """The difference of the clocks is measured anew with every request, and a little different each time."""
    body = json.dumps(record(started_at=ahead(hours=3))).encode()
    with project.client() as client:
        answers = [
            client.post(
                "/episodes", content=body, headers=JSON | {"Gapwatch-Sent-At": ahead(hours=3, seconds=late)}
            )
            for late in (0, 0.4, 2, 7)
        ]
        answers.append(client.post("/episodes", content=body, headers=JSON))
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 200]
    assert {answer.json()["status"] for answer in answers[1:]} == {"duplicate"}
    assert project.stored() == 1


@pytest.mark.parametrize(
    "marks", ["\u0301\u0323" * 30_000, "\u0301" * 30_000 + "\u0323" * 30_000], ids=["mixed", "two runs"]
)
def test_combining_marks_in_disorder_cost_no_more_than_others(project, marks):
    """Bringing them into order takes time that grows with the square of their number."""
    body = json.dumps(record(conditions={"label": f"a{marks}"}), ensure_ascii=False).encode()
    with project.client() as client:
        for sent in (body, b"{" + body):
            answer = client.post("/episodes", content=sent, headers=JSON)
            assert_refused(answer, answer.status_code)
            assert answer.status_code in {400, 422}
            assert answer.elapsed.total_seconds() < 1


@pytest.mark.parametrize("text", [pytest.param(text, id=words) for words, text in SLOW.items()])
def test_bodies_made_to_be_slow_are_answered_in_time(project, text):
    """40 kB each: what costs the square of its length takes seconds."""
    places = ({"contract": HERE}, {"conditions": {"label": HERE}}, {"task": HERE}, {"colour": HERE})
    with project.client() as client:
        for body in (*(spliced(text, **fields, site="[" * 40) for fields in places), b"[" * 40 + text.encode()):
            for path, headers, sent in (
                ("/episodes", JSON, body),
                ("/episodes/batch", JSON, b"[%s]" % body),
                ("/episodes/batch", NDJSON, body.replace(b"\n", b" ")),
            ):
                answer = client.post(path, content=sent, headers=headers)
                assert answer.elapsed.total_seconds() < 2, (path, body[:100])
                assert answer.status_code in {400, 422}


@pytest.mark.parametrize("depth", [*range(30, 40), *range(100, 1100, 50), 2_000, 20_000])
def test_no_depth_is_too_much_for_us(project, depth):
    """Between what is refused as too deep and what cannot be read there is no depth that fails."""
    with project.client() as client:
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            text = opening * depth + "0" + closing * depth
            for body in (
                text.encode(),
                *(
                    spliced(text, **fields)
                    for fields in (
                        {"contract": HERE},
                        {"conditions": {"a": HERE}},
                        {"task": HERE},
                        {"colour": HERE},
                    )
                ),
            ):
                for path, headers, sent in (
                    ("/episodes", JSON, body),
                    ("/episodes/batch", JSON, b"[%s]" % body),
                    ("/episodes/batch", NDJSON, body),
                ):
                    answer = client.post(path, content=sent, headers=headers)
                    if not (answer.is_success and depth <= 32):
                        assert answer.status_code in {400, 422}, (path, sent[:200])
                        assert_refused(answer, answer.status_code)


class Watch:
    """The largest resident size of a process while the block runs, looked at every 20 ms."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.at_first = self.peak = self._process.memory_info().rss

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(0.02):
            self.peak = max(self.peak, self._process.memory_info().rss)


@pytest.mark.timeout(300)
def test_no_line_of_the_catalogue_makes_the_web_process_grow_by_more_than_64_mb(tmp_path):
    service = start_service(reachable(tmp_path) / "data")
    database = Database(service.database_url)
    try:
        with own_project(service, database, "ingest") as (_, client):
            for _ in range(200):
                assert client.post("/episodes", json=record()).status_code == 201
            for _ in range(5):
                client.post("/episodes/batch", json=[record() for _ in range(200)]).raise_for_status()
                client.post("/episodes", content=b"{}", headers=JSON)
        [web] = service.children("gapwatch web")
        grown: dict[str, int] = {}
        with Watch(web) as watch:
            for case in CASES:
                before = watch.peak
                with (
                    own_project(service, database, case.scope) as (_, client),
                    contextlib.suppress(httpx.TimeoutException),
                ):
                    request = case.request()
                    send(client, case, request)
                # The watch looks every 20 ms, and what is large may be gone by then.
                time.sleep(0.02 if "bomb" in case.body or len(request.body) > MIB // 16 else 0)
                if watch.peak > before:
                    grown[str(case)] = (watch.peak - watch.at_first) // MIB
        assert service.children("gapwatch web") == [web]
        over = {words: f"{size} MiB" for words, size in grown.items() if size > 64}
        assert not over, f"the peak grew past 64 MiB, and further, with these: {over}"
    finally:
        database.close()
        service.stop()


def test_every_line_of_the_catalogue_is_covered():
    tree = ast.parse(Path(__file__).with_name("test_connections.py").read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert set(ELSEWHERE) <= defined
    assert len({str(case) for case in CASES}) == len(CASES)
    covered = {case.line for case in CASES}.union(*ELSEWHERE.values())
    assert covered == set(range(1, 101))
