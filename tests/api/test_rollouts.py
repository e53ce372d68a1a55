"""A deployment walked from offline to full and back over the API, and everything that is refused on the way."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from sqlalchemy import text

from gapwatch.rollouts.verify_packets import verify_packets
from parts import episode

SAFE = {"violations": 0, "interventions": 0, "overrides": 0}
FALLBACK = {"name": "bin-pick", "version": "1.3.0"}
CONTRACT = {"control_hz": 50}
SIMULATOR = {"name": "mujoco", "version": "3.3.0"}
# What a stage can show within a test: no days.
CRITERIA = [
    {"id": "episodes", "kind": "min_episodes", "limit": 300, "stage": "offline"},
    {"id": "contract", "kind": "contract_equal", "stage": "offline"},
    {"id": "infeasible", "kind": "max_infeasible", "limit": 0.2, "stage": "shadow"},
    {"id": "disagreement", "kind": "max_disagreement", "limit": 0.5, "stage": "shadow", "critical": True},
    {"id": "drop", "kind": "max_drop", "stage": "supervised", "claim": "It is as good as simulated."},
    {"id": "overrides", "kind": "max_rate", "measure": "overrides", "limit": 0.2, "stage": "supervised"},
    {"id": "accepted", "kind": "min_rate", "measure": "acceptance", "limit": 0.5, "stage": "supervised"},
    {"id": "clean", "kind": "zero_violations", "limit": 0.05, "stage": "supervised"},
    {"id": "steady", "kind": "drift_free", "limit": 50, "stage": "supervised"},
    {
        "id": "cells",
        "kind": "cells_covered",
        "limit": 0.9,
        "conditions": {"light": ["day", "night"]},
        "stage": "supervised",
    },
    {"id": "calm", "kind": "no_open_incident", "stage": "supervised"},
]
PLAN = {"margin": 0.2, "alpha": 0.1, "fallback": FALLBACK, "criteria": CRITERIA}


def send(project, records):
    with project.client() as client:
        answer = client.post("/episodes/batch", json=records)
    assert answer.json()["accepted"] == len(records), answer.text


def sims(count=400, every=10):
    return [
        episode(
            domain="sim",
            deployment=None,
            simulator=SIMULATOR,
            contract=CONTRACT,
            outcome="failure" if place % every == 0 else "success",
        )
        for place in range(count)
    ]


def reals(stage, count, failed_every=20, **more):
    return [
        episode(
            stage=stage,
            contract=CONTRACT,
            safety=SAFE,
            conditions={"light": "day" if place % 2 else "night"},
            outcome="failure" if place % failed_every == 7 else "success",
            **more,
        )
        for place in range(count)
    ]


def shadows(count, infeasible=1):
    return reals(
        "shadow",
        count,
        shadow={
            "executed_by": FALLBACK,
            "steps": 100,
            "agree": 90,
            "infeasible": infeasible,
            "critical": {"steps": 10, "agree": 9},
        },
    )


@pytest.fixture
def planned(project):
    """A project with a simulated policy and a deployment that is offline, and its rollout."""
    send(project, [*sims(), *reals("offline", 2)])
    with project.client("admin") as client:
        answer = client.put("/deployments/berlin-line-3/rollout", json={"plan": PLAN})
    assert answer.status_code == 200, answer.text
    return project


def decide(project, kind, status=201, **body):
    with project.client("admin") as client:
        answer = client.post(f"/deployments/berlin-line-3/rollout/{kind}", json={"reason": "as planned"} | body)
    assert answer.status_code == status, answer.text
    return answer.json()


def gate(project):
    with project.client("read") as client:
        return client.get("/deployments/berlin-line-3/gate").raise_for_status().json()


def of(found, name):
    return next(criterion for criterion in found["criteria"] if criterion["id"] == name)


def test_a_deployment_walks_from_offline_to_full_and_is_rolled_back(planned, settled):
    settled(planned)
    found = gate(planned)
    assert (found["from"], found["to"], found["verdict"]) == ("offline", "shadow", "pass"), found
    decide(planned, "promote")
    assert gate(planned)["verdict"] == "not enough evidence"
    send(planned, shadows(80))
    found = gate(planned)
    assert found["verdict"] == "pass", found
    assert of(found, "infeasible")["measured"] == pytest.approx(0.01)
    assert of(found, "disagreement")["measured"] == pytest.approx(0.1)
    decide(planned, "promote")
    send(planned, reals("supervised", 150))
    found = gate(planned)
    assert found["verdict"] == "pass", found
    assert found["looks"] == 150
    assert of(found, "drop")["n"] == 150 and of(found, "drop")["interval"][1] < 0.2
    assert "0.1 = 4 × 0.025" in found["union"]
    decide(planned, "promote")
    with planned.client("read") as client:
        rollout = client.get("/deployments/berlin-line-3/rollout").json()
        assert (rollout["stage"], rollout["state"], rollout["watch"]["of"]) == ("full", "go", 90)
        assert rollout["driver"] == {"name": "bin-pick", "version": "1.4.0"}
    back = decide(planned, "rollback", reason="the gripper slips", to="shadow")
    assert (back["from"], back["to"], back["state"]) == ("full", "shadow", "fallback")
    with planned.client("read") as client:
        rollout = client.get("/deployments/berlin-line-3/rollout").json()
        assert rollout["driver"] == FALLBACK
        decisions = client.get("/decisions", params={"deployment": "berlin-line-3"}).json()["decisions"]
        events = client.get("/events").json()["events"]
    assert [row["kind"] for row in decisions] == ["rollback", "promote", "promote", "promote"]
    assert [row["previous_hash"] for row in decisions[:-1]] == [row["packet_hash"] for row in decisions[1:]]
    assert sum(event["kind"] == "rollout" for event in events) == 4
    actions = {row[0] for row in planned.rows("SELECT action FROM audit_entries WHERE project_id = :p")}
    assert {"rollout.plan", "rollout.promote", "rollout.rollback"} <= actions


def test_a_packet_has_everything_and_its_hash_can_be_computed_by_anybody(planned):
    decide(planned, "promote", override=True, reason="the lab is closed next week")
    send(planned, shadows(30))
    decision = decide(planned, "hold")
    with planned.client("read") as client:
        answer = client.get(f"/decisions/{decision['id']}/packet").raise_for_status()
        html = client.get(f"/decisions/{decision['id']}/packet", params={"format": "html"}).raise_for_status()
        assert client.get(f"/decisions/{decision['id']}/packet", params={"format": "pdf"}).status_code == 422
        assert client.get("/decisions/999999/packet").status_code == 404
    packet = answer.json()
    written = json.dumps(packet, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert (
        sha256(written.encode()).hexdigest() == decision["packet_hash"] == answer.headers["gapwatch-packet-hash"]
    )
    assert packet["evidence"]["rows"] == 30 and len(packet["evidence"]["row_set_hash"]) == 64
    assert "SELECT e.id" in packet["evidence"]["query"]
    assert packet["versions"]["policy"] == {"name": "bin-pick", "version": "1.4.0"}
    assert packet["fallback"] == FALLBACK and packet["approved_by"]["role"] == "admin"
    assert packet["claims"] and packet["frozen_at"] and packet["retention"] == "standard"
    assert {"paths", "coverage", "interventions", "deviations", "drill"} <= packet.keys()
    assert html.headers["content-type"].startswith("text/html")
    assert "src=" not in html.text and "href=" not in html.text
    assert decision["packet_hash"] in html.text


def test_a_gate_that_is_not_passed_lets_nobody_through_without_an_override(planned):
    decide(planned, "promote", override=True, reason="only to look at it")
    answer = decide(planned, "promote", 409)
    assert "not enough evidence" in answer["detail"]
    past = decide(planned, "promote", override=True, reason="only to look at it")
    assert past["override"]
    with planned.client("read") as client:
        packet = client.get(f"/decisions/{past['id']}/packet").json()
    assert packet["approved_by"]["override"] and "not passed" in packet["deviations"][0]
    short = decide(planned, "promote", 422, override=True, reason="go")
    assert short["errors"][0]["pointer"] == "/body/reason"


def test_the_way_back_needs_no_gate_and_a_stop_keeps_until_it_is_resumed(planned):
    assert decide(planned, "stop")["state"] == "stop"
    decide(planned, "promote", 409, override=True, reason="long enough a reason")
    assert decide(planned, "resume")["state"] == "go"
    assert "nothing to resume" in decide(planned, "resume", 409)["detail"]
    assert decide(planned, "rollback")["to"] == "offline"
    assert decide(planned, "hold", 422, to="full")["errors"][0]["pointer"] == "/body/to"
    assert decide(planned, "promote", 422, to="full", override=True)["errors"][0]["pointer"] == "/body/to"


def test_missing_data_never_pass(planned):
    decide(planned, "promote", override=True, reason="only to look at it")
    silent = [record | {"shadow": {"executed_by": FALLBACK}} for record in shadows(100)]
    send(planned, silent)
    infeasible = of(gate(planned), "infeasible")
    assert (infeasible["verdict"], infeasible["unknown"]) == ("not enough evidence", 100)
    decide(planned, "promote", override=True, reason="only to look at it")
    send(planned, [record | {"safety": {}} for record in reals("supervised", 200)])
    found = gate(planned)
    for name in ("overrides", "accepted", "clean"):
        assert of(found, name)["verdict"] == "not enough evidence", of(found, name)
        assert "do not say" in of(found, name)["note"]


def test_an_episode_sent_twice_counts_once_and_other_versions_and_stages_not_at_all(planned):
    decide(planned, "promote", override=True, reason="only to look at it")
    records = shadows(10)
    send(planned, records)
    with planned.client() as client:
        assert client.post("/episodes/batch", json=records).json()["duplicates"] == 10
    send(planned, reals("supervised", 5))
    send(planned, [record | {"policy": {"name": "bin-pick", "version": "9"}} for record in shadows(5)])
    assert gate(planned)["looks"] == 10


def test_violations_and_a_rate_far_above_its_limit_fail(planned):
    decide(planned, "promote", override=True, reason="only to look at it")
    send(planned, shadows(100, infeasible=60))
    assert gate(planned)["verdict"] == "fail"
    decide(planned, "promote", override=True, reason="only to look at it")
    records = reals("supervised", 60)
    records[3] |= {"safety": {"violations": 1, "interventions": 0, "overrides": 0}}
    send(planned, records)
    assert of(gate(planned), "clean")["verdict"] == "fail"


def test_another_plan_starts_anew_and_says_so(planned):
    url = "/deployments/berlin-line-3/rollout"
    with planned.client("admin") as client:
        same = client.put(url, json={"plan": PLAN}).json()
        assert not same["restarted"]
        before = same["frozen_at"]
        changed = client.put(url, json={"plan": PLAN | {"margin": 0.15}}).json()
        assert changed["restarted"] and "anew" in changed["message"] and changed["frozen_at"] > before
        moved = client.put(url, json={"plan": PLAN, "stage": "full"})
        assert moved.status_code == 409


def test_another_candidate_begins_at_the_bottom_and_drives_by_no_plan(planned):
    url, other = "/deployments/berlin-line-3/rollout", {"name": "bin-pick", "version": "2.0.0"}
    for _ in range(2):
        decide(planned, "promote", override=True, reason="only to look at it")
    decide(planned, "stop")
    with planned.client("admin") as client:
        high = client.put(url, json={"plan": PLAN, "policy": other, "stage": "supervised"})
        assert high.status_code == 409 and high.json()["errors"][0]["pointer"] == "/body/stage"
        bare = client.put(url, json={"plan": PLAN | {"fallback": None}, "policy": other})
        assert bare.status_code == 422 and bare.json()["errors"][0]["pointer"] == "/body/plan/fallback"
        begun = client.put(url, json={"plan": PLAN, "policy": other}).json()
        # A stop stays until somebody resumes.
        assert (begun["stage"], begun["state"], begun["restarted"]) == ("offline", "stop", True)
    decide(planned, "resume")
    with planned.client() as client:
        permit = client.get("/deployments/berlin-line-3/permit").json()
    assert (permit["state"], permit["policy"]) == ("go", FALLBACK)


def test_two_who_press_at_once_promote_and_roll_back_by_one_stage(planned):
    first = decide(planned, "promote", override=True, reason="only to look at it", **{"from": "offline"})
    assert first["to"] == "shadow"
    late = decide(planned, "promote", 409, override=True, reason="only to look at it", **{"from": "offline"})
    assert "at shadow now, not at offline" in late["detail"]
    assert decide(planned, "rollback", **{"from": "shadow"})["to"] == "offline"
    decide(planned, "rollback", 409, **{"from": "shadow"})
    # A stop is a stop, whatever was seen.
    assert decide(planned, "stop", **{"from": "shadow"})["state"] == "stop"


def test_an_expired_plan_promotes_nobody(planned, settled):
    settled(planned)
    ends = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    with planned.client("admin") as client:
        answer = client.put("/deployments/berlin-line-3/rollout", json={"plan": PLAN | {"expires_at": ends}})
        assert answer.json()["gate"]["verdict"] == "pass"
    expire = 'UPDATE rollouts SET plan = plan || \'{"expires_at": "2026-01-01T00:00:00Z"}\' WHERE project_id = :p'
    with planned.database.transaction() as connection:
        connection.execute(text(expire), {"p": planned.id})
    assert "its plan has expired; send it anew" in decide(planned, "promote", 409)["detail"]
    past = decide(planned, "promote", override=True, reason="it expired over the holidays")
    with planned.client("read") as client:
        assert "The plan had expired." in client.get(f"/decisions/{past['id']}/packet").json()["deviations"]


def test_without_a_fallback_the_answer_says_that_nothing_may_drive(project):
    send(project, [*sims(), *shadows(1)])
    plan = {key: value for key, value in PLAN.items() if key != "fallback"}
    with project.client("admin") as client:
        answer = client.put("/deployments/berlin-line-3/rollout", json={"stage": "shadow", "plan": plan}).json()
    assert "nothing may drive" in answer["message"] and not answer["restarted"]


def test_the_power_card_comes_with_the_plan(planned):
    with planned.client("read") as client:
        rollout = client.get("/deployments/berlin-line-3/rollout").json()
    assert [row["true_drop"] for row in rollout["power"]] == [0.0, 0.02, 0.05]
    assert all(row["median_episodes"] > 0 for row in rollout["power"])
    reference = rollout["plan"]["reference"]
    assert (reference["simulator"], reference["version"]) == ("mujoco", "3.3.0")
    assert (reference["successes"], reference["n"], reference["mix"]["conditions"]) == (360, 400, [])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"plan": {"margin": 2}}, "/body/plan/margin"),
        ({"plan": {"criteria": [{"kind": "max_rate", "limit": 0.1}]}}, "/body/plan/criteria/0"),
        ({"plan": {"criteria": [{"kind": "magic"}]}}, "/body/plan/criteria/0/kind"),
        ({"plan": {"criteria": [{"kind": "min_days"}]}}, "/body/plan/criteria/0"),
        ({"plan": {"fallback": {"name": "bin-pick", "version": "1.4.0"}}}, "/body/plan/fallback"),
        ({"plan": {"expires_at": "soon"}}, "/body/plan/expires_at"),
        ({"stage": "moon", "plan": {}}, "/body/stage"),
        (
            {"plan": {"criteria": [{"kind": "min_days", "limit": 3}, {"kind": "min_days", "limit": 4}]}},
            "/body/plan/criteria",
        ),
        (
            {"stage": "shadow", "plan": {"criteria": [{"kind": "min_days", "limit": 40, "stage": "shadow"}]}},
            "/body/plan/criteria",
        ),
    ],
)
def test_a_bad_plan_is_refused_with_its_place(project, body, pointer):
    send(project, reals("offline", 1))
    with project.client("admin") as client:
        answer = client.put("/deployments/berlin-line-3/rollout", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)


def test_a_plan_that_its_episodes_cannot_decide_is_refused_with_the_number(project):
    send(project, [*sims(), *reals("supervised", 2)])
    plan = {"margin": 0.2, "criteria": [{"kind": "max_drop", "stage": "supervised"}], "budget": {"episodes": 10}}
    with project.client("admin") as client:
        answer = client.put("/deployments/berlin-line-3/rollout", json={"plan": plan})
        assert answer.status_code == 422
        assert "takes" in answer.json()["detail"] and "10 are expected" in answer.json()["detail"]
        narrow = plan | {"margin": 0.01, "budget": {"episodes": 100_000}}
        answer = client.put("/deployments/berlin-line-3/rollout", json={"plan": narrow})
        assert "simulate more or widen the margin" in answer.json()["detail"]


def test_what_is_not_there_and_who_may_not(project):
    send(project, reals("offline", 1))
    with project.client("read") as client:
        assert client.get("/deployments/nowhere/rollout").status_code == 404
        assert "begin one" in client.get("/deployments/berlin-line-3/gate").json()["detail"]
        assert client.put("/deployments/berlin-line-3/rollout", json={"plan": {}}).status_code == 403
        assert client.post("/deployments/berlin-line-3/rollout/stop", json={"reason": "x"}).status_code == 403
        assert client.get("/rollouts").json() == {"rollouts": []}
    with project.client("admin") as client:
        assert client.post("/deployments/berlin-line-3/rollout/stop", json={"reason": "x"}).status_code == 404
        assert client.post("/deployments/berlin-line-3/rollout/stop", json={}).status_code == 422


def test_packets_are_reproduced_and_what_aged_out_is_named(planned):
    decide(planned, "promote", override=True, reason="only to look at it")
    records = shadows(40)
    send(planned, records)
    decide(planned, "hold")
    done = verify_packets(planned.database, planned.id, planned.slug)
    assert (done.packets, done.reproduced, done.faults, done.aged) == (2, 2, [], [])
    # An episode that is committed a moment after the decision, with a number from before it.
    with planned.database.transaction() as connection:
        columns = """
            SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
            WHERE table_name = 'episodes' AND column_name NOT IN ('id', 'seq')
            """
        names = connection.execute(text(columns)).scalar_one()
        copied = f"INSERT INTO episodes (id, {names}) SELECT 'late', {names} FROM episodes WHERE id = :id"
        connection.execute(text(copied), {"id": records[0]["id"]})
        send(planned, shadows(1))
        decide(planned, "hold")
    done = verify_packets(planned.database, planned.id, planned.slug)
    assert (done.reproduced, done.faults) == (2, [])
    assert "1 more were being stored while it was decided" in done.aged[0]
    with planned.client("admin") as client:
        assert client.delete(f"/episodes/{records[5]['id']}").is_success
    done = verify_packets(planned.database, planned.id, planned.slug)
    assert done.reproduced == 1 and done.faults == []
    assert "of 40 episodes 1 are gone" in done.aged[0]


def test_a_figure_that_does_not_come_out_again_is_a_fault(planned):
    decide(planned, "promote", override=True, reason="only to look at it")
    send(planned, records := shadows(10))
    decide(planned, "hold")
    forged = "UPDATE episodes SET interventions = 3 WHERE project_id = :p AND id = :id"
    with planned.database.transaction() as connection:
        connection.execute(text(forged), {"p": planned.id, "id": records[0]["id"]})
    [fault] = verify_packets(planned.database, planned.id, planned.slug).faults
    assert "interventions do not come out again" in fault
