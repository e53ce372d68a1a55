"""Folding through the real service: any order and any split gives the rows that a recomputation gives."""

import json
import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

from gapwatch import step_sizes
from gapwatch.errors import ServiceUnavailable
from gapwatch.rollup import add, fold, pooling
from gapwatch.rollup.fold import fold_due_work
from gapwatch.rollup.verify import verify_project
from gapwatch.store.alerting import watch_queue
from gapwatch.store.core.migrate import alembic_config, migrate
from gapwatch.store.fold import (
    episode_rows,
    rollups,
    work,
)
from gapwatch.store.fold.stored_rollups import all_rows
from parts import episode, make_project, wait_until

NOW = datetime(2026, 11, 2, 9, 14, tzinfo=UTC)


def varied(number: int, **fields):
    chance = random.Random(number)
    failed = chance.random() < 0.3
    record = episode(
        id=f"e{number}",
        started_at=(NOW - timedelta(hours=chance.randrange(24 * 70))).isoformat(),
        outcome=chance.choice(["aborted", "abandoned"])
        if number % 11 == 0
        else "failure"
        if failed
        else "success",
        robot=f"r{number % 3}" if number % 5 else None,
        stage=chance.choice(["supervised", "full", None]),
        session=f"s{number // 7}" if number % 4 else None,
        duration_s=chance.gammavariate(3, 2),
        reward=chance.gauss(0, 1),
        conditions={
            "lighting": chance.choice(["dim", "bright"]),
            "clutter": chance.randrange(4),
            "mass": chance.random(),
        },
        signals={"peak_force_n": chance.gauss(10, 5), "zero": 0.0, "tiny": chance.random() * 1e-300},
        metrics={"energy_j": chance.expovariate(0.01)},
        contract={"control_hz": 50 + number % 2},
    )
    if failed:
        record["failure"] = {
            "phase": chance.choice(["contact", "perceive"]),
            "labels": ["slip", "dark"][: number % 3],
        }
    if number % 3 == 0:
        record |= {"domain": "sim", "simulator": {"name": "mujoco", "version": "3.3.0"}}
        del record["deployment"]
    return record | fields


def put_rows(database, count, conditions=lambda n: {"lighting": "dim" if n % 2 else "bright"}):
    """Episodes straight into a database without a service, ten to a work row."""
    with database.transaction() as connection:
        connection.exec_driver_sql("INSERT INTO projects (slug, name) VALUES ('p', 'p')")
        for number in range(count):
            connection.execute(
                text(
                    "INSERT INTO condition_sets (project_id, content_hash, levels) VALUES (1, :hash, :levels)"
                    " ON CONFLICT DO NOTHING"
                ),
                {"hash": repr(conditions(number)).encode(), "levels": json.dumps(conditions(number))},
            )
            connection.execute(
                text(
                    "INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain,"
                    " outcome, duration_s, condition_set_id, content_hash) SELECT 1, :id, '2026-11-02T09:14:03Z', 1, 1, 1,"
                    " 'real', 'success', :number, id, '' FROM condition_sets WHERE content_hash = :hash"
                ),
                {"id": f"e{number:04}", "number": number, "hash": repr(conditions(number)).encode()},
            )
        connection.exec_driver_sql(
            "INSERT INTO work (project_id, kind, episode_ids) SELECT 1, 'fold', array_agg(id) FROM episodes"
            " GROUP BY substr(id, 1, 4)"
        )


def settled(project) -> None:
    wait_until(lambda: not project.value("SELECT count(*) FROM work WHERE project_id = :p"), 20, what="the fold")


def verified(project):
    return verify_project(project.database, project.id, project.slug)


def rows_of(project):
    """Every rollup row, with names in place of numbers that differ between projects."""
    with project.database.snapshot() as connection:
        return {
            table: sorted(
                (str(key[4:]), str(value)) for key, value in all_rows(connection, project.id, table).items()
            )
            for table in ("rollup_counts", "rollup_sessions", "rollup_values")
        }


