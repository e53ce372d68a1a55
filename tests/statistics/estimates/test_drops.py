from math import isfinite

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import confint_proportions_2indep

from gapwatch.statistics.estimates.drops import (
    Side,
    rate_drop,
    side_limits,
)

steady = settings(deadline=None, derandomize=True, database=None)
RATES = (0.05, 0.2, 0.5, 0.8, 0.95)
sides = st.integers(0, 3000).flatmap(lambda n: st.builds(Side, st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("row", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((6, 7, 2, 7), 0.0582, 0.8062),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((0, 10, 0, 10), -0.2775, 0.2775),
        ((10, 10, 0, 20), 0.6791, 1.0),
        ((10, 10, 0, 10), 0.6075, 1.0),
        ((84, 101, 89, 105), -0.1177, 0.0851),
    ],
)
def test_newcombe_agrees_with_his_table(row, low, high):
    """Newcombe 1998b, Table II, method 10, all eight rows; the ninth from WUSS 2016, paper 127."""
    drop = rate_drop(Side(*row[:2]), Side(*row[2:]))
    assert (drop.low, drop.high) == pytest.approx((low, high), abs=6e-5)
    assert drop.method == "newcombe"


@pytest.mark.parametrize(
    ("sim_k", "sim_n", "real_k", "value", "low", "high"),
    [
        (27, 200, 22, -0.305, -0.447813, -0.165614),
        (3, 191, 17, -0.324293, -0.463141, -0.204972),
        (4, 200, 10, -0.18, -0.31094, -0.087347),
        (2, 200, 19, -0.37, -0.508685, -0.245932),
        (18, 200, 41, -0.73, -0.818414, -0.593415),
        (17, 200, 40, -0.715, -0.807973, -0.576451),
        (75, 200, 42, -0.465, -0.564931, -0.322165),
        (24, 200, 3, 0.06, -0.049016, 0.125505),
        (97, 200, 28, -0.075, -0.220428, 0.078292),
        (74, 200, 5, 0.27, 0.139672, 0.359021),
        (93, 200, 44, -0.415, -0.508125, -0.278198),
        (99, 200, 5, 0.395, 0.262322, 0.483988),
        (32, 199, 6, 0.040804, -0.085366, 0.126632),
        (5, 200, 1, 0.005, -0.081145, 0.041144),
        (36, 199, 7, 0.040905, -0.089806, 0.133061),
        (29, 198, 0, 0.146465, 0.063412, 0.202433),
        (55, 200, 17, -0.065, -0.214813, 0.067984),
        (41, 199, 0, 0.20603, 0.118694, 0.267534),
    ],
)
def test_drops_of_the_tri_policies(sim_k, sim_n, real_k, value, low, high):
    """Sim against hardware, 50 real each (Dryad 10.5061/dryad.xd2547dxc, CC0)."""
    drop = rate_drop(Side(sim_k, sim_n), Side(real_k, 50))
    assert (drop.value, drop.low, drop.high) == pytest.approx((value, low, high), abs=6e-7)


@steady
@given(sides, sides)
def test_newcombe_agrees_with_statsmodels_at_any_counts(sim, real):
    drop = rate_drop(sim, real)
    if sim.n and real.n and drop.method == "newcombe":
        expected = confint_proportions_2indep(
            sim.successes, sim.n, real.successes, real.n, compare="diff", method="newcomb"
        )
        assert (drop.low, drop.high) == pytest.approx(expected, abs=1e-9)


@steady
@given(sides, sides)
def test_any_counts_give_numbers_that_hold_the_estimate(sim, real):
    drop = rate_drop(sim, real)
    assert -1 <= drop.low <= drop.high <= 1
    if not sim.n or not real.n:
        assert drop.value is None
        assert drop.reason in ("no sim episodes", "no real episodes")
        return
    assert drop.low <= drop.value + 1e-12
    assert drop.value <= drop.high + 1e-12
    assert drop.low < drop.high
    if sim.successes:
        assert drop.relative_low - 1e-9 <= drop.relative <= drop.relative_high + 1e-9 <= 1 + 1e-9
        assert isfinite(drop.relative_low)
    else:
        assert drop.relative is drop.relative_low is drop.relative_high is None
        assert "not defined" in drop.reason


@steady
@given(sides, sides)
def test_swapping_the_sides_turns_the_interval_round(sim, real):
    forth, back = rate_drop(sim, real), rate_drop(real, sim)
    assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low), abs=1e-12)


@steady
@given(sides, sides)
def test_one_more_real_success_never_makes_the_drop_larger(sim, real):
    if sim.n and real.successes < real.n:
        before, after = rate_drop(sim, real), rate_drop(sim, Side(real.successes + 1, real.n))
        assert after.value < before.value
        assert after.low <= before.low + 1e-12
        assert after.high <= before.high + 1e-12


