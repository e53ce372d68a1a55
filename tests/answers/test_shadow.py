"""Episodes in shadow, through the API: in no rate of the candidate, and what is said of it instead."""

import csv
import io

import pytest
from answers.lab import LATER, attempts, real, sim

from gapwatch.rollup.verify import verify_project

BERLIN = "/deployments/berlin-line-3"
V13 = {"name": "bin-pick", "version": "1.3.0"}


def shadow(outcome="success", *, agree=100, **fields):
    field = {
        "executed_by": V13,
        "steps": 100,
        "agree": agree,
        "infeasible": 2,
        "near_limit": 5,
        "out_of_distribution": 0,
        "critical": {"steps": 10, "agree": min(agree, 10), "infeasible": 1},
    }
    return real(outcome, stage="shadow", shadow=fields.pop("shadow", field), **fields)


def in_shadow(n_good, n_bad, n_apart, **fields):
    return [
        *[shadow("success", **fields) for _ in range(n_good)],
        *[shadow("failure", **fields) for _ in range(n_bad)],
        *[shadow("success", agree=60, **fields) for _ in range(n_apart)],
    ]


def test_names_beyond_ascii_may_have_driven(lab):
    field = {"executed_by": {"name": "Gre\u0301ifer", "version": "1"}, "steps": 10, "agree": 9}
    lab.send([shadow(shadow=field)])
    [listed] = lab.ask("/episodes", domain="real")["episodes"]
    assert listed["shadow"]["executed_by"]["name"] == "Gr\u00e9ifer"


def test_what_drove_in_shadow_is_in_no_rate_of_the_candidate(lab):
    lab.send([*attempts(sim, 90, 10), *attempts(real, 40, 10), *in_shadow(10, 80, 10)])
    lab.send([real("failure", stage="shadow") for _ in range(30)])
    drop = lab.ask(f"{BERLIN}/drop")
    assert (drop["real"]["n"], drop["real"]["value"]) == (50, pytest.approx(0.8))
    # Nor in a window that ends within a day, which is counted from episodes.
    until = LATER.isoformat()
    assert lab.ask(f"{BERLIN}/drop", since="2026-10-05T11:30:00Z", until=until)["real"]["n"] == 50
    ledger = lab.ask(f"{BERLIN}/ledger")
    assert ledger["drop"] == pytest.approx(0.1)
    assert lab.ask(f"{BERLIN}/failures")["n_real"] == 50
    assert lab.ask(f"{BERLIN}/now")["estimate"]["n"] == 50
    assert sum(step["n"] for step in lab.ask(f"{BERLIN}/trend")["steps"]) == 50
    [row] = lab.ask("/deployments")["deployments"]
    assert row["real"]["n"] == 50
    assert lab.ask("/policies/bin-pick/drop")["real"]["n"] == 50
    # They are listed, and say what they are.
    listed = lab.ask("/episodes", domain="real", stage="shadow", limit=200)["episodes"]
    assert len(listed) == 130
    assert {one["domain"] for one in listed} == {"real"}
    assert sum("shadow" in one for one in listed) == 100
    exported = list(csv.DictReader(io.StringIO(lab.get("/episodes/export", format="csv").text)))
    assert sum(row["stage"] == "shadow" and row["domain"] == "real" for row in exported) == 130
    assert sum('"executed_by"' in row["shadow"] for row in exported) == 100


def test_the_bound_and_the_rates_of_a_candidate_in_shadow(lab):
    lab.send([*attempts(sim, 9, 1), *in_shadow(207, 23, 20)])
    answer = lab.ask(f"{BERLIN}/shadow")
    bound = answer["bound"]
    # 8 % disagree, 90 % of the agreeing succeed.
    assert (bound["low"], bound["high"], bound["n"]) == (pytest.approx(0.828), pytest.approx(0.908), 250)
    assert bound["interval"][0] < 0.79 and bound["interval"][1] > 0.93
    assert "agreed to the end" in bound["assumption"]
    assert answer["n_shadow"] == 250 and answer["n_real"] == 0 and answer["without_field"] == 0
    assert answer["executed_by"] == [{"who": "bin-pick 1.3.0", "n": 250, "successes": 227, "failures": 23}]
    rates = {one["kind"]: one for one in answer["rates"]}
    assert rates["infeasible"]["raw"] == {
        "value": pytest.approx(0.02),
        "interval": [pytest.approx(0.02, abs=0.002), pytest.approx(0.02, abs=0.002)],
        "n": 250,
        "steps": 25_000,
        "reason": None,
    }
    assert rates["infeasible"]["critical"]["value"] == pytest.approx(0.1)
    assert rates["disagree"]["raw"]["value"] == pytest.approx(20 * 40 / 25_000)
    low, high = rates["disagree"]["raw"]["interval"]
    assert low < 0.025 and high > 0.04
    assert rates["near_limit"]["critical"]["reason"].startswith("No episode")


