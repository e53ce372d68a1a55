import numpy as np
import pytest

from gapwatch.statistics.ranges.parameter_ranges import (
    AbsoluteRange,
    MeasuredValue,
    absolute_range,
    apart,
    is_surely_outside,
    judge_range,
    sim_spread_of,
    spread_of,
    sure_median,
)

FRICTION = AbsoluteRange(0.4, 0.8)


@pytest.mark.parametrize(
    ("operation", "nominal", "low", "high"),
    [("abs", None, 0.8, 1.2), ("add", 2.0, 2.8, 3.2), ("scale", 2.0, 1.6, 2.4), ("scale", -2.0, -2.4, -1.6)],
)
def test_ranges_in_their_own_unit(operation, nominal, low, high):
    found = absolute_range(0.8, 1.2, "uniform", operation, nominal)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_a_gaussian_is_a_mean_and_a_spread():
    found = absolute_range(0.1, 0.05, "gaussian", "add", 1.0)
    assert (found.low, found.high) == pytest.approx((1.0, 1.2))
    scaled = absolute_range(1.0, 0.1, "gaussian", "scale", 50.0)
    assert (scaled.low, scaled.high) == pytest.approx((40.0, 60.0))


def test_what_is_relative_to_nothing_has_no_range():
    assert absolute_range(0.8, 1.2, "uniform", "scale", None) is None


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        ((0.95, 0.9, 1.0), "outside"),
        ((0.3, None, None), "outside"),
        ((0.78, 0.77, 0.79), "edge"),
        ((0.7, 0.6, 0.85), "edge"),
        ((0.44, None, None), "edge"),
        ((0.6, 0.5, 0.7), "inside"),
        ((0.6, None, None), "inside"),
        ((0.6, 0.58, 0.62), "far inside"),
    ],
)
def test_verdicts(measured, verdict):
    assert judge_range(FRICTION, [MeasuredValue(*measured)]) == verdict


def test_the_worst_place_decides_and_all_places_make_the_spread():
    inside, other = MeasuredValue(0.55, 0.54, 0.56), MeasuredValue(0.65, 0.64, 0.66)
    assert judge_range(FRICTION, [inside]) == "far inside"
    assert judge_range(FRICTION, [inside, other]) == "inside"
    assert judge_range(FRICTION, [inside, MeasuredValue(0.9, 0.85, 0.95)]) == "outside"


def test_what_was_not_randomised_or_not_applied_or_not_measured():
    inside = [MeasuredValue(0.6, 0.5, 0.7)]
    assert judge_range(None, inside) == "not randomised"
    assert judge_range(AbsoluteRange(0.5, 0.5), inside) == "not randomised"
    assert judge_range(FRICTION, inside, sim_spread=0.0) == "declared, not applied"
    assert judge_range(FRICTION, inside, sim_spread=0.3) == "inside"
    assert judge_range(FRICTION, []) == "not measured"


def test_an_alert_needs_all_of_the_interval_beyond_an_end():
    assert is_surely_outside(FRICTION, MeasuredValue(0.9, 0.85, 0.95))
    assert is_surely_outside(FRICTION, MeasuredValue(0.3))
    assert not is_surely_outside(FRICTION, MeasuredValue(0.82, 0.78, 0.86))


def test_identifications_that_do_not_overlap():
    first = MeasuredValue(0.6, 0.55, 0.65)
    assert apart(first, MeasuredValue(0.8, 0.75, 0.85))
    assert not apart(first, MeasuredValue(0.66, 0.64, 0.68))
    assert not apart(first, MeasuredValue(0.9)), "without an interval nobody knows"


def test_spread_of_episodes():
    values = np.random.default_rng(3).normal(0.6, 0.02, 400)
    found = spread_of(values)
    assert found.value == pytest.approx(0.6, abs=0.005)
    assert (found.low, found.high) == pytest.approx((0.567, 0.633), abs=0.006)
    assert spread_of([0.6]) is None
    assert sim_spread_of([0.5] * 20) == 0.0
    assert sim_spread_of([0.5]) is None


def test_the_sure_median_misses_about_once_in_a_thousand_looks():
    draws = np.random.default_rng(4).normal(size=(1000, 50))
    found = [sure_median(row) for row in draws]
    assert np.mean([one.low > 0 or one.high < 0 for one in found]) <= 0.002
    assert sure_median([1.0] * 9) is None
    assert sure_median(range(12)) is not None
