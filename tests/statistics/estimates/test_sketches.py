import json
import math
import random
import statistics
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.estimates.sketches import (
    Moments,
    Sketch,
    bin_index,
    cdf,
    ecdf,
    fold,
    merge,
    moments,
    quantile,
    step_sums,
    values_and_counts,
    whole_steps,
)

steady = settings(deadline=None, derandomize=True, database=None)
finite = st.floats(allow_nan=False, allow_infinity=False)
normal = st.floats(min_value=2.3e-308, allow_infinity=False, exclude_min=True)
samples = st.lists(finite, max_size=60)


def written(sketch: Sketch) -> str:
    return json.dumps([dict(sketch.positive), dict(sketch.negative), sketch.zero])


@steady
@given(st.lists(normal, min_size=1, max_size=60), st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.1]))
def test_a_quantile_is_within_its_accuracy_of_the_order_statistic(values, q, a):
    """The promise of DDSketch, for any positive sample and every quantile."""
    exact = sorted(values)[math.floor(q * (len(values) - 1))]
    found = quantile(fold(values, a), q, a)
    assert math.isfinite(found)
    assert abs(found - exact) <= a * exact * (1 + 1e-9)


@steady
@given(st.lists(finite, min_size=1, max_size=60), st.floats(0, 1))
def test_negative_values_and_zeros_are_kept_in_order(values, q):
    exact = sorted(values)[math.floor(q * (len(values) - 1))]
    assert quantile(fold(values), q) == pytest.approx(exact, rel=0.0100001, abs=2.3e-308)


def test_quantiles_agree_with_numpy_on_a_large_sample():
    sample = np.random.default_rng(1).lognormal(1, 2, 100_000)
    sketch = fold(sample)
    for q in (0.01, 0.05, 0.5, 0.95, 0.99, 0.999):
        assert quantile(sketch, q) == pytest.approx(np.quantile(sample, q, method="lower"), rel=0.01)


@steady
@given(normal)
def test_a_bins_edges_enclose_its_values(x):
    gamma = Fraction(101, 99)
    index = bin_index(x)
    near = gamma**index if index > -2000 and index < 2000 else None
    if near is not None:
        assert near / gamma * (1 - Fraction(1, 10**15)) < Fraction(x) <= near * (1 + Fraction(1, 10**15))
    assert fold([x]) == Sketch({index: 1}) and fold([-x]) == Sketch({}, {index: 1})


@pytest.mark.parametrize(("x", "index"), [(1.0, 0), (1.02, 1), (101 / 99, 1), (0.99, 0), (0.98, -1), (31.2, 173)])
def test_bins_of_known_values(x, index):
    assert bin_index(x) == index


@pytest.mark.parametrize(
    ("smallest", "largest", "a", "bins"),
    [(0.01, 3600, 0.01, 639.67), (1e-3, 60, 0.02, 275.016), (1e-9, 86400, 0.02, 802.143)],
)
def test_a_range_takes_so_many_bins(smallest, largest, a, bins):
    used = fold(np.geomspace(smallest, largest, 200_000), a).positive
    assert len(used) == pytest.approx(bins, abs=2)


def test_a_thousand_parts_merge_to_the_same_bytes_in_any_order():
    generator = np.random.default_rng(2)
    parts = [generator.normal(0, 50, generator.integers(0, 40)) for _ in range(1000)]
    whole = fold(np.concatenate(parts))
    sketches = [fold(part) for part in parts]
    for seed in range(5):
        random.Random(seed).shuffle(sketches)
        tree = [merge(sketches[i : i + 7]) for i in range(0, len(sketches), 7)]
        assert written(merge(sketches)) == written(merge(tree)) == written(whole)


@steady
@given(st.lists(finite, min_size=1), finite)
def test_the_cdf_counts_what_lies_at_or_below_up_to_the_own_bin(values, x):
    share = cdf(fold(values), x)
    slack = 0.02001 * abs(x) + 2.3e-308
    assert sum(v <= x - slack for v in values) <= round(share * len(values)) <= sum(v <= x + slack for v in values)


def test_the_drawn_curve_rises_to_one_and_is_thinned():
    points = ecdf(fold(np.random.default_rng(3).normal(0, 1, 5000)), most=50)
    assert len(points) <= 50
    assert points == sorted(points) and points[-1][1] == 1
    assert all(a[1] < b[1] for a, b in pairwise(points))


def test_without_values_nothing_is_known():
    empty = fold([])
    assert (empty.n, quantile(empty, 0.5), cdf(empty, 1), ecdf(empty)) == (0, None, None, [])
    assert merge([]) == empty == Sketch()
    assert values_and_counts(empty)[0].size == 0
    assert (Moments().mean, Moments().sd, moments([3]).sd, moments([3]).variance) == (None, None, None, None)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="finite"):
        fold([1, bad])
    with pytest.raises(ValueError, match="finite"):
        moments([1, bad])


@steady
@given(st.lists(finite, max_size=30), st.integers(0, 30), st.randoms())
def test_sums_are_the_same_in_any_order_and_split_and_can_be_taken_back(values, cut, chance):
    shuffled = list(values)
    chance.shuffle(shuffled)
    whole = moments(values)
    assert moments(shuffled) == whole
    assert moments(shuffled[:cut]) + moments(shuffled[cut:]) == whole
    assert whole - moments(shuffled[cut:]) == moments(shuffled[:cut])
    assert [moments([-x]).total for x in values] == [-moments([x]).total for x in values]


@steady
@given(st.lists(st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 4e-9), min_size=2, max_size=40))
def test_mean_and_spread_are_those_of_exact_fractions(values):
    exact = [Fraction(x) for x in values]
    assert moments(values).mean == float(statistics.mean(exact))
    assert moments(values).sd == pytest.approx(math.sqrt(statistics.variance(exact)), rel=1e-12, abs=1e-20)


def test_the_largest_doubles_have_a_finite_mean():
    """A robot that sends 1e308 as its reward must not turn a page into infinity."""
    large = moments([1e308] * 1000 + [-1e308])
    assert large.mean == pytest.approx(1e308 * (999 / 1001))
    assert large.sd == pytest.approx(6.32e306, rel=0.01)
    assert large.variance is None
    assert large - moments([1e308] * 999) == moments([1e308, -1e308])
    assert moments([1.7976931348623157e308] * 3).mean == 1.7976931348623157e308


def test_a_large_offset_does_not_eat_the_spread():
    assert moments([1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.3]).sd == pytest.approx(0.1, rel=1e-6)


def test_sums_fit_into_postgres_numeric():
    assert len(str(moments([1.7976931348623157e308] * 1000).total_sq)) < 131072


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e-30, 1e-320, 1e10, 1e300])
def test_sums_of_a_matrix_are_those_of_its_values_one_by_one(scale):
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(20_000, 3)) * scale
    matrix[::7] = 0
    # The largest, the smallest, and both sides of where a step is smaller than the last bit.
    matrix[:5, 0] = 1.7e308, 5e-324, 2.0**-27, 2.0**-28, -(2.0**-28) + 2.0**-80
    group = rng.integers(0, 4, len(matrix))
    totals, squares = step_sums(matrix, group, 5)
    for number in range(5):
        for column in range(3):
            steps = whole_steps(matrix[group == number, column])
            assert totals[number][column] == sum(steps)
            assert squares[number][column] == sum(step * step for step in steps)


def test_sums_of_a_matrix_refuse_what_is_no_number():
    with pytest.raises(ValueError, match="finite"):
        step_sums(np.array([[1.0, np.nan]]), np.array([0]), 1)
