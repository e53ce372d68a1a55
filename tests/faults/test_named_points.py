"""Kills at the exact points where a transaction is half done: the answer, the row and the count agree.

The service is the one people run, without hooks. Triggers make a transaction wait at a gate that the test
holds closed; once Postgres shows it waiting there, the process is exactly at that point and is killed.
"""

import contextlib
import os
import signal
import socket
import struct
import threading
from urllib.parse import urlsplit

import httpx
import psutil
import psycopg
import pytest
from faults.harness import compare, settle, wait_for_postgres

from gapwatch.store.core.database import Database
from parts import episode, make_project, wait_until

# Where a transaction waits while its gate is closed: number, event and table, and whether only at COMMIT.
GATES = {
    "names are registered, COPY has not begun": (1, "BEFORE INSERT ON deployments", False),
    "COPY is done, COMMIT has not begun": (2, "BEFORE INSERT ON work", False),
    "COMMIT was sent and is not done": (3, "AFTER INSERT ON work", True),
    "rollups are written, the work row is still there": (4, "BEFORE DELETE ON work", False),
    "COMMIT of a fold was sent and is not done": (5, "AFTER DELETE ON work", True),
}
BEFORE_COPY, AFTER_COPY, IN_COMMIT, IN_FOLD, IN_COMMIT_OF_FOLD = GATES


@pytest.fixture(scope="module")
def own(pair):
    """The service, with the gates built in for as long as these tests run."""
    with psycopg.connect(pair.database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint);"
            " RETURN coalesce(NEW, OLD); END $$"
        )
        for number, event, at_commit in GATES.values():
            kind = "CONSTRAINT TRIGGER" if at_commit else "TRIGGER"
            deferred = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
            connection.execute(
                f"CREATE {kind} gate_{number} {event} {deferred}"
                f" FOR EACH ROW EXECUTE FUNCTION wait_at_gate('{number}')"
            )
    yield pair
    with psycopg.connect(pair.database_url, autocommit=True) as connection:
        connection.execute("DROP FUNCTION wait_at_gate() CASCADE")


@pytest.fixture(scope="module")
def own_database(own):
    database = Database(own.database_url)
    yield database
    database.close()


@pytest.fixture(scope="module")
def counted(own, own_database):
    """Episodes by project, each of which must be counted once when all is done."""
    expected = []
    yield expected
    for project, records in expected:
        assert_counted_once(own, project, records)


@pytest.fixture
def project(own, own_database):
    wait_for_postgres(own)
    return make_project(own, own_database)


class Gate:
    """Closed while open connections hold its lock exclusively; a killed Postgres opens it too."""

    def __init__(self, service, point: str) -> None:
        self._url = service.database_url
        self._number = GATES[point][0]
        self._holder = psycopg.connect(self._url, autocommit=True)
        self._holder.execute("SELECT pg_advisory_lock(%s)", (self._number,))

    def wait_for_arrival(self) -> None:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
        wait_until(
            lambda: self._holder.execute(waiting, (self._number,)).fetchone() != (0,),
            pause_s=0.01,
            what="a transaction at the gate",
        )

    def open(self) -> None:
        self._holder.close()


@contextlib.contextmanager
def closed(service, point: str):
    gate = Gate(service, point)
    try:
        yield gate
    finally:
        gate.open()


class Post(threading.Thread):
    """One request in the background, and its status or the error the client saw."""

    def __init__(self, project, path: str, body) -> None:
        super().__init__()
        self._project, self._path, self._body = project, path, body
        self.status: int | None = None
        self.start()

    def run(self) -> None:
        with self._project.client() as client, contextlib.suppress(httpx.TransportError):
            self.status = client.post(self._path, json=self._body).status_code


def tell(service, words: str, number: signal.Signals, *, group: bool = False) -> None:
    """A signal to every part of a kind; both web processes are meant, because either may hold the request."""
    for pid in service.children(words):
        (os.killpg if group else os.kill)(pid, number)


def kill(service, words: str, *, group: bool = False) -> None:
    tell(service, words, signal.SIGKILL, group=group)


def send_until_stored(project, path: str, body) -> dict:
    """What a robot does after an answer that did not come: the same request again."""
    with project.client() as client:
        answer = wait_until(
            lambda: (answer := client.post(path, json=body)).status_code != 503 and answer,
            20,
            what="an answer to the retry",
        )
    assert answer.is_success, answer.text
    return answer.json()


def is_stored(project, record) -> bool:
    return project.value("SELECT count(*) FROM episodes WHERE project_id = :p AND id = :id", id=record["id"]) == 1


def new_place() -> dict:
    """An episode of a deployment nobody has named before, so that registration is part of its transaction."""
    record = episode()
    return record | {"deployment": f"line-{record['id'][:8]}"}


def assert_counted_once(service, project, records) -> None:
    settle(service, project)
    sent = {record["id"]: record["outcome"] for record in records}
    found = compare(project, sent, sent)
    assert found.is_clean, found
    assert found.stored == len(sent)