def test_any_order_and_any_split_gives_identical_rows(service, service_database):
    records = [varied(number) for number in range(400)]
    first, second = make_project(service, service_database), make_project(service, service_database)
    with first.client() as client:
        assert client.post("/episodes/batch", json=records).json()["accepted"] == 400
    random.Random(1).shuffle(records)
    with second.client() as client, ThreadPoolExecutor(4) as pool:
        parts = [records[i : i + 37] for i in range(0, 400, 37)]
        list(pool.map(lambda part: client.post("/episodes/batch", json=part + part[:3]), parts))
    settled(first)
    settled(second)
    assert rows_of(first) == rows_of(second)
    for project in (first, second):
        done = verified(project)
        assert (done.episodes, done.differences) == (400, 0), done.examples
        assert done.rows > 500


def test_late_corrected_and_deleted_episodes_are_right(project):
    with project.client("admin") as client:
        client.post("/episodes/batch", json=[varied(n) for n in range(120)])
        settled(project)
        for number in range(0, 120, 4):
            assert client.put(f"/episodes/e{number}", json=varied(number + 1000, id=f"e{number}")).is_success
        for number in range(1, 120, 6):
            assert client.delete(f"/episodes/e{number}").status_code == 204
        client.post("/episodes", json=varied(5000, started_at="2024-02-29T23:59:59.999999Z"))
        settled(project)
    done = verified(project)
    assert (done.episodes, done.differences) == (101, 0), done.examples


def test_the_last_instant_of_a_day_belongs_to_that_day(project):
    with project.client() as client:
        client.post("/episodes", json=varied(1, started_at="2024-02-29T23:59:59.999999Z"))
    settled(project)
    found = project.rows("SELECT tier, bucket_at FROM rollup_counts WHERE project_id = :p ORDER BY tier")
    assert [(tier, f"{at:%m-%d %H:%M}") for tier, at in found] == [
        ("day", "02-29 00:00"),
        ("hour", "02-29 23:00"),
        ("month", "02-01 00:00"),
    ]


def test_deleting_everything_leaves_no_rows(project):
    with project.client("admin") as client:
        client.post("/episodes/batch", json=[varied(n) for n in range(30)])
        for number in range(30):
            client.delete(f"/episodes/e{number}")
    settled(project)
    done = verified(project)
    assert (done.episodes, done.rows, done.differences) == (0, 0, 0)


def test_a_deletion_that_is_folded_before_its_episode_leaves_no_rows(project):
    row = ("real", 1, 1, 1, "month", 1788220800, 0)
    with project.database.transaction() as connection:
        for count in (-1, 1):
            rollups.add_counts(connection, project.id, "rollup_contracts", [(*row, count)]).settle()
    assert project.value("SELECT count(*) FROM rollup_contracts WHERE project_id = :p") == 0


def test_verify_finds_a_wrong_number(project):
    with project.client() as client:
        client.post("/episodes/batch", json=[varied(n) for n in range(20)])
    settled(project)
    with project.database.transaction() as connection:
        connection.exec_driver_sql(
            f"UPDATE rollup_cells SET successes = successes + 1 WHERE project_id = {project.id}"
        )
    assert verified(project).differences > 0


def test_verify_holds_while_work_is_still_due(database):
    """Numbers that lag behind are no difference: what is due is known."""
    put_rows(database, 40)
    with database.transaction() as connection:
        connection.exec_driver_sql("UPDATE work SET due_at = now() + interval '1 hour' WHERE mod(id, 2) = 0")
    fold_due_work(database)
    done = verify_project(database, 1, "p")
    assert (done.episodes, done.differences) == (40, 0), done.examples
    assert done.rows > 0


def test_the_past_of_a_fleet_is_folded_in_parts(database, monkeypatch):
    monkeypatch.setattr(fold, "GROUPS_AT_MOST", 1)
    monkeypatch.setattr(add, "VALUES_AT_ONCE", 1)
    put_rows(database, 60)
    fold_due_work(database)
    done = verify_project(database, 1, "p")
    assert (done.episodes, done.differences) == (60, 0), done.examples


def test_a_fold_ends_its_work_and_is_counted_once(database):
    put_rows(database, 40)
    fold_due_work(database)
    with database.transaction() as connection:
        folds, due, watched = connection.exec_driver_sql(
            "SELECT (SELECT folds FROM project_changes), (SELECT count(*) FROM work),"
            " (SELECT count(*) FROM watch_due)"
        ).one()
    assert (folds, due) == (1, 0)
    assert watched > 0


