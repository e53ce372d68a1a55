"""The other drops of drops.py: of matched pairs, of means, of durations that may be cut off, and superiority."""

from math import isfinite

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multinomial, ttest_ind
from statsmodels.duration.survfunc import SurvfuncRight

from gapwatch.statistics.estimates.drops import (
    MetricSums,
    duration_drop,
    paired_drop,
    restricted_mean,
)
from gapwatch.statistics.estimates.skewed_means import MeanSide, guarded_mean_drop

steady = settings(deadline=None, derandomize=True, database=None)


def moments(sample):
    return MetricSums(len(sample), float(np.sum(sample)), float(np.sum(np.square(sample))))


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((20, 12, 2, 16), 0.0562, 0.3292),
        ((18, 12, 2, 18), 0.0562, 0.3290),
        ((36, 14, 0, 0), 0.1528, 0.4167),
        ((35, 14, 0, 1), 0.1461, 0.4175),
        ((18, 14, 0, 18), 0.1441, 0.3963),
        ((2, 97, 1, 0), 0.8721, 0.9854),
        ((1, 97, 1, 1), 0.8736, 0.9850),
        ((0, 29, 1, 0), 0.6666, 0.9882),
        ((2, 98, 0, 0), 0.9178, 0.9945),
        ((1, 98, 0, 1), 0.9171, 0.9916),
        ((0, 30, 0, 0), 0.8395, 1.0),
        ((54, 0, 0, 0), -0.0664, 0.0664),
        ((53, 0, 0, 1), -0.0729, 0.0729),
        ((30, 0, 0, 24), -0.0358, 0.0358),
        ((29, 0, 0, 25), -0.0354, 0.0354),
        ((28, 0, 0, 26), -0.0352, 0.0352),
        ((27, 0, 0, 27), -0.0351, 0.0351),
    ],
)
def test_paired_drop_agrees_with_newcombes_table(cells, low, high):
    """Newcombe 1998c, Table III, method 10, all rows; one is printed cut instead of rounded."""
    drop = paired_drop(*cells)
    assert (drop.low, drop.high) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("chances", [(0.7, 0.15, 0.05, 0.1), (0.9, 0.05, 0.0, 0.05), (0.3, 0.3, 0.1, 0.3)])
def test_paired_drop_covers_at_twenty_pairs(chances):
    n, truth, covered = 20, chances[1] - chances[2], 0.0
    tables = [
        (a, b, c, n - a - b - c) for a in range(n + 1) for b in range(n + 1 - a) for c in range(n + 1 - a - b)
    ]
    for cells, chance in zip(tables, multinomial.pmf(tables, n, chances), strict=True):
        drop = paired_drop(*cells)
        covered += chance * (drop.low <= truth <= drop.high)
    assert covered > 0.935


@steady
@given(*[st.integers(0, 200)] * 4)
def test_paired_drop_holds_the_estimate_for_any_pairs(n11, n10, n01, n00):
    drop, swapped = paired_drop(n11, n10, n01, n00), paired_drop(n11, n01, n10, n00)
    assert -1 <= drop.low < drop.high <= 1
    if drop.pairs:
        assert drop.low - 1e-12 <= drop.value <= drop.high + 1e-12
        assert (drop.low, drop.high) == pytest.approx((-swapped.high, -swapped.low), abs=1e-12)
    else:
        assert (drop.value, drop.reason) == (None, "no pairs")


def mean_drop(sim, real, worse):
    return guarded_mean_drop(MeanSide(sim), MeanSide(real), worse)


def test_mean_drop_is_welch():
    random = np.random.default_rng(5)
    sim, real = random.normal(5, 1, 200), random.normal(4.5, 2, 13)
    expected = ttest_ind(sim, real, equal_var=False).confidence_interval(0.95)
    drop, worse = mean_drop(moments(sim), moments(real), "lower"), mean_drop(moments(sim), moments(real), "higher")
    assert (drop.low, drop.high) == pytest.approx(tuple(expected))
    assert (worse.value, worse.low, worse.high) == pytest.approx((-drop.value, -drop.high, -drop.low))


