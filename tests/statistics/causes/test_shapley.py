from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.causes.decomposition import decompose
from gapwatch.statistics.causes.shapley import (
    shapley,
    shapley_of,
    shapley_over_conditions,
)

steady = settings(deadline=None, derandomize=True, database=None)

# Das Gupta 1993, "Standardization and decomposition of rates: a user's manual", US Census P23-186.
PRODUCTS = {
    "2.1": ([10930, 0.717892], [16591, 0.825974], [4369.913, 1487.262]),
    "2.2": (
        [51.78746, 0.45919, 0.52638],
        [84.90502, 0.75756, 0.51065],
        [10.4340333, 10.5608476, -0.6670084],
    ),
    "2.3": (
        [25.3, 0.214, 0.279, 0.949],
        [32.7, 0.290, 0.473, 0.986],
        [0.6889411, 0.8125381, 1.3829055, 0.1047547],
    ),
    "2.4": (
        [0.58, 0.76, 0.84, 0.66, 16.573],
        [0.72, 0.97, 0.97, 0.56, 16.158],
        [1.0909785, 1.2298438, 0.7278399, -0.8398707, -0.1290187],
    ),
}
# Example 5.3: deaths per 1000 by race (two rows) and age (eleven), 1970 and 1985.
SIZE_1970 = [2968, 11484, 34614, 30992, 21983, 20314, 20928, 16897, 11339, 5720, 1315]
SIZE_1970 += [535, 2162, 6120, 4781, 3096, 2718, 2363, 1767, 1149, 448, 117]
SIZE_1985 = [3041, 11577, 27450, 32711, 35480, 27411, 19555, 19795, 15254, 8022, 2472]
SIZE_1985 += [707, 2692, 6473, 6841, 6547, 4352, 3034, 2540, 1749, 804, 236]
RATE_1970 = [18.469, 0.751, 0.391, 1.146, 1.287, 2.672, 6.636, 15.691, 34.723, 79.763, 176.837]
RATE_1970 += [36.993, 1.352, 0.541, 2.040, 3.523, 6.746, 12.967, 24.471, 45.091, 74.902, 123.205]
RATE_1985 = [9.163, 0.462, 0.248, 0.929, 1.084, 1.810, 4.715, 12.187, 27.728, 64.068, 157.570]
RATE_1985 += [17.208, 0.738, 0.328, 1.103, 2.045, 3.724, 8.052, 17.812, 34.128, 68.276, 125.161]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_factors_agree_with_das_gupta(name):
    first, second, effects = PRODUCTS[name]
    assert shapley_of(prod, first, second) == pytest.approx(effects, rel=3e-7, abs=1e-7)


def test_a_sum_of_vector_products_agrees_with_das_gupta():
    """Example 4.3."""
    first = [
        np.array([393, 407, 369, 274, 184, 90, 16]),
        np.array([0.122, 0.622, 0.903, 0.930, 0.916, 0.873, 0.800]),
        np.array([0.043, 0.041, 0.036, 0.032, 0.026, 0.020, 0.018]),
    ]
    second = [
        np.array([488, 452, 338, 156, 63, 22, 3]),
        np.array([0.082, 0.527, 0.866, 0.941, 0.942, 0.923, 0.876]),
        np.array([0.058, 0.038, 0.032, 0.030, 0.026, 0.023, 0.019]),
    ]
    effects = shapley_of(lambda f: float(np.sum(f[0] * f[1] * f[2])), first, second)
    assert effects == pytest.approx([-7.285632, -2.720633, -1.565181], abs=1e-6)


def test_a_nonlinear_rate_agrees_with_das_gupta():
    """Example 4.4: Σabc / (Σabc + Σa(1 − b)d)."""
    first = [
        [0.200, 0.163, 0.146, 0.154, 0.168, 0.169],
        [0.866, 0.325, 0.119, 0.099, 0.099, 0.121],
        [0.007, 0.021, 0.023, 0.015, 0.008, 0.002],
        [0.454, 0.326, 0.195, 0.107, 0.051, 0.015],
    ]
    second = [
        [0.169, 0.195, 0.190, 0.174, 0.150, 0.122],
        [0.931, 0.563, 0.311, 0.216, 0.199, 0.191],
        [0.018, 0.026, 0.023, 0.016, 0.008, 0.002],
        [0.380, 0.201, 0.149, 0.079, 0.025, 0.006],
    ]

    def ratio(factors):
        a, b, c, d = np.array(factors)
        top = np.sum(a * b * c)
        return float(top / (top + np.sum(a * (1 - b) * d)))

    effects = shapley_of(ratio, first, second)
    assert effects == pytest.approx([-0.00620498, 0.04866154, 0.02705922, 0.02470928], abs=1e-8)


