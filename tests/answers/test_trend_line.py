from datetime import date, timedelta

import pytest
from answers.lab import NOON

from gapwatch.answers.answer import Span
from gapwatch.answers.drop import SideValue
from gapwatch.answers.trend import ChangePoint, Step, TrendAnswer
from gapwatch.answers.trend_line import trend_line
from gapwatch.statistics.estimates.rates import wilson


def step(day, successes, n, version="1.4.0"):
    at = (NOON + timedelta(days=day)).replace(hour=0)
    return Step(at, version, True, n, successes, successes / n if n else None, None, None, 0, 0)


def trend(*steps, tier="day", changes=()):
    return TrendAnswer(
        deployment="berlin-line-3", policy="bin-pick", version="1.4.0", task="pick-mug", window=Span(None, None),
        filter={}, baseline=None, n_sim=0, n_real=0, warnings=(), reason=None, metric="success", tier=tier,
        sim=SideValue(0, None, None, 0, 0), steps=steps, change_points=changes, events=(), method="",
    )  # fmt: skip


def points(runs):
    return [[(point.at.day, point.n) for point in run] for run in runs]


def test_a_point_is_of_seven_days_with_their_interval():
    [run] = trend_line(trend(*(step(day, 8, 10) for day in range(9))))
    assert [point.n for point in run] == [10, 20, 30, 40, 50, 60, 70, 70, 70]
    assert run[-1].value == pytest.approx(0.8)
    assert run[-1].interval == wilson(56, 70)


def test_no_window_spans_a_change_a_version_or_a_long_silence():
    days = [step(day, 8, 10) for day in range(4)]
    change = ChangePoint(date(2026, 10, 7), None, -0.2, "step_change", "")
    assert points(trend_line(trend(*days, changes=(change,)))) == [[(5, 10), (6, 20)], [(7, 10), (8, 20)]]
    at = days[1].at
    assert points(trend_line(trend(*days, changes=(change,)), at)) == [[(5, 10)], [(6, 10), (7, 20), (8, 30)]]
    assert points(trend_line(trend(*days[:2], step(2, 1, 1, "1.5.0")))) == [[(5, 10), (6, 20)], [(7, 1)]]
    assert points(trend_line(trend(*days[:1], step(15, 5, 5)))) == [[(5, 10)], [(20, 5)]]
    assert trend_line(trend(step(0, 0, 0))) == []


def test_hours_and_months_stand_for_themselves():
    for tier in ("hour", "month"):
        [run] = trend_line(trend(step(0, 8, 10), step(1, 9, 10), tier=tier))
        assert [point.n for point in run] == [10, 10]
