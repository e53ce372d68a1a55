from gapwatch.watching.kinds.stage_gate import Gate, StageGateParams, with_plan
from gapwatch.watching.rules import Rule

PLAN = {
    "margin": 0.1,
    "reference": {"successes": 900, "n": 1000},
    "criteria": [
        {"stage": "supervised", "kind": "max_drop", "limit": 0.1},
        {"stage": "supervised", "kind": "min_rate", "measure": "success", "limit": 0.85},
        {"stage": "supervised", "kind": "max_rate", "measure": "overrides", "limit": 0.2},
        {"stage": "supervised", "kind": "zero_violations", "limit": 0.01},
        {"stage": "supervised", "kind": "min_days", "limit": 30},
        {"stage": "full", "kind": "max_drop", "limit": 0.05},
    ],
}
RULE = Rule("stage-gate", "stage_gate", StageGateParams(), "warning")


def test_the_limits_of_a_planned_deployment_are_those_of_its_stage():
    gates = with_plan(RULE, "supervised", PLAN).params.gates
    assert gates == {"supervised": Gate(success=0.85, overrides=0.2, violations=0.01)}
    assert with_plan(RULE, "full", PLAN).params.gates == {"full": Gate(success=0.85)}


def test_a_stage_without_levels_demands_none_and_other_rules_stay_as_they_are():
    assert with_plan(RULE, "shadow", PLAN).params.gates == {}
    other = Rule("success-drop", "drop", RULE.params, "warning")
    assert with_plan(other, "full", PLAN) is other
