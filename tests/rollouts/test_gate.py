"""Gates judged from records made by hand: the watch of a full deployment, sessions, cells, missing days."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from gapwatch.rollouts.gate import judge
from gapwatch.rollouts.kinds import e_path
from gapwatch.rollouts.mix import frozen_mix
from gapwatch.rollouts.overview import next_decision, overdue_words, watch_json
from gapwatch.rollouts.plan import PlanBody, freeze, of_stage
from gapwatch.rollouts.stage_record import StageRecord
from gapwatch.store.rollout.evidence import EvidenceRow, StageContracts, Surrounding
from gapwatch.store.rollout.rollouts import PolicyVersion, Rollout
from gapwatch.watching.sim_mix import SimCell

NOW = datetime(2026, 11, 2, tzinfo=UTC)
REFERENCE = {"simulator": "mujoco", "version": "3", "successes": 900, "n": 1000}


def rollout(stage, *criteria, days=10, **plan):
    body = PlanBody.model_validate({"criteria": [{**criterion, "stage": stage} for criterion in criteria], **plan})
    frozen = freeze(body, stage, None) | {"reference": REFERENCE, "power": [], "expected_episodes": None}
    at = NOW - timedelta(days=days)
    policy = PolicyVersion("grasp", "2")
    return Rollout(
        1, "cell", stage, at, "go", policy, None, at, None, 1, frozen, at, {}, None, None, at, None, None, None
    )


def rows(outcomes, sessions=None):
    return [
        EvidenceRow(
            str(place), place, 1, "success" if good else "failure", 0, 0, 0,
            None if sessions is None else sessions[place], NOW - timedelta(minutes=len(outcomes) - place), 1, None, "00",
        )
        for place, good in enumerate(outcomes)
    ]  # fmt: skip


def record(planned, outcomes, sessions=None, **around):
    beside = Surrounding(NOW, 0, 0, None, 500, 30.0, 0, 0)
    return StageRecord(
        planned,
        rows(outcomes, sessions),
        replace(beside, **around),
        StageContracts(None, None, None, []),
        {1: {"light": "day", "human": True}},
    )


def spread(good, bad):
    n = good + bad
    return [(place + 1) * good // n > place * good // n for place in range(n)]


DROP = {"id": "drop", "kind": "max_drop"}


def test_a_full_deployment_that_had_passed_and_falls_opens_the_gate_again():
    planned = rollout("full", DROP)
    good = spread(900, 100)
    assert judge(record(planned, good)).verdict == "pass"
    [found] = judge(record(planned, good + spread(60, 60))).criteria
    assert (found.verdict, found.breached) == ("fail", True)
    assert "open again" in found.note


def test_the_watch_relaxes_by_itself_and_ends():
    fallen = spread(900, 100) + spread(60, 60)
    chances = [watch_json(rollout("full", DROP, days=days), NOW)["alpha"] for days in (10, 40, 80)]
    assert chances == [0.2, 0.1, 0.05]
    over = rollout("full", DROP, days=100)
    assert watch_json(over, NOW)["over"]
    assert not judge(record(over, fallen)).criteria[0].breached


def test_a_breach_that_was_found_stays_found_when_the_watch_relaxes_and_ends():
    fallen = spread(900, 100) + [False, True] * 18
    young, old = rollout("full", DROP, days=10), rollout("full", DROP, days=95)
    found = record(young, fallen)
    assert judge(found).criteria[0].breached
    later = NOW + timedelta(days=85)
    assert judge(replace(found, around=replace(found.around, now=later))).criteria[0].breached
    # The same fall in the last days of the watch is not enough, and afterwards nothing is.
    assert not judge(record(replace(young, frozen_at=NOW - timedelta(days=80)), fallen)).criteria[0].breached
    assert not judge(record(old, fallen)).criteria[0].breached


def test_other_stages_have_no_such_watch():
    planned = rollout("supervised", DROP)
    assert not judge(record(planned, spread(900, 100) + spread(60, 60))).criteria[0].breached
    assert watch_json(planned, NOW) is None


def test_episodes_of_a_sitting_that_resemble_each_other_count_for_less():
    planned = rollout("supervised", DROP)
    outcomes = ([True] * 28 + [False] * 2) * 4 + [True] * 22 + [False] * 8
    sessions = [f"s{place // 30}" for place in range(len(outcomes))]
    alone, together = judge(record(planned, outcomes)), judge(record(planned, outcomes, sessions))
    assert together.criteria[0].design_effect > 1 == alone.criteria[0].design_effect
    assert together.criteria[0].e_value < alone.criteria[0].e_value


@pytest.mark.parametrize(("days", "verdict", "missing"), [(13, "not enough evidence", 1), (14, "pass", None)])
def test_days_are_whole(days, verdict, missing):
    planned = rollout("shadow", {"kind": "min_days", "limit": 14}, days=days)
    found = judge(record(planned, []))
    assert (found.verdict, found.criteria[0].missing) == (verdict, missing)


def in_mix(outcomes, lights):
    """Simulation: 95 % by day, 70 % at night, one night in five; robots as given."""
    cells = [SimCell({"light": "day"}, 760, 800), SimCell({"light": "night"}, 140, 200)]
    planned = rollout("supervised", DROP)
    planned = replace(planned, plan=planned.plan | {"reference": REFERENCE | {"mix": frozen_mix(cells)}})
    made = record(planned, outcomes)
    places = {light: place for place, light in enumerate(sorted(set(lights)), 1)}
    listed = [replace(row, condition_set_id=places[light]) for row, light in zip(made.rows, lights, strict=True)]
    return replace(made, rows=listed, levels={place: {"light": light} for light, place in places.items()})


def test_easier_work_is_not_taken_for_a_better_policy():
    """All by day, at 86 %: within ten points of simulation's 90 %, nine below its 95 % by day."""
    outcomes = spread(1720, 280)
    assert judge(record(rollout("supervised", DROP), outcomes)).criteria[0].verdict == "pass"
    [found] = judge(in_mix(outcomes, ["day"] * 2000)).criteria
    assert found.verdict == "not enough evidence"
    assert found.measured == pytest.approx(0.09)
    assert "held against 95.0 %" in found.note and "not 90.0 %" in found.note