def test_two_workers_at_once_count_each_episode_once(database):
    put_rows(database, 200)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fold_due_work(database), range(4)))
    fold_due_work(database)
    done = verify_project(database, 1, "p")
    assert (done.episodes, done.differences) == (200, 0), done.examples


def test_a_condition_that_names_each_episode_is_left_out_of_the_cells(project):
    records = [
        varied(n, conditions={"scene": f"scene-{n}", "lighting": "dim"}) for n in range(pooling.MOST_LEVELS + 10)
    ]
    with project.client() as client:
        client.post("/episodes/batch", json=records[:40])
        settled(project)
        client.post("/episodes/batch", json=records[40:])
    settled(project)
    assert project.rows("SELECT name, levels FROM pooled_conditions WHERE project_id = :p") == [("scene", 60)]
    assert not project.value(
        "SELECT count(*) FROM cells c JOIN rollup_cells r ON r.project_id = c.project_id AND r.cell_id = c.id"
        " WHERE c.project_id = :p AND levels ? 'scene'"
    )
    assert verified(project).differences == 0


def test_too_many_cells_are_pooled_by_the_condition_with_most_levels(database, monkeypatch):
    monkeypatch.setattr(pooling, "MOST_CELLS", 12)
    put_rows(database, 60, conditions=lambda n: {"a": str(n % 4), "b": str(n % 5), "c": str(n % 3)})
    fold_due_work(database)
    done = verify_project(database, 1, "p")
    assert (done.episodes, done.differences) == (60, 0), done.examples
    with database.transaction() as connection:
        names = connection.exec_driver_sql("SELECT name FROM pooled_conditions").scalars().all()
        assert connection.exec_driver_sql("SELECT count(DISTINCT cell_id) FROM rollup_cells").scalar_one() == 12
    assert names == ["b"]


@pytest.mark.parametrize("rows_at_once", [1, 3, 400])
def test_pooling_is_the_same_in_one_step_and_in_many(database, monkeypatch, rows_at_once):
    monkeypatch.setattr(pooling, "MOST_CELLS", 12)
    monkeypatch.setattr(pooling, "MOST_LEVELS", 8)
    monkeypatch.setattr(fold, "CLAIM_AT_MOST", rows_at_once)
    put_rows(database, 60, lambda n: {"a": str(n % 4), "b": str(n % 5), "c": str(n % 3), "d": str(n % 9)})
    fold_due_work(database)
    done = verify_project(database, 1, "p")
    assert (done.episodes, done.differences) == (60, 0), done.examples
    with database.transaction() as connection:
        names = connection.exec_driver_sql("SELECT name FROM pooled_conditions ORDER BY 1").scalars().all()
        cells = connection.exec_driver_sql("SELECT count(DISTINCT cell_id) FROM rollup_cells").scalar_one()
    assert (names, cells) == (["b", "d"], 12)


def test_a_worker_that_dies_in_every_long_step_still_gets_on(database, monkeypatch):
    monkeypatch.setattr(step_sizes, "FIRST_STEP", 20)
    put_rows(database, 100)
    claimed_rows = episode_rows.claimed_rows

    def die_if_long(connection, project_id, claims):
        if sum(len(claim.episode_ids) for claim in claims) > 20:
            raise ServiceUnavailable("killed")
        return claimed_rows(connection, project_id, claims)

    monkeypatch.setattr(episode_rows, "claimed_rows", die_if_long)
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            fold_due_work(database)
    assert fold_due_work(database) == 4
    done = verify_project(database, 1, "p")
    assert (done.episodes, done.differences) == (100, 0), done.examples


@pytest.mark.parametrize(
    ("most", "episodes", "claimed"), [(100, 10_000, 30), (100, 45, 4), (100, 3, 1), (20, 10_000, 20)]
)
def test_a_claim_takes_the_oldest_rows_up_to_a_number_of_episodes(database, most, episodes, claimed):
    put_rows(database, 300)
    with database.transaction() as connection:
        connection.exec_driver_sql("UPDATE work SET due_at = now() - id * interval '1 s'")
        oldest = connection.exec_driver_sql("SELECT id FROM work ORDER BY due_at").scalars().all()
        found = work.claim(connection, "fold", [1], most, episodes)
    assert [claim.id for claim in found] == oldest[:claimed]


