"""The clock's part: gates judged for the lists, people asked once when a stage waits too long."""

from api.test_rollouts import FALLBACK, reals, send, shadows
from sqlalchemy import text

from gapwatch.rollouts.watching import judge_rollouts


def planned(project, days_ago):
    send(project, reals("shadow", 1) + shadows(20))
    plan = {"fallback": FALLBACK, "criteria": [{"kind": "min_episodes", "limit": 5, "stage": "shadow"}]}
    with project.client("admin") as client:
        client.put("/deployments/berlin-line-3/rollout", json={"plan": plan, "stage": "shadow"}).raise_for_status()
    with project.database.transaction() as connection:
        connection.execute(
            text("""
            UPDATE rollouts SET frozen_at = now() - make_interval(days => :d), waiting_since = frozen_at
                - make_interval(days => :d) WHERE project_id = :p
            """),
            {"p": project.id, "d": days_ago},
        )


def test_a_person_is_asked_once_and_nothing_moves_by_itself(project):
    planned(project, 40)
    for _ in range(2):
        with project.database.transaction() as connection:
            judge_rollouts(connection, project.id, "https://gapwatch.example.com")
    [[stage, verdict]] = project.rows("SELECT stage, gate ->> 'verdict' FROM rollouts WHERE project_id = :p")
    assert (stage, verdict) == ("shadow", "pass")
    asked = project.rows(
        "SELECT details ->> 'why' FROM audit_entries WHERE project_id = :p AND action = 'rollout.asked'"
    )
    assert len(asked) == 1 and "over its budget of 28" in asked[0][0]
    with project.client("read") as client:
        [listed] = client.get("/rollouts").json()["rollouts"]
    assert listed["overdue"] and listed["gate"]["verdict"] == "pass"
