from datetime import timedelta

import pytest
from answers.lab import NOON

from gapwatch.answers.mitigations import measure_mitigations
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
