"""Episodes through rules: what fires, on what evidence, and the same whatever the batches."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pydantic import ValidationError

from gapwatch.watching.detector_run import StoredDetector
from gapwatch.watching.engine import watch_episodes
from gapwatch.watching.kinds import DEFAULT_RULES, read_params, rules_in_force
from gapwatch.watching.kinds.drift import DriftParams
from gapwatch.watching.kinds.drop import DropParams
from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.kinds.safety import SafetyParams
from gapwatch.watching.kinds.stage_gate import StageGateParams
from gapwatch.watching.matchers import Match
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode

START = datetime(2026, 11, 1, tzinfo=UTC)


def seen(number, success=True, **fields):
    at = START + timedelta(minutes=number)
    given = {"policy_id": 1, "stage": "full", "robot": "r1"} | fields
    return SeenEpisode(f"e{number}", at, at, "success" if success else "failure", **given)


def episodes(*parts, seed=1, **fields):
    """So many episodes at a rate, then so many at another."""
    rng = np.random.default_rng(seed)
    outcomes = [bool(x) for rate, n in parts for x in rng.random(n) < rate]
    return [seen(number, success, **fields) for number, success in enumerate(outcomes)]


def rule(params, name="r", severity="warning", **more):
    kind = next(r.kind for r in DEFAULT_RULES if type(r.params) is type(params))
    return Rule(name, kind, params, severity, **more)


def watched(rules, given, *, batch=None, sim=(0, 0), through_json=False):
    stored, found, at = {}, [], 0
    while at < len(given):
        part = given[at : at + (batch or len(given))]
        fresh, states = watch_episodes(rules, stored, part, count=at, sim_counts=lambda _: sim)
        if through_json:
            states = {
                key: StoredDetector(json.loads(json.dumps(s.params)), json.loads(json.dumps(s.state)))
                for key, s in states.items()
            }
        stored = stored | states
        found += [(f.rule.name, f.series, f.input, at + f.index, f.evidence) for f in fresh]
        at += len(part)
    return found


def kinds(found):
    return [(name, series, given) for name, series, given, _, _ in found]


def test_the_default_rules_find_a_fall_and_its_end_with_and_without_a_simulation():
    given = episodes((0.9, 300), (0.2, 100), (0.9, 200))
    without = watched(DEFAULT_RULES, given)
    assert sorted(kinds(without)[:2]) == [
        ("stage-gate", "success@full", "breach"),
        ("success-drift", "success", "breach"),
    ]
    assert sorted(kinds(without)[2:]) == [
        ("stage-gate", "success@full", "recovery"),
        ("success-drift", "success", "recovery"),
    ]
    assert all(300 <= index < 400 for _, _, kind, index, _ in without if kind == "breach")
    with_sim = watched(DEFAULT_RULES, given, sim=(1800, 2000))
    assert ("success-below-sim", "success", "breach") in kinds(with_sim)
    assert ("success-below-sim", "success", "recovery") in kinds(with_sim)


def test_good_episodes_fire_nothing():
    rng = np.random.default_rng(2)
    given = [
        seen(
            number,
            bool(rng.random() < 0.9),
            reward=float(rng.normal()),
            interventions=int(rng.random() < 0.05),
            violations=0,
            signals={f"s{i}": float(rng.normal()) for i in range(12)},
        )
        for number in range(1200)
    ]
    assert watched(DEFAULT_RULES, given, sim=(1800, 2000)) == []


@pytest.mark.parametrize("batch", [1, 7, 20, 33, 250])
def test_batches_of_any_size_give_the_same_alarms_with_the_same_evidence(batch):
    rng = np.random.default_rng(3)
    given = [
        seen(
            number,
            bool(rng.random() < (0.9 if number < 300 or number > 420 else 0.2)),
            reward=float(rng.normal(0 if number < 300 else -1.5)),
            violations=int(number == 350),
            interventions=int(rng.random() < (0.02 if number < 300 else 0.4)),
            signals={"force": float(rng.normal(0 if number < 310 else 2)), "still": float(rng.normal())},
        )
        for number in range(600)
    ]
    whole = watched(DEFAULT_RULES, given, sim=(1800, 2000))
    assert {name for name, *_ in whole} == {
        *("success-drift", "success-below-sim", "reward-drift", "signal-drift"),
        *("safety-violation", "interventions-drift", "stage-gate"),
    }
    assert watched(DEFAULT_RULES, given, sim=(1800, 2000), batch=batch, through_json=True) == whole


def test_an_alarm_states_series_statistic_promise_reference_window_first_episode_and_change_point():
    [breach, *_] = watched([rule(DriftParams())], episodes((0.9, 300), (0.3, 60)))
    evidence = breach[4]
    assert evidence["series"] == "success"
    assert evidence["statistic"] == "e-detector"
    assert evidence["e_value"] >= evidence["threshold"] == evidence["arl"] == 10_000
    assert evidence["reference"]["from"] == "2026-11-01T00:00:00Z"
    assert evidence["reference"]["to"] == "2026-11-01T04:59:00Z"
    change = evidence["change_point"]
    assert abs(datetime.fromisoformat(change["at"]) - (START + timedelta(minutes=300))) < timedelta(minutes=10)
    assert (
        change["first_episode"] == f"e{round((datetime.fromisoformat(change['at']) - START).total_seconds() / 60)}"
    )
    assert evidence["since"]["interval"][0] <= evidence["since"]["value"] < evidence["since"]["interval"][1]
    assert evidence["decided_by"]["episode"] == f"e{breach[3]}"


def test_a_breach_that_must_last_is_a_suspect_first_and_fires_after_so_many_episodes():
    given = episodes((0.9, 300), (0.3, 100))
    [(_, _, _, at, _)] = [f for f in watched([rule(DriftParams())], given) if f[2] == "breach"]
    lasting = [rule(DriftParams(for_episodes=25))]
    for batch in (1, 10, 400):
        found = watched(lasting, given, batch=batch, through_json=True)
        assert [(f[2], f[3]) for f in found] == [("suspect", at), ("breach", at + 25)]
        assert found[0][4] == found[1][4]


def test_a_suspect_that_recovers_in_time_never_fires():
    values = [True] * 300 + [False] * 12 + [True] * 200
    given = [seen(number, success) for number, success in enumerate(values)]
    found = watched([rule(DriftParams(for_episodes=150))], given)
    assert [f[2] for f in found] == ["suspect", "recovery"]


def test_aborted_and_abandoned_episodes_are_in_no_success_rate():
    given = episodes((0.9, 300))
    at = START + timedelta(days=1)
    given += [SeenEpisode(f"a{i}", at, at, "aborted", 1, stage="full") for i in range(200)]
    assert watched([rule(DriftParams())], given) == []


def test_one_violation_is_enough_and_it_is_over_after_enough_episodes_without():
    given = [seen(i, violations=2 if i in {10, 20} else 0) for i in range(100)]
    found = watched([rule(SafetyParams(severe=1, rate=False, clear_episodes=50))], given)
    assert [(f[2], f[3]) for f in found] == [("breach", 10), ("recovery", 70)]
    assert found[0][4]["since"]["value"] == 2


def test_a_gate_is_that_of_the_stage_and_leaving_the_stage_ends_it():
    given = [seen(i, i % 10 < 3, stage="full") for i in range(150)]
    given += [seen(i, i % 10 < 3, stage="shadow") for i in range(150, 200)]
    found = watched([rule(StageGateParams())], given)
    assert kinds(found) == [("r", "success@full", "breach"), ("r", "success@full", "recovery")]
    assert found[1][3] == 150
    assert found[1][4] == {"note": "the stage was left"}


def test_another_policy_version_is_compared_with_its_own_simulation():
    rng = np.random.default_rng(4)
    given = [seen(i, bool(rng.random() < 0.9), policy_id=1) for i in range(200)]
    given += [seen(i, bool(rng.random() < 0.5), policy_id=2) for i in range(200, 500)]
    sims = {1: (1800, 2000), 2: (1000, 2000)}
    found, _ = watch_episodes([rule(DropParams())], {}, given, count=0, sim_counts=sims.__getitem__)
    assert found == []


def test_of_many_signals_only_those_that_moved_are_named():
    rng = np.random.default_rng(5)
    given = []
    for number in range(600):
        signals = {f"s{i:02}": float(rng.normal()) for i in range(20)}
        signals["s03"] += 2.0 * (number >= 300)
        signals["s07"] -= 2.0 * (number >= 300)
        given.append(seen(number, signals=signals))
    found = watched([rule(DriftParams(series="signals"), severity="info")], given)
    assert sorted(f[1] for f in found) == ["signal:s03", "signal:s07"]
    assert all(f[4]["series_judged"] == 20 for f in found)
    assert all(f[3] % 20 == 19 for f in found)


def test_a_changed_rule_begins_anew_and_its_alarm_is_over():
    given = episodes((0.9, 300), (0.3, 100))
    _, stored = watch_episodes([rule(DriftParams())], {}, given[:380], count=0, sim_counts=lambda _: (0, 0))
    changed = [rule(DriftParams(arl=20_000))]
    found, states = watch_episodes(changed, stored, given[380:], count=380, sim_counts=lambda _: (0, 0))
    assert [(f.input, f.evidence["note"]) for f in found] == [("recovery", "the rule was changed")]
    assert states["r", "success"].state["detector"]["n"] == 20


def test_a_detector_that_a_person_called_resolved_fires_again_if_it_is_still_bad():
    given = episodes((0.9, 300), (0.3, 200))
    rules = [rule(DriftParams())]
    _, stored = watch_episodes(rules, {}, given[:380], count=0, sim_counts=lambda _: (0, 0))
    again = {key: StoredDetector(s.params, s.state, restart=True) for key, s in stored.items()}
    found, _ = watch_episodes(rules, again, given[380:], count=380, sim_counts=lambda _: (0, 0))
    assert [f.input for f in found] == ["breach"]
    assert watch_episodes(rules, stored, given[380:], count=380, sim_counts=lambda _: (0, 0))[0] == []


def test_a_project_s_own_rule_stands_in_the_place_of_the_default_of_that_name():
    own = rule(DriftParams(arl=500), name="success-drift", severity="critical", enabled=False)
    other = rule(NoDataParams(), name="a-rule")
    in_force = rules_in_force([other, own])
    assert [r.name for r in in_force] == [*(r.name for r in DEFAULT_RULES), "a-rule"]
    assert in_force[[r.name for r in DEFAULT_RULES].index("success-drift")] is own


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("drop", {"above": 1.5}),
        ("drift", {"series": "sucess"}),
        ("drift", {"series": "reward", "method": "level"}),
        ("drift", {"arl": "soon"}),
        ("safety", {"what": "collisions"}),
        ("stage_gate", {"gates": {"moon": {}}}),
        ("no_data", {"after": 5}),
        ("category", {"above": 0}),
    ],
)
def test_bad_parameters_are_refused(kind, given):
    with pytest.raises(ValidationError):
        read_params(kind, given)


def test_every_default_rule_is_valid_and_matches_everything():
    for default in DEFAULT_RULES:
        assert read_params(default.kind, default.params.model_dump(mode="json")) == default.params
        assert default.match == Match()
        assert default.is_default