def test_harder_work_is_not_taken_for_a_worse_policy():
    lights = ["day", "night"] * 300
    outcomes = [good for pair in zip(spread(285, 15), spread(210, 90), strict=True) for good in pair]
    made = in_mix(outcomes, lights)
    [found] = judge(made).criteria
    assert found.verdict == "pass" and found.measured == pytest.approx(0.0)
    path = e_path(made, of_stage(made.plan, "supervised")[0])
    assert 10 ** path[-1]["log10_e"] == pytest.approx(found.e_value, rel=1e-4)
    assert judge(record(rollout("supervised", DROP), outcomes)).criteria[0].verdict != "pass"


def test_conditions_that_simulation_never_had_let_nothing_pass():
    [found] = judge(in_mix([True] * 400, ["day"] * 200 + ["fog"] * 200)).criteria
    assert (found.verdict, found.unknown) == ("not enough evidence", 200)
    assert "200 episodes of 400 under conditions that simulation hardly has (light=fog)" in found.note


def test_numbers_among_conditions_are_cells_too():
    cells = {"kind": "cells_covered", "limit": 1, "conditions": {"clutter": ["3", "20 to 50"]}}
    with pytest.raises(ValidationError):
        rollout("supervised", cells)
    made = record(rollout("supervised", cells | {"limit": 0.99}), spread(2, 0))
    seen = [
        replace(row, number_names_id=7, numbers=[value]) for row, value in zip(made.rows, (3, 30), strict=True)
    ]
    assert judge(replace(made, rows=seen, names={7: ["clutter"]})).verdict == "pass"
    assert judge(replace(made, rows=seen[:1], names={7: ["clutter"]})).verdict == "not enough evidence"


def test_planned_cells_that_were_not_seen_are_missing():
    cells = {"kind": "cells_covered", "limit": 0.9, "conditions": {"light": ["day", "night"], "human": ["true"]}}
    [found] = judge(record(rollout("supervised", cells), spread(5, 0))).criteria
    assert (found.measured, found.verdict, found.missing) == (0.5, "not enough evidence", 1)


def test_a_change_starts_the_count_of_steady_episodes_anew():
    planned = rollout("supervised", {"kind": "drift_free", "limit": 10})
    assert judge(record(planned, spread(20, 0))).verdict == "pass"
    changed = judge(record(planned, spread(20, 0), changed_at=NOW - timedelta(minutes=5)))
    assert changed.criteria[0].missing == 6


def test_an_open_incident_fails_and_contracts_that_nobody_sent_leave_it_open():
    planned = rollout("supervised", {"kind": "no_open_incident"}, {"kind": "contract_equal"})
    calm, contract = judge(record(planned, spread(5, 0), open_alerts=2)).criteria
    assert (calm.verdict, contract.verdict) == ("fail", "not enough evidence")
    differing = replace(record(planned, []), contracts=StageContracts({"hz": 50}, {"hz": 20}, None, []))
    assert judge(differing).criteria[1].verdict == "fail"


def test_the_path_of_the_evidence_ends_where_the_gate_stands():
    judged = record(rollout("supervised", DROP), spread(90, 10))
    path = e_path(judged, of_stage(judged.plan, "supervised")[0])
    found = next(one for one in judge(judged).criteria if one.id == "drop")
    assert path[-1]["n"] == 100 and len(path) == 40
    assert 10 ** path[-1]["log10_e"] == pytest.approx(found.e_value, rel=1e-4)


def test_every_tested_kind_has_a_path():
    clean, rate = {"id": "clean", "kind": "zero_violations", "limit": 0.01}, {"kind": "max_rate", "limit": 0.1}
    judged = record(rollout("supervised", clean, rate | {"id": "rate", "measure": "overrides"}), spread(60, 0))
    of_clean, of_rate = (e_path(judged, one) for one in of_stage(judged.plan, "supervised"))
    found = next(one for one in judge(judged).criteria if one.id == "clean")
    assert 10 ** of_clean[-1]["log10_e"] == pytest.approx(found.e_value, rel=1e-3)
    assert of_rate[-1]["log10_e"] > 1
    shadow = record(rollout("shadow", {"kind": "max_infeasible", "limit": 0.1}), spread(9, 0))
    assert e_path(shadow, of_stage(shadow.plan, "shadow")[0])[-1]["log10_e"] < 0


def test_a_stage_that_waits_longer_than_its_budget_is_overdue_and_nothing_is_promoted():
    planned = rollout("shadow", {"kind": "min_days", "limit": 3}, days=30)
    assert overdue_words(planned, NOW) == "2 days over its budget of 28"
    assert next_decision(planned, "pass") == "promote to supervised"
    assert overdue_words(rollout("shadow", {"kind": "min_days", "limit": 3}, days=3), NOW) is None
    expired = replace(planned, plan=planned.plan | {"expires_at": "2026-10-20T00:00:00Z"})
    assert overdue_words(expired, NOW) == "the plan expired on 20 Oct 2026"
