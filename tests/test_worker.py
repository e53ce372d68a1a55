"""Rows are the queue of record: whatever happens to Redis, everything due gets done."""

import os
import signal

import httpx
import psutil
import pytest
from sqlalchemy import text

from gapwatch.rollup.fold import fold_due_work
from gapwatch.store.core.database import Database
from gapwatch.store.fold import work
from parts import episode, make_project, reachable, start_service, wait_until


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    service = start_service(reachable(tmp_path_factory.mktemp("worker")) / "data")
    yield service
    service.stop()


def counted(project) -> int:
    return int(
        project.value(
            "SELECT coalesce(sum(successes + failures), 0) FROM rollup_counts "
            "WHERE project_id = :p AND tier = 'month'"
        )
    )


def test_an_accepted_episode_is_counted_within_two_seconds(project):
    with project.client() as client:
        client.post("/episodes", json=episode()).raise_for_status()
    wait_until(lambda: counted(project) == 1, seconds=2, what="the count")


def test_with_redis_stopped_the_web_accepts_and_everything_is_done_soon_after_it_is_back(own):
    database = Database(own.database_url)
    project = make_project(own, database)
    [redis] = own.children("valkey-server")
    # Stopped, not killed: it accepts connections and never answers, which is the worst it can do.
    os.kill(redis, signal.SIGSTOP)
    try:
        with project.client() as client:
            for _ in range(50):
                answer = client.post("/episodes", json=episode(), timeout=2)
                assert answer.status_code == 201
        assert project.stored() == 50
        assert counted(project) < 50
    finally:
        os.kill(redis, signal.SIGCONT)
    wait_until(lambda: counted(project) == 50, seconds=10, what="everything counted")
    assert project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0
    database.close()


def test_with_redis_killed_and_its_content_gone_everything_is_done_within_ten_seconds(own):
    database = Database(own.database_url)
    project = make_project(own, database)
    [redis] = own.children("valkey-server")
    os.kill(redis, signal.SIGKILL)
    with project.client() as client:
        for _ in range(20):
            assert client.post("/episodes", json=episode(), timeout=2).status_code == 201
    wait_until(lambda: own.children("valkey-server") not in ([], [redis]), what="a new Redis")
    wait_until(lambda: counted(project) == 20, seconds=10, what="everything counted")
    database.close()


def test_readiness_fails_when_the_workers_are_stopped(own):
    wait_until(lambda: httpx.get(f"{own.url}/readyz").status_code == 200, 15)
    [worker] = own.children("gapwatch worker")
    stopped = [psutil.Process(worker), *psutil.Process(worker).children(recursive=True)]
    for process in stopped:
        process.suspend()
    try:
        answer = wait_until(
            lambda: (a := httpx.get(f"{own.url}/readyz")).status_code == 503 and a, seconds=30, what="503"
        )
        assert answer.json()["checks"]["worker"]["ok"] is False
    finally:
        for process in stopped:
            process.resume()


@pytest.fixture
def due(database):
    """A database with three episodes, each with its work row."""
    with database.transaction() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('p', 'p')"))
        for number in range(3):
            connection.execute(
                text(
                    "INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain,"
                    " outcome, content_hash) VALUES (1, :id, '2026-11-02T09:14:03Z', 1, 1, 1, 'real', 'success', '')"
                ),
                {"id": f"e{number}"},
            )
            connection.execute(
                text("INSERT INTO work (project_id, kind, episode_ids) VALUES (1, 'fold', :ids)"),
                {"ids": [f"e{number}"]},
            )
    return database


def tiers(database) -> dict[str, int]:
    with database.transaction() as connection:
        rows = connection.execute(text("SELECT tier, sum(successes) FROM rollup_counts GROUP BY 1"))
        return {tier: int(n) for tier, n in rows}


def test_a_fold_counts_each_episode_once_in_every_tier_and_empties_the_queue(due):
    assert fold_due_work(due) == 3
    assert fold_due_work(due) == 0
    assert tiers(due) == {"hour": 3, "day": 3, "month": 3}


def test_two_workers_share_the_rows_without_waiting_for_each_other(due):
    with due.engine.connect() as first, due.engine.connect() as second:
        mine = work.claim(first, "fold", [1], 2, 100)
        theirs = work.claim(second, "fold", [1], 5, 100)
        assert len(mine) == 2
        assert len(theirs) == 1
        assert {claim.id for claim in mine}.isdisjoint(claim.id for claim in theirs)


def test_a_fold_that_is_rolled_back_leaves_its_work_due(due):
    with due.engine.connect() as connection:
        assert len(work.claim(connection, "fold", [1], 5, 100)) == 3
        connection.rollback()
    assert fold_due_work(due) == 3
    assert tiers(due) == {"hour": 3, "day": 3, "month": 3}


def test_a_row_that_fails_is_postponed_and_does_not_hold_up_the_others(due):
    with due.transaction() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " IF NEW.policy_id = 13 THEN RAISE 'unlucky'; END IF; RETURN NEW; END $$;"
                " CREATE TRIGGER refuse BEFORE INSERT ON rollup_counts FOR EACH ROW EXECUTE FUNCTION refuse();"
                " UPDATE episodes SET policy_id = 13 WHERE id = 'e1'"
            )
        )
    fold_due_work(due)
    assert tiers(due) == {"hour": 2, "day": 2, "month": 2}
    with due.transaction() as connection:
        [row] = connection.execute(text("SELECT episode_ids, attempts, last_error, due_at > now() FROM work"))
    assert row[0] == ["e1"]
    assert row[1] == 1
    assert "unlucky" in row[2]
    assert row[3] is True