def test_mean_drop_says_what_is_missing():
    assert mean_drop(MetricSums(3, 3.0, 5.0), MetricSums(0, 0.0, 0.0), "lower").reason == "no real episodes"
    assert (
        mean_drop(MetricSums(3, 3.0, 5.0), MetricSums(1, 2.0, 4.0), "lower").reason
        == "fewer than two episodes on a side"
    )
    constant = mean_drop(MetricSums(3, 0.3, 0.03), MetricSums(7, 0.7, 0.07), "lower")
    assert (constant.low, constant.reason) == (None, "no spread on either side")


numbers = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)


@steady
@given(numbers, numbers)
def test_mean_drop_never_answers_with_nan(sim, real):
    drop = mean_drop(moments(sim), moments(real), "lower")
    assert isfinite(drop.value)
    if drop.reason is None:
        assert drop.low <= drop.value <= drop.high


def cut(*times):
    """Durations; a negative one was cut off there."""
    return [(abs(time), time < 0) for time in times]


MAINTAINED = cut(9, 13, -13, 18, 23, -28, 31, 34, -45, 48, -161)
NOT_MAINTAINED = cut(5, 5, 8, 8, 12, -16, 23, 27, 30, 33, 43, 45)


@pytest.mark.parametrize(("samples", "mean", "error"), [(MAINTAINED, 52.6, 19.83), (NOT_MAINTAINED, 22.7, 4.18)])
def test_restricted_mean_of_the_leukaemia_data(samples, mean, error):
    """Miller 1997; R survival prints rmean and se(rmean) of survfit(aml) so, up to 161."""
    value, variance = restricted_mean(samples, 161)
    assert value == pytest.approx(mean, abs=0.06)
    assert variance**0.5 == pytest.approx(error, abs=6e-3)


def test_restricted_mean_is_the_area_under_statsmodels_curve():
    random = np.random.default_rng(8)
    times, limits = random.gamma(2, 5, 60), random.uniform(5, 30, 60)
    curve = SurvfuncRight(np.minimum(times, limits), (times <= limits).astype(int))
    tau = 12.0
    steps = [(time, level) for time, level in zip(curve.surv_times, curve.surv_prob, strict=True) if time < tau]
    edges, levels = [0, *[time for time, _ in steps], tau], [1, *[level for _, level in steps]]
    samples = [(float(min(time, limit)), bool(time > limit)) for time, limit in zip(times, limits, strict=True)]
    assert restricted_mean(samples, tau)[0] == pytest.approx(np.diff(edges) @ levels)


def test_without_cut_offs_a_duration_drop_is_a_mean_drop():
    random = np.random.default_rng(9)
    sim, real = random.gamma(2, 5, 40).tolist(), random.gamma(2, 7, 15).tolist()
    drop = duration_drop(cut(*sim), cut(*real), tau=1e3)
    expected = mean_drop(moments(sim), moments(real), "higher")
    assert (drop.value, drop.low, drop.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_duration_drop_holds_the_truth_when_a_third_times_out():
    random, tau, held = np.random.default_rng(10), 10.0, []
    truth = (8 * (1 - np.exp(-tau / 8))) - (6 * (1 - np.exp(-tau / 6)))
    for _ in range(600):
        sim, real = random.exponential(6, 100), random.exponential(8, 30)
        samples = [[(min(float(t), tau), bool(t > tau)) for t in side] for side in (sim, real)]
        drop = duration_drop(*samples)
        held.append(drop.low <= truth <= drop.high)
    assert 0.92 < np.mean(held) < 0.98


def test_duration_drop_says_what_is_missing():
    assert duration_drop([], cut(1)).reason == "no sim episodes"
    timed_out = duration_drop(cut(3, 4, 5, -10), cut(-10, -10, -10))
    assert (timed_out.low, timed_out.tau) == (None, 10)
    assert timed_out.reason == "fewer than two completed episodes on a side"
    # Past 6 nothing is known of real: an asked-for 60 is cut back.
    assert duration_drop(cut(3, 4, 5), cut(4, 5, -6), tau=60).tau == 6
