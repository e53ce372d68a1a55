import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from gapwatch.statistics.causes.ledger import (
    UNATTRIBUTED,
    LedgerSession,
    LedgerSide,
    make_ledger,
    weight_interval,
)
from gapwatch.taxonomy import CATEGORIES

steady = settings(deadline=None, derandomize=True, database=None)
COMMON = np.array([30, 20, 10, 8, 6, 5, 4, 3, 2, 2, 1, 1, 1, 7]) / 100
SHIFTED = np.array([50, 5, 20, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5]) / 100


def draw_weights(generator, failures, shares, style):
    """One row a failed episode, one column a category and one for what has no evidence."""
    if style == "dirichlet":
        weights = generator.dirichlet(shares * 3, size=failures)
    else:
        weights = np.zeros((failures, 14))
        rows, main = np.arange(failures), generator.choice(14, size=failures, p=shares)
        part = generator.uniform(0.3, 1, failures) if style == "split" else np.ones(failures)
        weights[rows, main] = part
        weights[rows, generator.integers(0, 14, failures)] += (1 - part) * 0.6
    weights = np.floor(weights * 1024) / 1024
    weights[:, 13] = 1 - weights[:, :13].sum(axis=1)
    return weights


def side(weights, n, sessions=()):
    names = [*CATEGORIES, UNATTRIBUTED]
    totals = dict(zip(names, weights.sum(axis=0).tolist(), strict=True))
    squares = dict(zip(names, (weights**2).sum(axis=0).tolist(), strict=True))
    return LedgerSide(n, len(weights), totals, squares, sessions)


def draw(generator, n, failure_rate, shares, style):
    return side(draw_weights(generator, generator.binomial(n, failure_rate), shares, style), n)


def all_entries(found):
    return [*found.entries, found.unattributed]


@steady
@given(
    st.lists(st.lists(st.integers(0, 1024), min_size=13, max_size=13), max_size=30),
    st.lists(st.lists(st.integers(0, 1024), min_size=13, max_size=13), max_size=30),
    st.integers(1, 50),
    st.integers(1, 50),
)
def test_contributions_and_unattributed_add_up_to_the_drop(sim_rows, real_rows, sim_more, real_more):
    def made(rows, more):
        parts = np.array(rows, dtype=float).reshape(-1, 13)
        parts = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1024)
        return side(np.column_stack([parts, 1 - parts.sum(axis=1)]), len(rows) + more)

    sim, real = made(sim_rows, sim_more), made(real_rows, real_more)
    found = make_ledger(sim, real, CATEGORIES)
    drop = (1 - sim.failures / sim.n) - (1 - real.failures / real.n)
    assert found.drop == pytest.approx(drop, abs=1e-12)
    assert sum(entry.contribution for entry in all_entries(found)) == pytest.approx(drop, abs=1e-9)
    for entry in all_entries(found):
        if entry.interval is not None:
            assert -1 <= entry.interval[0] <= entry.contribution + 1e-12
            assert entry.contribution - 1e-12 <= entry.interval[1] <= 1


@pytest.mark.parametrize("style", ["crisp", "split", "dirichlet"])
@pytest.mark.parametrize("n_real", [30, 100, 300])
def test_without_a_difference_no_category_is_accused_too_often(style, n_real):
    """Seeded null worlds, n_sim 1000, failures 5, 20 and 40 %: each category excludes zero in at most 5 %."""
    generator = np.random.default_rng(21)
    for failure_rate, runs in ((0.05, 150), (0.2, 250), (0.4, 250)):
        accused = np.zeros(14)
        for _ in range(runs):
            sim = draw(generator, 1000, failure_rate, COMMON, style)
            real = draw(generator, n_real, failure_rate, COMMON, style)
            entries = {entry.category: entry.interval for entry in all_entries(make_ledger(sim, real, CATEGORIES))}
            limits = [entries[name] for name in (*CATEGORIES, UNATTRIBUTED)]
            accused += [pair is not None and (pair[0] > 0 or pair[1] < 0) for pair in limits]
        # 14 shares of few runs: the largest may exceed the true one by three standard errors, here 3.5 points.
        assert accused.mean() / runs <= 0.03, accused / runs
        assert accused.max() / runs <= 0.08, accused / runs