def test_cross_classified_conditions_agree_with_das_gupta():
    """Example 5.3: age 1.5217347 and race 0.0197749, the rates −2.2277254, together −0.6862158."""
    sides = zip(RATE_1985, SIZE_1985, RATE_1970, SIZE_1970, strict=True)
    cells = {
        ("white" if i < 11 else "other", f"age {i % 11}"): (r1 * n1, n1, r0 * n0, n0)
        for i, (r1, n1, r0, n0) in enumerate(sides)
    }
    found = shapley_over_conditions(["race", "age"], cells)
    assert found.factors["age"] == pytest.approx(1.5217347, abs=1e-7)
    assert found.factors["race"] == pytest.approx(0.0197749, abs=1e-7)
    assert sum(found.factors.values()) == pytest.approx(1.5415096, abs=1e-7)
    assert found.rate == pytest.approx(-2.2277254, abs=1e-7)
    assert found.crude == pytest.approx(-0.6862158, abs=1e-7)
    assert found.off_support == pytest.approx(0, abs=1e-12)


worths = st.integers(1, 5).flatmap(
    lambda k: st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=2**k, max_size=2**k)
)


@steady
@given(worths)
def test_shares_add_up_and_equal_the_mean_over_all_orders(worth):
    count = len(worth).bit_length() - 1
    shares = shapley(worth)
    assert shares.sum() == pytest.approx(worth[-1] - worth[0], abs=1e-9)
    means = np.zeros(count)
    orders = list(permutations(range(count)))
    for order in orders:
        switched = 0
        for j in order:
            means[j] += worth[switched | 1 << j] - worth[switched]
            switched |= 1 << j
    assert shares == pytest.approx(means / len(orders), abs=1e-9)


@steady
@given(worths)
def test_swapping_the_sides_turns_every_share_around(worth):
    assert shapley(worth[::-1]) == pytest.approx(-shapley(worth), abs=1e-9)


counts = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)).map(
    lambda c: (min(c[0], c[1]), c[1], min(c[2], c[3]), c[3])
)
cell_tables = st.integers(1, 3).flatmap(
    lambda k: st.dictionaries(st.tuples(*[st.sampled_from("abc")] * k), counts, min_size=1, max_size=12)
)


@steady
@given(cell_tables)
def test_conditions_and_rate_add_up_to_the_drop_and_to_kitagawas_mix(cells):
    names = [f"condition {i}" for i in range(len(next(iter(cells))))]
    found = shapley_over_conditions(names, cells)
    if found.crude is None:
        assert found.reason == "One side has no episodes."
        return
    assert found.off_support + sum(found.factors.values()) + found.rate == pytest.approx(found.crude, abs=1e-9)
    plain = decompose(cells, smallest=0)
    assert sum(found.factors.values()) == pytest.approx(plain.mix, abs=1e-9)
    assert found.rate == pytest.approx(plain.rate, abs=1e-9)


def test_a_condition_with_the_same_mix_on_both_sides_gets_nothing():
    """Lighting shifts from half dim to all but bright, independent of the object, whose mix stays."""
    share = {"sim": {"dim": 0.5, "bright": 0.5}, "real": {"dim": 0.9, "bright": 0.1}}
    rate = {"dim": 0.5, "bright": 0.9}
    cells = {}
    for lighting in ("dim", "bright"):
        for thing, part in (("mug", 0.3), ("bowl", 0.7)):
            n_sim, n_real = 1000 * share["sim"][lighting] * part, 100 * share["real"][lighting] * part
            cells[lighting, thing] = (n_sim * rate[lighting], n_sim, n_real * rate[lighting], n_real)
    found = shapley_over_conditions(["lighting", "object"], cells)
    assert found.factors == pytest.approx({"lighting": 0.16, "object": 0}, abs=1e-12)
    assert found.rate == pytest.approx(0, abs=1e-12)


def test_too_many_or_no_common_conditions_are_said():
    cells = {("a",) * 11: (1, 2, 1, 2)}
    assert "ten" in shapley_over_conditions(["x"] * 11, cells).reason
    apart = shapley_over_conditions(["x"], {("a",): (4, 5, 0, 0), ("b",): (0, 0, 1, 5)})
    assert (apart.off_support, apart.rate) == (pytest.approx(0.6), 0)
    assert "both sides" in apart.reason
    with pytest.raises(ValueError, match="2\\^K"):
        shapley([1, 2, 3])
