import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gapwatch.statistics.causes.signals import (
    cliffs_delta,
    compare_signal,
    farthest,
    join,
    population_stability,
    psi_critical,
    shape_of,
    stability_index,
    wasserstein,
)
from gapwatch.statistics.estimates.sketches import fold

steady = settings(deadline=None, derandomize=True, database=None)
numbers = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=5, max_size=40)


@pytest.mark.parametrize(
    ("x", "y", "x_weights", "y_weights", "distance"),
    [
        ([0, 1, 3], [5, 6, 8], None, None, 5.0),
        ([0, 1], [0, 1], [3, 1], [2, 2], 0.25),
        ([3.4, 3.9, 7.5, 7.8], [4.5, 1.4], [1.4, 0.9, 3.1, 7.2], [3.2, 3.5], 4.078133143804786),
    ],
)
def test_wasserstein_distances_of_scipys_documentation(x, y, x_weights, y_weights, distance):
    assert wasserstein(join(shape_of(x, x_weights), shape_of(y, y_weights))) == pytest.approx(distance, abs=1e-12)


def test_the_kolmogorov_smirnov_distance_and_its_place():
    x, y = [0.1, 0.4, 0.7, 1.0, 1.3], [0.5, 0.9, 1.4, 1.8, 2.2]
    assert farthest(join(shape_of(x), shape_of(y))) == (pytest.approx(0.6), 1.3)


def test_the_population_stability_index_of_an_example():
    assert population_stability([0.4, 0.3, 0.3], [0.35, 0.25, 0.4]) == pytest.approx(0.04456085471610198)


@steady
@given(numbers, numbers)
def test_distances_agree_with_scipy_and_are_symmetric(x, y):
    a, b = shape_of(x), shape_of(y)
    assert wasserstein(join(a, b)) == pytest.approx(stats.wasserstein_distance(x, y), rel=1e-9, abs=1e-9)
    assert farthest(join(a, b))[0] == pytest.approx(stats.ks_2samp(x, y, method="asymp").statistic, abs=1e-12)
    assert wasserstein(join(b, a)) == pytest.approx(wasserstein(join(a, b)), abs=1e-12)
    assert farthest(join(b, a))[0] == pytest.approx(farthest(join(a, b))[0], abs=1e-12)


@steady
@given(numbers, numbers)
def test_the_effect_is_that_of_all_pairs_and_turns_around_with_the_sides(x, y):
    delta, (low, high), p_value = cliffs_delta(join(shape_of(x), shape_of(y)))
    signs = np.sign(np.subtract.outer(y, x))
    assert delta == pytest.approx(signs.mean(), abs=1e-9)
    assert -1 <= low <= delta + 1e-9 and delta - 1e-9 <= high <= 1
    back, (back_low, back_high), back_p = cliffs_delta(join(shape_of(y), shape_of(x)))
    assert (back, back_low, back_high) == pytest.approx((-delta, -high, -low), abs=1e-9)
    assert back_p == pytest.approx(p_value, abs=1e-9)


def test_the_p_value_is_brunner_and_munzels():
    generator = np.random.default_rng(41)
    for _ in range(50):
        x, y = generator.integers(0, 12, 30), generator.normal(5, 3, 12).round()
        expected = stats.brunnermunzel(x, y)
        assert cliffs_delta(join(shape_of(x), shape_of(y)))[2] == pytest.approx(expected.pvalue, rel=1e-9)


def test_sketches_give_what_samples_give():
    """Bins of 2 % make ties; the effect moves by less than half a point, the distance by less than 1 %."""
    generator = np.random.default_rng(42)
    sim, real = generator.normal(20, 4, 3000), generator.normal(23, 5, 400)
    exact, sketched = compare_signal(sim, real), compare_signal(fold(sim), fold(real))
    assert sketched.delta == pytest.approx(exact.delta, abs=0.005)
    assert sketched.interval == pytest.approx(exact.interval, abs=0.005)
    assert sketched.ks == pytest.approx(exact.ks, abs=0.03)
    assert sketched.ks_at == pytest.approx(exact.ks_at, rel=0.1)
    assert sketched.wasserstein == pytest.approx(exact.wasserstein, rel=0.01)
    assert (sketched.size, sketched.real_higher) == ("medium", pytest.approx((sketched.delta + 1) / 2))


