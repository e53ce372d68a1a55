"""Violations, interventions and overrides: what is watched, and how an alarm reads."""

import pytest

from gapwatch.watching.detectors import LevelDetector, SevereDetector
from gapwatch.watching.kinds.safety import KIND, SafetyParams
from gapwatch.watching.rules import Rule


def series_of(**params):
    rule = Rule("safety", "safety", SafetyParams(**params), "critical")
    return rule, KIND.watch.series(rule, [], {})


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, ["violations"]),
        ({"severe": 2}, ["violations", "violations severe"]),
        ({"severe": 1, "rate": False, "what": "overrides"}, ["overrides severe"]),
    ],
)
def test_a_rate_and_single_severe_episodes_are_series_of_their_own(params, names):
    _, series = series_of(**params)
    assert [each.name for each in series] == names


def test_each_series_has_the_detector_it_needs():
    rule, [rate, severe] = series_of(severe=3)
    assert isinstance(KIND.watch.detector(rule, rate, None, 1), LevelDetector)
    assert isinstance(KIND.watch.detector(rule, severe, None, 1), SevereDetector)


def test_one_violation_is_told_from_the_first_day():
    [default] = [rule for rule in KIND.defaults if rule.severity == "critical"]
    assert default.params == SafetyParams(what="violations", severe=1, rate=False)
