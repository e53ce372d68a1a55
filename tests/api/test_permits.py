"""What may drive, as robots ask for it: at once, by waiting, and after a press of stop."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from gapwatch.store.rollout import rollouts
from gapwatch.store.rollout.rollouts import Decision, PolicyVersion
from parts import episode, make_project, wait_until

PERMIT = "/deployments/berlin-line-3/permit"
DRILL = "/deployments/berlin-line-3/rollout/drill"
CANDIDATE, FALLBACK = PolicyVersion("bin-pick", "1.4.0"), PolicyVersion("bin-pick", "1.3.0")


@pytest.fixture
def deployed(project):
    with project.client() as client:
        assert client.post("/episodes", json=episode(stage="supervised")).status_code == 201
    return project


def begin(project, stage="supervised"):
    deployment_id = project.value("SELECT id FROM deployments WHERE project_id = :p")
    with project.database.transaction() as connection:
        rollouts.put_rollout(
            connection, project.id, deployment_id, stage=stage, policy=CANDIDATE, fallback=FALLBACK, plan=None
        )


def decide(project, kind, state, stage="supervised"):
    with project.database.transaction() as connection:
        rollout = rollouts.lock_rollout(connection, project.id, "berlin-line-3")
        decision = Decision(kind, stage, state, "somebody", "because", {"kind": kind})
        return rollouts.decide(connection, project.id, rollout, decision)


def test_before_anybody_decided_the_deployments_own_policy_may_drive(deployed):
    with deployed.client() as client:
        answer = client.get(PERMIT)
        assert answer.status_code == 200
        assert answer.json() == {
            "policy": {"name": "bin-pick", "version": "1.4.0"},
            "stage": "supervised",
            "state": "go",
            "decided_at": None,
            "decision": None,
        }
        again = client.get(PERMIT, headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == answer.headers["ETag"]


def test_every_decision_is_another_permit(deployed):
    begin(deployed)
    tags = []
    with deployed.client() as client:
        for kind, state, policy in (
            ("stop", "stop", None),
            ("rollback", "fallback", {"name": "bin-pick", "version": "1.3.0"}),
            ("resume", "go", {"name": "bin-pick", "version": "1.4.0"}),
        ):
            row = decide(deployed, kind, state)

            def is_told(number=row.id):
                answer = client.get(PERMIT)
                return answer if answer.json()["decision"] == number else None

            answer = wait_until(is_told, 10, what="the permit")
            assert (answer.json()["state"], answer.json()["policy"]) == (state, policy)
            assert answer.json()["decided_at"] is not None
            tags.append(answer.headers["ETag"])
    assert len(set(tags)) == 3


def test_in_shadow_the_candidate_may_not_drive(deployed):
    begin(deployed, stage="shadow")
    with deployed.client() as client:
        answer = client.get(PERMIT).json()
    assert (answer["state"], answer["stage"], answer["policy"]["version"]) == ("go", "shadow", "1.3.0")


def test_who_waits_is_told_when_it_is_decided(deployed):
    begin(deployed)
    with deployed.client() as client, ThreadPoolExecutor(20) as waiters:
        tag = client.get(PERMIT).headers["ETag"]

        def wait(_):
            return client.get(PERMIT, params={"wait": 25}, headers={"If-None-Match": tag})

        answers = [waiters.submit(wait, number) for number in range(20)]
        # The others hold no connection of the database meanwhile.
        held = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gapwatch-permits'"
        assert deployed.value(held) <= 2
        decide(deployed, "stop", "stop")
        told = [answer.result() for answer in answers]
    assert {answer.status_code for answer in told} == {200}
    assert {answer.json()["state"] for answer in told} == {"stop"}


def test_nothing_new_is_304_after_the_time(deployed):
    with deployed.client() as client:
        tag = client.get(PERMIT).headers["ETag"]
        answer = client.get(PERMIT, params={"wait": 0.3}, headers={"If-None-Match": tag})
        assert answer.status_code == 304
        # Another tag is not worth waiting for.
        answer = client.get(PERMIT, params={"wait": 20}, headers={"If-None-Match": '"0-other"'})
        assert answer.status_code == 200


@pytest.mark.parametrize("wait", ["31", "-1", "nan", "x"])
def test_a_wait_that_is_no_time_is_named(deployed, wait):
    with deployed.client() as client:
        answer = client.get(PERMIT, params={"wait": wait})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/query/wait"


def test_a_permit_is_of_its_project_alone(deployed, service, service_database):
    other = make_project(service, service_database)
    with other.client() as client:
        assert client.get(PERMIT).status_code == 404
    with deployed.client("read") as client:
        assert client.get(PERMIT).status_code == 403
    assert httpx.get(f"{deployed.url}/api/v1{PERMIT}").status_code == 401
    with deployed.client("admin") as client:
        assert client.get("/deployments/nowhere/permit").status_code == 404


def test_a_drill_measures_when_each_robot_that_asks_knew(deployed):
    begin(deployed)
    stopped = threading.Event()

    def robot(name):
        tag = ""
        with deployed.client() as client:
            while not stopped.is_set():
                headers = {"If-None-Match": tag, "Gapwatch-Client": name}
                answer = client.get(PERMIT, params={"wait": 1}, headers=headers)
                tag = answer.headers.get("ETag", tag)

    robots = [threading.Thread(target=robot, args=(f"robot-{number}",)) for number in range(5)]
    for one in robots:
        one.start()
    try:
        known = "SELECT count(*) FROM permit_clients WHERE project_id = :p"
        wait_until(lambda: deployed.value(known) == 5, 20, what="five robots")
        with deployed.client("admin") as client:
            answer = client.post(DRILL, json={"reason": "quarterly"})
    finally:
        stopped.set()
        for one in robots:
            one.join()
    assert answer.status_code == 200, answer.text
    drill = answer.json()
    assert (drill["kind"], drill["clients"], drill["knew"], drill["missing"]) == ("drill", 5, 5, [])
    assert 0 <= drill["p95_seconds"] <= drill["seconds"]
    stored = deployed.rows("SELECT drill_at IS NOT NULL, drill_seconds, state FROM rollouts WHERE project_id = :p")
    assert stored[0][0] and stored[0][1] == pytest.approx(drill["seconds"], abs=1e-3) and stored[0][2] == "go"
    assert deployed.value("SELECT count(*) FROM drills WHERE project_id = :p") == 1


def test_a_drill_needs_a_rollout_and_an_admin(deployed):
    with deployed.client("admin") as client:
        assert client.post(DRILL, json={}).status_code == 404
        assert client.post("/deployments/nowhere/rollout/drill", json={}).status_code == 404
    with deployed.client("ingest") as client:
        assert client.post(DRILL, json={}).status_code == 403


def test_a_drill_without_robots_says_so(deployed):
    begin(deployed)
    with deployed.client("admin") as client:
        drill = client.post(DRILL, json={}).json()
    assert (drill["clients"], drill["seconds"]) == (0, None)
    assert "No client asked" in drill["reason_of_none"]
    assert deployed.rows("SELECT drill_at FROM rollouts WHERE project_id = :p") == [(None,)]