SHAPES = {
    "same": (lambda g, n: g.normal(0, 1, n), lambda g, n: g.normal(0, 1, n)),
    "shifted": (lambda g, n: g.normal(0, 1, n), lambda g, n: g.normal(2, 1, n)),
    "apart": (lambda g, n: g.normal(0, 1, n), lambda g, n: g.normal(4, 1, n)),
    "wider": (lambda g, n: g.normal(0, 1, n), lambda g, n: g.normal(0, 3, n)),
    "skewed": (lambda g, n: g.lognormal(0, 1, n), lambda g, n: g.lognormal(1, 0.5, n)),
    "counts": (lambda g, n: g.poisson(0.3, n), lambda g, n: g.poisson(1, n)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("n_sim", "n_real"), [(1000, 10), (1000, 30), (30, 30)])
def test_intervals_of_the_effect_cover(name, n_sim, n_real):
    """150 runs a shape: at least 90 %, the promised 95 % less 2.5 standard errors."""
    generator = np.random.default_rng(43)
    sim, real = SHAPES[name]
    truth = cliffs_delta(join(shape_of(sim(generator, 200_000)), shape_of(real(generator, 200_000))))[0]
    truth = 0 if name == "same" else truth
    covered = 0
    for _ in range(150):
        low, high = cliffs_delta(join(shape_of(sim(generator, n_sim)), shape_of(real(generator, n_real))))[1]
        covered += low <= truth <= high
    assert covered / 150 >= 0.9, covered


@pytest.mark.parametrize(("n_sim", "n_real"), [(50, 50), (1000, 50), (1000, 200), (5000, 1000)])
def test_the_critical_value_of_psi_holds_where_rules_of_thumb_do_not(n_sim, n_real):
    generator = np.random.default_rng(44)
    found = [
        stability_index(join(shape_of(generator.normal(0, 1, n_sim)), shape_of(generator.normal(0, 1, n_real))))
        for _ in range(250)
    ]
    assert np.mean([psi > critical for psi, critical in found]) <= 0.08
    assert found[0][1] == pytest.approx(psi_critical(n_sim, n_real, 10))
    published = {(50, 50): (0.968, 0.632), (1000, 50): (0.809, 0.173), (1000, 200): (0.052, 0)}
    if (n_sim, n_real) in published:
        shares = [np.mean([psi > limit for psi, _ in found]) for limit in (0.1, 0.25)]
        assert shares == pytest.approx(published[n_sim, n_real], abs=0.06)


def test_psi_finds_a_change_and_needs_more_than_one_bin():
    generator = np.random.default_rng(45)
    psi, critical = stability_index(
        join(shape_of(generator.normal(0, 1, 500)), shape_of(generator.normal(1, 1, 200)))
    )
    assert psi > 2 * critical
    assert stability_index(join(shape_of([0] * 50), shape_of(range(50)))) == (None, None)


def test_too_few_values_are_a_reason():
    found = compare_signal([1, 2, 3, 4], range(30))
    assert (found.delta, found.reason, found.real_higher) == (None, "Fewer than 5 values in sim.", None)
    assert compare_signal(fold(range(9)), fold([])).reason == "Fewer than 5 values in real."


def test_one_value_everywhere_is_no_shift_and_apart_is_a_full_one():
    still = compare_signal([3] * 10, [3] * 10)
    assert (still.delta, still.p_value, still.ks, still.wasserstein) == (0, 1, 0, 0)
    assert still.interval[0] < 0 < still.interval[1]
    apart = compare_signal(range(10), range(100, 110))
    assert (apart.delta, apart.interval[1], apart.size) == (1, 1, "large")
    assert 0.2 < apart.interval[0] < 0.6


def test_the_largest_doubles_have_a_finite_distance():
    assert np.isfinite(compare_signal([1.7e308] * 5, [-1.7e308] * 5).wasserstein)
