import pytest

from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.reason_kinds import REASON_KINDS, reason_kind


@pytest.mark.parametrize(
    ("rule_kind", "series", "kind"),
    [
        ("no_data", "robot:ur5e-1", "silence"),
        ("safety", "violations", "safety"),
        ("safety", "interventions", "safety"),
        ("stage_gate", "success@full", "gate"),
        ("drift", "signal:peak_force_n", "signals"),
        ("drift", "signals", "signals"),
        ("drift", "success", "performance"),
        ("drift", "reward", "performance"),
        ("drift", "metric:pick_time", "performance"),
        ("drop", "success", "performance"),
        ("category", "visual", "performance"),
    ],
)
def test_the_same_news_in_other_words_is_of_one_kind(rule_kind, series, kind):
    assert reason_kind(rule_kind, series) == kind


@pytest.mark.parametrize("rule_kind", [*RULE_KINDS, "a kind of a later release"])
def test_every_rule_has_a_kind_of_reason(rule_kind):
    assert reason_kind(rule_kind, "success") in REASON_KINDS