@pytest.mark.parametrize("style", ["crisp", "split"])
@pytest.mark.parametrize("n_real", [30, 100, 300])
def test_intervals_cover_the_true_contributions(style, n_real):
    """Failures 10 % in sim and 35 % in real, other causes: each category is covered in 92 % of 250 runs or more."""
    generator = np.random.default_rng(22)
    truth = 0.35 * draw_weights(generator, 200_000, SHIFTED, style).mean(axis=0)
    truth -= 0.1 * draw_weights(generator, 200_000, COMMON, style).mean(axis=0)
    covered = np.zeros(14)
    for _ in range(250):
        sim, real = draw(generator, 1000, 0.1, COMMON, style), draw(generator, n_real, 0.35, SHIFTED, style)
        found = {entry.category: entry.interval for entry in all_entries(make_ledger(sim, real, CATEGORIES))}
        for i, name in enumerate((*CATEGORIES, UNATTRIBUTED)):
            low, high = found[name] or (truth[i], truth[i])
            covered[i] += low <= truth[i] <= high
    assert covered.min() / 250 >= 0.92, covered / 250


def test_sessions_widen_intervals_where_failures_come_together():
    """Ten sittings of 20 with failure rates of their own (ICC 0.2), one cause; episodes alone accuse too often."""
    generator = np.random.default_rng(23)
    accused = np.zeros(2)
    for _ in range(400):
        in_sim = int(generator.binomial(1000, 0.3))
        in_sittings = generator.binomial(20, generator.beta(0.3 * 4, 0.7 * 4, 10)).tolist()
        sittings = [LedgerSession(20, count, {"visual": count}) for count in in_sittings]
        for place, sessions in enumerate([sittings, ()]):
            real = LedgerSide(200, sum(in_sittings), {"visual": sum(in_sittings)}, sessions=sessions)
            found = make_ledger(LedgerSide(1000, in_sim, {"visual": in_sim}), real)
            low, high = found.entries[0].interval
            accused[place] += low > 0 or high < 0
            assert ("sessions of real" in found.method) == (place == 0)
    assert accused[0] / 400 <= 0.07 and accused[1] / 400 > 0.15, accused / 400


def test_a_category_without_evidence_stays_at_zero_and_has_no_interval():
    found = make_ledger(
        LedgerSide(100, 5, {"visual": 5.0}), LedgerSide(50, 10, {"visual": 8.0}), ("visual", "actuation")
    )
    by_name = {entry.category: entry for entry in found.entries}
    assert (by_name["actuation"].contribution, by_name["actuation"].interval) == (0, None)
    assert by_name["visual"].contribution == pytest.approx(0.16 - 0.05)
    assert found.unattributed.contribution == pytest.approx(0.04)
    assert found.unattributed.interval is not None


def test_one_rare_failure_accuses_nobody():
    """1 of 30 against 4 of 1000: Newcombe's interval would exclude zero, and would in 9 % of null worlds."""
    found = make_ledger(LedgerSide(1000, 4, {"visual": 4.0}), LedgerSide(30, 1, {"visual": 1.0}))
    assert found.entries[0].interval[0] < 0 < found.entries[0].interval[1]


@pytest.mark.parametrize(("k", "n"), [(0, 30), (1, 30), (7, 50), (50, 50)])
def test_limits_of_whole_weights_are_clopper_and_pearsons(k, n):
    exact = binomtest(k, n).proportion_ci(method="exact")
    assert weight_interval(k, 1.0, n) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_half_weights_have_half_the_limits():
    assert weight_interval(3.5, 0.5, 50) == pytest.approx(tuple(x / 2 for x in weight_interval(7, 1.0, 50)))


def test_without_episodes_on_a_side_there_is_a_reason():
    found = make_ledger(LedgerSide(0, 0, {}), LedgerSide(10, 1, {}))
    assert (found.drop, found.entries, found.reason) == (None, (), "One side has no episodes.")
