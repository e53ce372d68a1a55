"""The present that the fold keeps: exact whatever comes late, is corrected or deleted, and at a fixed cost."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from gapwatch.rollup.verify import verify_project
from gapwatch.statistics.change.present import REACH
from gapwatch.store.fold import presents
from gapwatch.tally.presents import ATTEMPTS, PresentFacts, RecentAttempt, make_present
from parts import episode, wait_until

START = datetime(2026, 10, 1, tzinfo=UTC)


def attempt(number: int, *, success: bool = True, **fields) -> dict:
    at = START + timedelta(minutes=10 * number)
    return episode(
        id=f"e{number}", started_at=at.isoformat(), outcome="success" if success else "failure", **fields
    )


def send(project, records) -> None:
    with project.client("admin") as client:
        assert client.post("/episodes/batch", json=records).json()["rejected"] == 0
    settle(project)


def settle(project) -> None:
    wait_until(lambda: not project.value("SELECT count(*) FROM work WHERE project_id = :p"), 20, what="the fold")


def stored(project):
    with project.database.transaction() as connection:
        (present,) = presents.stored_presents(connection, project.id).values()
    return present


def is_exact(project) -> bool:
    done = verify_project(project.database, project.id, project.slug)
    return done.differences == 0


def test_late_corrected_and_deleted_episodes_give_the_present_of_what_is_left(project):
    chance = random.Random(1)
    records = [
        attempt(n, success=chance.random() < (0.95 if n < 200 else 0.5), robot=f"r{n % 2}") for n in range(320)
    ]
    late, records = records[250:260], [*records[:250], *records[260:]]
    send(project, records)
    before = stored(project)
    assert before.moved.verdict == "fell"
    assert before.why == "change"
    send(project, late)
    assert stored(project).estimate.n == 100
    assert is_exact(project)
    with project.client("admin") as client:
        for number in range(200, 320):
            client.delete(f"/episodes/e{number}")
        revised = attempt(199, success=False)
        assert client.put("/episodes/e199", json=revised).status_code == 200
    settle(project)
    after = stored(project)
    assert after.moved.verdict == "steady"
    assert after.regime.n == 200
    assert is_exact(project)


def test_a_release_starts_a_regime_and_the_version_before_is_what_it_is_held_against(project):
    old = [attempt(n, success=n % 20 != 0, policy={"name": "pick", "version": "1"}) for n in range(100)]
    new = [attempt(n, success=n % 2 == 0, policy={"name": "pick", "version": "2"}) for n in range(100, 160)]
    send(project, old + new)
    present = stored(project)
    assert (present.why, present.moved.verdict) == ("release", "fell")
    assert present.since == present.facts.version_since == START + timedelta(minutes=1000)
    assert present.before is not None
    assert (present.before.successes, present.before.n) == (95, 100)
    assert present.before_until == present.since


def test_verify_tells_of_a_present_that_is_wrong(project):
    send(project, [attempt(n) for n in range(30)])
    with project.database.transaction() as connection:
        connection.execute(
            text("UPDATE presents SET body = jsonb_set(body, '{estimate,successes}', '7') WHERE project_id = :p"),
            {"p": project.id},
        )
    done = verify_project(project.database, project.id, project.slug)
    assert done.differences == 1
    assert done.examples[0][0] == "presents"


def test_what_was_stored_before_presents_were_kept_gets_one(project):
    send(project, [attempt(n) for n in range(30)])
    with project.database.transaction() as connection:
        connection.execute(text("DELETE FROM presents WHERE project_id = :p"), {"p": project.id})
    wait_until(
        lambda: project.value("SELECT count(*) FROM presents WHERE project_id = :p") == 1, 20, what="the present"
    )


def test_a_change_that_the_watch_established_starts_a_regime(project):
    send(project, [attempt(n, success=n % 10 != 0) for n in range(100)])
    assert stored(project).why == "start"
    with project.database.transaction() as connection:
        deployment_id = connection.execute(
            text("SELECT id FROM deployments WHERE project_id = :p"), {"p": project.id}
        ).scalar_one()
        connection.execute(
            text(
                "INSERT INTO alerts (project_id, deployment_id, rule, kind, series, state, severity, changed_at)"
                " VALUES (:p, :d, 'fell', 'drift', 'success', 'firing', 'critical', :at)"
            ),
            {"p": project.id, "d": deployment_id, "at": START + timedelta(minutes=600)},
        )
        presents.refresh_where_facts_changed(connection, project.id, deployment_id)
    present = stored(project)
    assert present.why == "change"
    assert present.since == START + timedelta(minutes=600)
    assert is_exact(project)


FACTS = PresentFacts(1, 1, START, True, None, None, 1.0)


def attempts(outcomes, **fields) -> list[RecentAttempt]:
    """Oldest first in, newest first out."""
    made = [
        RecentAttempt(START + timedelta(minutes=n), outcome, fields.get("policy", 1), 1, f"r{n % 4}", None)
        for n, outcome in enumerate(outcomes)
    ]
    return made[::-1]


def test_attempts_that_were_not_decided_enter_no_rate():
    present = make_present(attempts(["success", "aborted", "failure", "abandoned"] * 20), FACTS)
    assert (present.regime.n, present.aborted, present.abandoned) == (40, 20, 20)


def test_the_robot_that_stands_out_is_named():
    outcomes = ["failure" if n % 4 == 3 and n % 3 == 0 else "success" for n in range(400)]
    robots = {one.robot: one.than_others for one in make_present(attempts(outcomes), FACTS).robots}
    assert robots == {"r0": None, "r1": None, "r2": None, "r3": "below"}


def test_a_regime_that_is_longer_than_we_look_says_so():
    present = make_present(attempts(["success"] * ATTEMPTS), FACTS)
    assert present.is_cut
    assert present.regime.n == REACH


def test_a_deployment_without_decided_episodes_has_an_empty_present():
    present = make_present(attempts(["aborted"] * 3), FACTS)
    assert (present.since, present.estimate.n, present.moved.verdict) == (None, 0, "too few episodes")


def test_sessions_make_the_interval_wider():
    outcomes = ["failure" if (n // 10) % 4 == 0 else "success" for n in range(200)]
    alone = attempts(outcomes)
    together = [one._replace(session=f"s{n // 10}") for n, one in enumerate(alone)]
    assert make_present(together, FACTS).design_effect > 3 > make_present(alone, FACTS).design_effect