def test_episodes_without_the_field_are_told_of_on_their_deployment(lab, project, service):
    lab.send([real("success", stage="shadow") for _ in range(3)])
    answer = lab.ask(f"{BERLIN}/shadow")
    [caution] = [one for one in answer["warnings"] if one["code"] == "shadow-without-field"]
    assert caution["message"].startswith("3 episodes of stage shadow came without the field")
    assert answer["executed_by"] == [{"who": "unknown", "n": 3, "successes": 3, "failures": 0}]
    assert answer["bound"]["low"] is None and "agreed" in answer["bound"]["reason"]
    assert lab.ask(f"{BERLIN}/drop")["real"]["n"] == 0


def test_a_forecast_is_frozen_when_the_candidate_first_drives_and_scored_later(lab, project):
    slip = {"phase": "contact", "labels": ["slip"]}
    lab.send([*attempts(sim, 95, 5, failure=None), *in_shadow(80, 0, 0)])
    lab.send([shadow("failure", failure=slip) for _ in range(20)])
    moving = lab.ask(f"{BERLIN}/shadow")["forecast"]
    assert moving["frozen_at"] is None
    [contact] = [one for one in moving["categories"] if one["category"] == "contact_dynamics"]
    assert contact["expected"] == pytest.approx(0.2)
    lab.send([real("success", stage="supervised", at=LATER)])
    frozen = lab.ask(f"{BERLIN}/shadow")["forecast"]
    assert frozen["frozen_at"] is not None and frozen["followed"] == 1 and frozen["score"] is None
    # More shadow does not move it; what it drives scores it.
    lab.send([*in_shadow(50, 0, 0), *attempts(real, 79, 0, stage="supervised", at=LATER)])
    lab.send([real("failure", stage="supervised", at=LATER, failure=slip) for _ in range(20)])
    scored = lab.ask(f"{BERLIN}/shadow")["forecast"]
    assert scored["frozen_at"] == frozen["frozen_at"] and scored["n"] == frozen["n"] == 100
    [contact] = [one for one in scored["categories"] if one["category"] == "contact_dynamics"]
    assert contact["observed"] == pytest.approx(0.2) and contact["inside"] is True
    assert scored["score"] is not None and scored["error"] < 0.06


def test_a_correction_moves_an_episode_between_the_sides(lab, project):
    record = shadow("failure")
    lab.send([record, *attempts(real, 9, 0)])
    with project.client("admin") as client:
        driven = {name: value for name, value in record.items() if name != "shadow"} | {"stage": "supervised"}
        assert client.put(f"/episodes/{record['id']}", json=driven).status_code == 200
        lab.wait()
        assert lab.ask(f"{BERLIN}/drop")["real"]["n"] == 10
        assert client.put(f"/episodes/{record['id']}", json=record).status_code == 200
        lab.wait()
    assert lab.ask(f"{BERLIN}/drop")["real"]["n"] == 9
    assert verify_project(project.database, project.id, project.slug).differences == 0


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"stage": "supervised"}, "/shadow", "not-in-shadow"),
        ({"shadow": {"executed_by": "robot", "steps": 1}}, "/shadow/executed_by", "unknown-value"),
        ({"shadow": {"steps": 1}}, "/shadow", "missing"),
        ({"shadow": {"executed_by": "human", "agree": 1}}, "/shadow/steps", "missing"),
        ({"shadow": {"executed_by": "human", "steps": 3, "agree": 4}}, "/shadow/agree", "more-than-steps"),
        ({"shadow": {"executed_by": "human", "steps": -1}}, "/shadow/steps", "out-of-range"),
        ({"shadow": {"executed_by": "human", "steps": 2.5}}, "/shadow/steps", "wrong-type"),
        ({"shadow": {"executed_by": "human", "steps": 2, "agreed": 1}}, "/shadow", "unknown-field"),
        (
            {"shadow": {"executed_by": {"name": "bin-pick", "version": "1.4.0"}}},
            "/shadow/executed_by",
            "is-the-candidate",
        ),
        (
            {"shadow": {"executed_by": "human", "steps": 3, "critical": {"steps": 4}}},
            "/shadow/critical/steps",
            "more-than-the-episode",
        ),
        (
            {"shadow": {"executed_by": "human", "steps": 9, "agree": 9, "critical": {"steps": 5, "agree": 4}}},
            "/shadow/critical/agree",
            "more-than-steps",
        ),
    ],
)
def test_what_is_refused_is_named(project, fields, pointer, code):
    with project.client() as client:
        for answer in (
            client.post("/episodes", json=shadow() | fields),
            client.post("/episodes/batch", json=[shadow() | fields]),
        ):
            assert answer.status_code == 422, answer.text
            [fault] = [one for one in answer.json()["errors"] if one["code"] == code]
            assert fault["pointer"] == pointer


def test_a_retry_is_a_duplicate_and_other_counts_are_a_conflict(project):
    record = shadow()
    with project.client() as client:
        assert client.post("/episodes", json=record).status_code == 201
        assert client.post("/episodes", json=record).json()["status"] == "duplicate"
        other = record | {"shadow": record["shadow"] | {"agree": 99}}
        assert client.post("/episodes", json=other).status_code == 409
    with project.client("read") as client:
        assert client.get(f"/episodes/{record['id']}").json()["shadow"] == record["shadow"]
