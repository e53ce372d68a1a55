"""Postgres goes and comes back: whoever waits for it is back within seconds of it, and nobody sees a 500."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
from faults.harness import PROBLEM_JSON, SECRET, Webs, wait_for_postgres

from gapwatch import embedded
from gapwatch.accounts import make_key
from gapwatch.store.core.database import Database
from gapwatch.store.core.migrate import migrate
from parts import episode, reachable

BACK_WITHIN_S = 5.0


def seconds_to_acknowledgement(client: httpx.Client) -> float:
    """From now until a robot that tries again and again is acknowledged."""
    since = time.monotonic()
    record = episode()
    while True:
        answer = client.post("/episodes", json=record)
        if answer.is_success:
            return time.monotonic() - since
        assert answer.status_code == 503, answer.text
        assert "retry-after" in answer.headers
        time.sleep(0.05)


def test_a_service_with_many_idle_connections_acknowledges_soon_after_postgres_is_back(pair, pair_project):
    def send_batches(number: int) -> None:
        # By two keys, because one alone may not take all connections.
        with pair_project.client(("ingest", "admin")[number % 2]) as client:
            for _ in range(2):
                client.post("/episodes/batch", json=[episode() for _ in range(100)]).raise_for_status()

    with ThreadPoolExecutor(24) as threads:
        list(threads.map(send_batches, range(24)))
    idle = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gapwatch-ingest'"
    assert pair_project.value(idle) >= 6
    [postgres] = pair.children("bin/postgres")
    os.kill(postgres, signal.SIGKILL)
    wait_for_postgres(pair)
    with pair_project.client() as client:
        assert seconds_to_acknowledgement(client) <= BACK_WITHIN_S


def test_web_that_starts_before_postgres_answers_503_and_acknowledges_soon_after_it_is_there(tmp_path):
    data_dir = reachable(tmp_path)
    run_dir = embedded.make_run_dir(embedded.running_as(data_dir))
    server = embedded.prepare_postgres(data_dir, run_dir)
    with embedded.running(server):
        database = Database(server.url)
        migrate(database)
        key = make_key(database, SECRET.encode(), project="robots", scope="ingest", name="test")
        database.close()
    webs = Webs(server.url, data_dir)
    try:
        webs.start()
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=f"{webs.url}/api/v1", headers=headers, timeout=30) as client:
            answer = client.post("/episodes", json=episode())
            assert answer.status_code == 503
            assert answer.headers["content-type"] == PROBLEM_JSON
            with embedded.running(server):
                assert seconds_to_acknowledgement(client) <= BACK_WITHIN_S
    finally:
        webs.close()
        run_dir.rmdir()