def test_a_row_of_too_many_episodes_is_folded_in_parts_and_watched_when_all_of_it_is(database):
    """A step that takes long keeps everybody else waiting, whoever sent so many in one batch."""
    put_rows(database, 60)
    with database.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM work")
        connection.exec_driver_sql(
            "INSERT INTO work (project_id, kind, episode_ids) SELECT 1, 'fold', array_agg(id ORDER BY id) FROM episodes"
        )
    for left in ([35], [10], []):
        assert len(database.run(lambda connection: fold._fold_step(25, connection, large=False))) == 1
        with database.transaction() as connection:
            parts = connection.exec_driver_sql("SELECT cardinality(episode_ids) FROM work").scalars().all()
            assert parts == left
            due = watch_queue.due_rows(connection, 1, 1000)
            assert sum(len(row.episode_ids) for row in due) == (0 if left else 60)
    assert verify_project(database, 1, "p").differences == 0


def test_days_of_robots_are_filled_from_the_cells_that_were_there(database):
    put_rows(database, 60)
    with database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE episodes SET robot_id = nullif(mod(duration_s::int, 3), 0), site_id = nullif(mod(duration_s::int, 2), 0)"
        )
    fold_due_work(database)
    days = "SELECT robot_id, site_id, successes FROM rollup_places ORDER BY 1, 2"
    with database.transaction() as connection:
        folded = [tuple(row) for row in connection.exec_driver_sql(days)]
    later = [one.revision for one in ScriptDirectory.from_config(alembic_config()).walk_revisions("0010", "head")]
    migrate(database, f"-{len(later)}")
    with database.transaction() as connection:
        assert connection.exec_driver_sql("SELECT to_regclass('rollup_places')").scalar_one() is None
    migrate(database)
    with database.transaction() as connection:
        assert [tuple(row) for row in connection.exec_driver_sql(days)] == folded
    assert folded == [(robot, site, 10) for robot in range(3) for site in range(2)]
    assert verify_project(database, 1, "p").differences == 0


@pytest.mark.parametrize("count", [1, 50])
def test_an_accepted_episode_is_in_the_numbers_within_two_seconds(project, count):
    with project.client() as client:
        client.post("/episodes/batch", json=[varied(n) for n in range(count)])
    wait_until(
        lambda: (
            project.value(
                "SELECT coalesce(sum(episodes), 0) FROM rollup_contracts WHERE project_id = :p AND tier = 'day'"
            )
            == count
        ),
        2,
    )


def test_a_project_with_much_to_fold_is_locked_alone_and_takes_turns(database, monkeypatch):
    """Whoever shares its transaction waits until it ends."""
    monkeypatch.setattr(episode_rows, "MUCH_BYTES", 1000)
    with database.transaction() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('a', 'a'), ('b', 'b'), ('c', 'c')"))
        for project_id, ids in ((1, 500), (2, 1), (3, 2)):
            connection.execute(
                text("INSERT INTO work (project_id, kind, episode_ids) VALUES (:p, 'fold', CAST(:ids AS text[]))"),
                {"p": project_id, "ids": [uuid.uuid4().hex for _ in range(ids)]},
            )
    for large, mine, others in ((False, [2, 3], [1]), (True, [1], [2, 3])):
        with database.transaction() as first, database.transaction() as second, database.transaction() as third:
            assert episode_rows.lock_projects(first, "fold", large=large) == mine
            # Another worker takes what is left, whatever it would have begun with.
            assert episode_rows.lock_projects(second, "fold", large=large) == others
            assert episode_rows.lock_projects(third, "fold", large=large) == []


def test_steps_that_take_long_become_smaller(monkeypatch):
    clock = iter([0, 1, 1, 2, 2, 4, 4, 5])
    monkeypatch.setattr(step_sizes.time, "monotonic", lambda: next(clock))
    sizes = step_sizes.growing_steps(800)
    assert [next(sizes) for _ in range(4)] == [250, 500, 800, 400]