@steady
@given(sides, sides)
def test_ten_times_the_episodes_narrow_the_interval(sim, real):
    if sim.n and real.n:
        more = rate_drop(Side(10 * sim.successes, 10 * sim.n), Side(10 * real.successes, 10 * real.n))
        few = rate_drop(sim, real)
        assert more.high - more.low < few.high - few.low


def exact_coverage(n_sim, n_real, rates=RATES):
    """The probability, summed over all outcomes, that the interval holds the true drop; one per pair of rates."""

    def all_limits(n, other):
        limits = [side_limits(Side(k, n), Side(0, other)) for k in range(n + 1)]
        return np.array([(limit.value, limit.low, limit.high) for limit in limits]).T

    p_s, l_s, u_s = all_limits(n_sim, n_real)[:, :, None]
    p_r, l_r, u_r = all_limits(n_real, n_sim)
    low = p_s - p_r - np.hypot(p_s - l_s, u_r - p_r)
    high = p_s - p_r + np.hypot(u_s - p_s, p_r - l_r)
    chances = {n: {p: binom.pmf(np.arange(n + 1), n, p) for p in rates} for n in (n_sim, n_real)}
    return {
        (a, b): chances[n_sim][a] @ ((low <= a - b + 1e-12) & (a - b - 1e-12 <= high)) @ chances[n_real][b]
        for a in rates
        for b in rates
    }


def test_95_percent_intervals_hold_the_drop_in_95_percent_of_cases():
    cells = {
        (n_sim, n_real, *rates): coverage
        for n_sim in (200, 2000)
        for n_real in (10, 20, 50, 100, 300, 1000, 2000)
        for rates, coverage in exact_coverage(n_sim, n_real).items()
    }
    assert len(cells) == 350
    assert min(cells.values()) > 0.94
    assert 0.945 < np.mean(list(cells.values())) < 0.96
    # Wide on purpose: ten real episodes that nearly all agree.
    assert {key[1] for key, coverage in cells.items() if coverage > 0.97} == {10}


@pytest.mark.parametrize("n_sim", [100, 500, 2000])
def test_few_real_episodes_are_covered_at_every_rate(n_sim):
    """Every twentieth from 5 to 95 % on both sides: the dips of ten attempts at 30 and 70 % lie between others."""
    rates = tuple((np.arange(1, 20) / 20).tolist())
    for n_real in (10, 12, 15, 20, 30, 50):
        cells = exact_coverage(n_sim, n_real, rates)
        assert min(cells.values()) > 0.93, (n_real, min(cells, key=cells.get))
        assert 0.945 < np.mean(list(cells.values())) < 0.965


def test_newcombe_at_ten_real_episodes_of_70_percent():
    assert exact_coverage(100, 10, (0.95, 0.7))[0.95, 0.7] == pytest.approx(0.942, abs=5e-4)


def test_without_a_gap_a_certain_loss_is_seldom_claimed():
    """99.2 % on both sides, 20 real episodes: Newcombe's own limits claim a loss in 10 % of samples, these in 3 %."""

    def false_claims(small_side):
        drop = np.array([[small_side(k, j) for j in range(21)] for k in range(1960, 2001)])
        return binom.pmf(np.arange(1960, 2001), 2000, 0.992) @ (drop > 0) @ binom.pmf(np.arange(21), 20, 0.992)

    newcombe = confint_proportions_2indep
    assert false_claims(lambda k, j: newcombe(k, 2000, j, 20, compare="diff", method="newcomb")[0]) > 0.10
    assert false_claims(lambda k, j: rate_drop(Side(k, 2000), Side(j, 20)).low) < 0.03
    assert rate_drop(Side(1984, 2000), Side(19, 20)).method == "newcombe, modified limits on the small side"


def test_sessions_widen_the_interval_until_it_holds():
    random, real_rate, holds, forgets = np.random.default_rng(2), 0.8, [], []
    for _ in range(1500):
        n = random.integers(3, 20, 10)
        k = random.binomial(n, random.beta(real_rate * 9, (1 - real_rate) * 9, 10))
        sim = Side(int(random.binomial(1000, 0.9)), 1000)
        real = Side(int(k.sum()), int(n.sum()), tuple(zip(k.tolist(), n.tolist(), strict=True)))
        drop, plain = rate_drop(sim, real), rate_drop(sim, Side(real.successes, real.n))
        holds.append(drop.low <= 0.1 <= drop.high and drop.relative_low <= 1 / 9 <= drop.relative_high)
        forgets.append(plain.low <= 0.1 <= plain.high)
    assert np.mean(holds) > 0.94
    assert np.mean(forgets) < 0.87
    assert drop.method == "newcombe, clustered by session"


def test_one_session_and_sessions_of_one_are_newcombe():
    assert rate_drop(Side(90, 100), Side(30, 40, ((30, 40),))) == rate_drop(Side(90, 100), Side(30, 40))
    alone = Side(6, 8, ((1, 1),) * 6 + ((0, 1),) * 2)
    assert rate_drop(Side(75, 80), alone) == rate_drop(Side(75, 80), Side(6, 8))