@pytest.mark.parametrize("point", [BEFORE_COPY, AFTER_COPY])
def test_web_killed_before_commit_stores_nothing_and_the_retry_is_accepted(own, project, counted, point):
    records = [new_place() for _ in range(3)]
    with closed(own, point) as gate:
        post = Post(project, "/episodes/batch", records)
        gate.wait_for_arrival()
        kill(own, "gapwatch web")
        post.join()
    assert post.status is None
    wait_until(lambda: no_transaction_is_open(project), what="the end of the killed transaction")
    assert project.stored() == 0
    again = send_until_stored(project, "/episodes/batch", records)
    assert (again["accepted"], again["duplicates"]) == (3, 0)
    counted.append((project, records))


def no_transaction_is_open(project) -> bool:
    return not project.value(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gapwatch-ingest' AND xact_start IS NOT NULL"
    )


def test_web_killed_after_commit_and_before_the_answer_has_stored_and_the_retry_says_duplicate(
    own, project, counted
):
    record = new_place()
    with closed(own, IN_COMMIT) as gate:
        post = Post(project, "/episodes", record)
        gate.wait_for_arrival()
        # Stopped while it waits for the end of COMMIT, it cannot answer what Postgres is about to finish.
        tell(own, "gapwatch web", signal.SIGSTOP)
        gate.open()
        wait_until(lambda: is_stored(project, record), what="the commit")
        kill(own, "gapwatch web")
        post.join()
    assert post.status is None
    assert send_until_stored(project, "/episodes", record)["status"] == "duplicate"
    counted.append((project, [record]))


def test_postgres_killed_before_the_end_of_commit_stores_once_or_answers_503(own, project, counted):
    """The transaction is tried once more: with Postgres back in time it is stored, else the sender is told."""
    record = new_place()
    with closed(own, IN_COMMIT) as gate:
        post = Post(project, "/episodes", record)
        gate.wait_for_arrival()
        kill(own, "bin/postgres")
        post.join()
    assert post.status in {201, 503}
    wait_for_postgres(own)
    assert project.stored() == (1 if post.status == 201 else 0)
    again = send_until_stored(project, "/episodes", record)["status"]
    assert again == ("duplicate" if post.status == 201 else "accepted")
    counted.append((project, [record]))


def test_postgres_killed_right_after_commit_keeps_what_is_answered_201(own, project, counted):
    record = new_place()
    with closed(own, IN_COMMIT) as gate:
        post = Post(project, "/episodes", record)
        gate.wait_for_arrival()
        tell(own, "gapwatch web", signal.SIGSTOP)
        try:
            gate.open()
            wait_until(lambda: is_stored(project, record), pause_s=0.001, what="the commit")
            kill(own, "bin/postgres")
        finally:
            tell(own, "gapwatch web", signal.SIGCONT)
        post.join()
    assert post.status == 201
    wait_for_postgres(own)
    counted.append((project, [record]))


def nothing_is_due(project) -> bool:
    return project.value("SELECT count(*) FROM work") == 0


def kill_pool_processes(service) -> None:
    [worker] = service.children("gapwatch worker")
    for child in psutil.Process(worker).children():
        child.kill()


KILLS_OF_A_FOLD = {
    "its process": kill_pool_processes,
    "the whole worker": lambda service: kill(service, "gapwatch worker", group=True),
    "Postgres": lambda service: kill(service, "bin/postgres"),
}


@pytest.mark.parametrize("what", KILLS_OF_A_FOLD)
def test_a_fold_killed_after_the_rollups_and_before_the_work_row_counts_once(own, project, what):
    records = [new_place() for _ in range(5)]
    wait_until(lambda: nothing_is_due(project), 30, what="the folds of other tests")
    with closed(own, IN_FOLD) as gate:
        assert send_until_stored(project, "/episodes/batch", records)["accepted"] == 5
        gate.wait_for_arrival()
        KILLS_OF_A_FOLD[what](own)
    assert_counted_once(own, project, records)


def test_a_worker_killed_after_the_commit_of_a_fold_and_before_its_acknowledgement_counts_once(own, project):
    records = [new_place() for _ in range(5)]
    wait_until(lambda: nothing_is_due(project), 30, what="the folds of other tests")
    with closed(own, IN_COMMIT_OF_FOLD) as gate:
        assert send_until_stored(project, "/episodes/batch", records)["accepted"] == 5
        gate.wait_for_arrival()
        tell(own, "gapwatch worker", signal.SIGSTOP, group=True)
        gate.open()
        wait_until(
            lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, what="the commit"
        )
        kill(own, "gapwatch worker", group=True)
    assert_counted_once(own, project, records)


def test_a_connection_cut_after_the_request_leaves_an_outcome_that_the_retry_tells(own, project, counted):
    record = new_place()
    with project.client() as client:
        request = client.build_request("POST", "/episodes", json=record)
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        head = "\r\n".join([f"POST {request.url.raw_path.decode()} HTTP/1.1", *lines, "", ""])
    address = urlsplit(own.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        # Closed at once and with a reset: nobody waits for an answer.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(head.encode() + request.read())
        wait_until(lambda: is_stored(project, record), what="the episode of a client that is gone")
    assert send_until_stored(project, "/episodes", record) == {"id": record["id"], "status": "duplicate"}
    counted.append((project, [record]))
