import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from gapwatch.store.rollout.rollouts import (
    Decision,
    PolicyVersion,
    decide,
    decisions_page,
    find_packet,
    find_rollout,
    hash_of_packet,
    lock_rollout,
    put_rollout,
    store_drill,
)

PLAN = {"margin": 0.1, "criteria": []}


@pytest.fixture
def deployed(database):
    """A database with one deployment that has a rollout in shadow."""
    with database.engine.begin() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('p', 'p')"))
        connection.execute(text("INSERT INTO policies (project_id, name, version) VALUES (1, 'grasp', '2')"))
        connection.execute(text("INSERT INTO tasks (project_id, name) VALUES (1, 'pick')"))
        connection.execute(
            text("""
            INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at) VALUES (1, 'cell', 1, 1, now())
            """)
        )
        put_rollout(
            connection,
            1,
            1,
            stage="shadow",
            policy=PolicyVersion("grasp", "2"),
            fallback=PolicyVersion("grasp", "1"),
            plan=PLAN,
        )
    return database


def decided(database, kind, **changes):
    wanted = {
        "kind": kind,
        "to_stage": "shadow",
        "state": "go",
        "who": "anna",
        "reason": "seen",
        "packet": {"n": 1e22},
    }
    with database.transaction(1) as connection:
        rollout = lock_rollout(connection, 1, "cell")
        return decide(connection, 1, rollout, Decision(**wanted | changes))


def test_a_rollout_is_read_in_one_query(deployed, queries):
    with deployed.transaction(1) as connection:
        rollout = find_rollout(connection, 1, "cell")
        assert find_rollout(connection, 1, "other") is None
    assert len(queries) == 2
    assert (rollout.stage, rollout.state, rollout.revision, rollout.plan) == ("shadow", "go", 1, PLAN)
    assert rollout.frozen_at is not None and rollout.decision_id is None


def test_a_candidate_drives_only_where_its_stage_and_state_let_it(deployed):
    fallback, candidate = PolicyVersion("grasp", "1"), PolicyVersion("grasp", "2")
    drivers = []
    for kind, stage, state in [
        ("hold", "shadow", "go"),
        ("promote", "supervised", "go"),
        ("rollback", "supervised", "fallback"),
        ("stop", "supervised", "stop"),
    ]:
        decided(deployed, kind, to_stage=stage, state=state)
        with deployed.transaction(1) as connection:
            drivers.append(find_rollout(connection, 1, "cell").driver)
    assert drivers == [fallback, candidate, fallback, None]


def test_a_decision_moves_the_stage_freezes_anew_and_leaves_its_traces(deployed):
    first = decided(deployed, "hold")
    second = decided(deployed, "promote", to_stage="supervised")
    assert (second.from_stage, second.to_stage, second.revision) == ("shadow", "supervised", 3)
    assert first.previous_hash is None and second.previous_hash == first.packet_hash
    with deployed.transaction(1) as connection:
        rollout = find_rollout(connection, 1, "cell")
        packet, stored_hash = find_packet(connection, 1, second.id)
        titles = (
            connection.execute(text("SELECT title FROM events WHERE kind = 'rollout' ORDER BY id")).scalars().all()
        )
        actions = connection.execute(
            text("SELECT action FROM audit_entries WHERE action LIKE 'rollout%'")
        ).scalars()
        listed = decisions_page(connection, 1, deployment="cell", before_id=None, limit=5)
        assert set(actions) == {"rollout.hold", "rollout.promote"}
    assert rollout.stage == "supervised" and rollout.frozen_at == rollout.entered_at == second.at
    assert titles == ["grasp 2 held", "grasp 2 promoted from shadow to supervised"]
    assert hash_of_packet(packet) == stored_hash and packet["previous_hash"] == first.packet_hash
    assert listed == [second, first]


def test_another_plan_starts_anew(deployed):
    with deployed.transaction(1) as connection:
        before = find_rollout(connection, 1, "cell")
    with deployed.transaction(1) as connection:
        put_rollout(
            connection, 1, 1, stage="full", policy=before.policy, fallback=None, plan=PLAN | {"margin": 0.05}
        )
    with deployed.transaction(1) as connection:
        after = find_rollout(connection, 1, "cell")
    assert after.stage == "shadow" and after.frozen_at > before.frozen_at and after.revision == 2


def test_a_drill_is_remembered(deployed):
    with deployed.transaction(1) as connection:
        store_drill(connection, 1, 1, 0.7)
        rollout = find_rollout(connection, 1, "cell")
    assert rollout.drill_seconds == 0.7 and rollout.drill_at is not None


@pytest.mark.parametrize("statement", ["UPDATE decisions SET who = 'x'", "DELETE FROM decisions"])
def test_decisions_cannot_be_changed(deployed, statement):
    decided(deployed, "hold")
    with pytest.raises(DBAPIError, match="never changed or deleted"), deployed.engine.begin() as connection:
        connection.execute(text(statement))
