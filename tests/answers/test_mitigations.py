from datetime import timedelta

import pytest
from answers.lab import NOON
from pages.answers_made import a_ledger, a_part

from gapwatch.answers.mitigations import measure_mitigations, suggestions
from gapwatch.answers.trend import Step
from gapwatch.store.read.directory import DatedEvent


def test_a_mitigation_is_measured_over_two_weeks_on_either_side_of_its_day():
    midnight = NOON.replace(hour=0)
    steps = [
        Step(midnight + timedelta(days=day), "1.4.0", True, 10, 5 if day < 0 else 9, None, None, None, 0, 0)
        for day in range(-20, 21)
    ]
    event = DatedEvent("mitigation", NOON, "lamp hood")
    [measured] = measure_mitigations([event, DatedEvent("release", NOON, "1.4.0")], steps)
    assert (measured.before.successes, measured.before.n, measured.after.successes) == (70, 140, 126)
    assert (measured.change, measured.verdict) == (pytest.approx(0.4), "better")
    assert 0 < measured.interval[0] < 0.4 < measured.interval[1]
    [unknown] = measure_mitigations([event], steps[:20])
    assert (unknown.change, unknown.interval, unknown.verdict) == (None, None, "too few episodes")


def test_suggestions_go_by_what_is_surely_lost_and_none_is_made_below_half_a_point():
    parts = (
        a_part("Visual", 0.09, (0.01, 0.17)),
        a_part("Contact dynamics", 0.05, (0.03, 0.07)),
        a_part("Actuation", 0.03, (0.004, 0.056)),
        a_part("Sensor noise", 0.004, (-0.01, 0.018)),
        a_part("Calibration", 0.2),
    )
    found = suggestions(a_ledger(categories=parts))
    assert [(one.category, one.interval) for one in found] == [
        ("contact_dynamics", (0.03, 0.07)),
        ("visual", (0.01, 0.17)),
    ]
