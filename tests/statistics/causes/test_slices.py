import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import barnard_exact, fisher_exact

from gapwatch.statistics.causes.slices import (
    _barnard,
    _fisher,
    _score,
    excess_tests,
    newcombe,
    rate_test,
    slice_drops,
)

steady = settings(deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((6, 7, 2, 7), 0.0582, 0.8062),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((0, 10, 0, 10), -0.2775, 0.2775),
        ((10, 10, 0, 20), 0.6791, 1.0),
        ((10, 10, 0, 10), 0.6075, 1.0),
    ],
)
def test_the_interval_agrees_with_newcombes_table(counts, low, high):
    """Newcombe 1998b, Table II, method 10."""
    assert newcombe(*counts)[1] == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize("counts", [(7, 15, 12, 15), (5, 100, 3, 30), (199, 200, 27, 30), (0, 10, 3, 10)])
def test_exact_tests_agree_with_scipy(counts):
    k1, n1, k2, n2 = counts
    table = [[k1, k2], [n1 - k1, n2 - k2]]
    z = abs(float(_score(np.array(float(k1)), n1, np.array(float(k2)), n2)))
    assert _barnard(z, n1, n2) == pytest.approx(barnard_exact(table).pvalue, rel=2e-3)
    assert _fisher(k1, n1, k2, n2) == pytest.approx(fisher_exact(table).pvalue, rel=1e-9)


def test_barnards_p_of_the_vaccine_table():
    """Mehta and Senchaudhuri: 7 of 15 against 12 of 15, one-sided 0.034077, and z −1.8943."""
    z = float(_score(np.array(7.0), 15, np.array(12.0), 15))
    assert z == pytest.approx(-1.8943380760602064)
    assert rate_test(7, 15, 12, 15)[0] / 2 == pytest.approx(0.034077, abs=5e-5)


@pytest.mark.parametrize(
    ("counts", "test"),
    [((800, 1000, 60, 100), "score"), ((990, 1000, 29, 30), "Barnard"), ((2, 10**6, 1, 30), "Fisher")],
)
def test_the_test_fits_the_counts(counts, test):
    assert rate_test(*counts)[1] == test


tables = st.tuples(st.integers(0, 60), st.integers(1, 60), st.integers(0, 30), st.integers(1, 30)).map(
    lambda c: (min(c[0], c[1]), c[1], min(c[2], c[3]), c[3])
)


@steady
@given(tables)
def test_p_is_the_same_with_the_sides_swapped(counts):
    k1, n1, k2, n2 = counts
    assert rate_test(k2, n2, k1, n1)[0] == pytest.approx(rate_test(*counts)[0], rel=1e-6, abs=1e-12)
    assert 0 <= rate_test(*counts)[0] <= 1


def drawn(generator, levels, n_real, sim_rate, real_rates):
    return {
        ("lighting", f"level {i}"): (
            int(generator.binomial(200, sim_rate)),
            200,
            int(generator.binomial(n_real, real_rates[i])),
            n_real,
        )
        for i in range(levels)
    }


@pytest.mark.parametrize("n_real", [10, 40, 150])
def test_without_a_difference_few_fields_have_a_finding(n_real):
    """200 null fields of eight levels: any finding, and any suspect, in at most 5 % and the noise of 200."""
    generator = np.random.default_rng(31)
    findings = suspects = 0
    for _ in range(200):
        found = slice_drops(drawn(generator, 8, n_real, 0.9, [0.9] * 8))
        findings += any(s.verdict in ("worse", "better") for s in found)
        suspects += any(s.is_suspect for s in found)
    assert findings / 200 <= 0.08, findings
    assert suspects / 200 <= 0.05, suspects


def test_a_level_that_fails_more_is_found_and_where_all_do_none_stands_out():
    generator = np.random.default_rng(32)
    dim = slice_drops(drawn(generator, 4, 80, 0.9, [0.5, 0.88, 0.9, 0.9]))
    assert (dim[0].level, dim[0].verdict, dim[0].is_suspect) == ("level 0", "worse", True)
    assert not any(s.is_suspect for s in dim[1:])
    everywhere = slice_drops(drawn(generator, 4, 80, 0.9, [0.55] * 4))
    assert {s.verdict for s in everywhere} == {"worse"}
    assert not any(s.is_suspect for s in everywhere)


@pytest.mark.parametrize("n_real", [15, 50, 150])
def test_an_excess_is_claimed_falsely_in_five_percent(n_real):
    """Drops of 20 points at both, sim and real rates different: 600 runs, 5 % and three standard errors."""
    generator = np.random.default_rng(33)
    pairs = []
    for _ in range(600):
        here = (int(generator.binomial(300, 0.9)), 300, int(generator.binomial(n_real, 0.7)), n_real)
        rest = (int(generator.binomial(700, 0.8)), 700, int(generator.binomial(2 * n_real, 0.6)), 2 * n_real)
        pairs.append((here, rest))
    false = sum(p <= 0.05 for _, _, p in excess_tests(pairs))
    assert false / 600 <= 0.077, false


@pytest.mark.parametrize("drop", [0.0, 0.02, 0.05, 0.1, 0.3, -0.2])
def test_more_episodes_at_the_same_rates_only_settle_a_verdict(drop):
    """A verdict never turns into another with sample size alone: first too few episodes, then one word for ever."""
    words = []
    for scale in (1, 2, 5, 10, 30, 100, 300, 1000, 10_000, 100_000):
        n = 20 * scale
        counts = {("lighting", "dim"): (round(n * 0.8), n, round(n * (0.8 - drop)), n)}
        words.append(slice_drops(counts)[0].verdict)
    settled = [word for word in words if word != "too few episodes"]
    assert words == ["too few episodes"] * (len(words) - len(settled)) + settled
    expected = "none" if abs(drop) < 0.05 else "worse" if drop > 0 else "better"
    assert set(settled) == {expected}


def test_a_level_of_one_side_only_has_a_reason():
    found = slice_drops({("object", "glass"): (0, 0, 3, 9), ("object", "mug"): (9, 10, 8, 10)})
    glass, mug = sorted(found, key=lambda s: s.level)
    assert (glass.verdict, glass.reason, glass.drop) == ("too few episodes", "No episodes in sim.", None)
    assert (mug.excess, mug.excess_q) == (None, None)
    assert slice_drops({}) == []


def test_the_surest_loss_leads_and_neither_few_episodes_nor_what_nearly_all_share():
    found = slice_drops(
        {
            ("lighting", "dim"): (190, 200, 120, 200),
            ("lighting", "dark"): (19, 20, 0, 19),
            ("lighting", "dusk"): (190, 200, 10, 30),
            ("lighting", "bright"): (190, 200, 180, 200),
            ("gripper", "suction"): (589, 620, 310, 430),
            ("gripper", "jaw"): (0, 0, 0, 19),
        }
    )
    dusk, dim = found[0], found[1]
    assert [s.level for s in found] == ["dusk", "dim", "bright", "jaw", "dark", "suction"]
    # Dusk loses so much more that its wide interval still begins above that of dim.
    assert dusk.interval is not None and dim.interval is not None and dusk.interval[0] > dim.interval[0]
    assert [s.level for s in found if s.is_few] == ["jaw", "dark"]
    assert [s.level for s in found if s.is_shared] == ["suction"]


def test_a_level_that_was_never_simulated_is_held_against_all_of_sim():
    found = slice_drops({("surface", "wet"): (0, 0, 40, 100), ("surface", "dry"): (95, 100, 90, 100)})
    assert [s.level for s in found] == ["wet", "dry"]
    assert found[0].drop is None and found[0].sure_loss == pytest.approx(newcombe(95, 100, 40, 100)[1][0])


def test_a_level_that_nearly_all_episodes_share_is_no_suspect():
    """It would be: the other level does as well as sim, and 960 episodes say that this one does not."""
    counts = {("gripper", "suction"): (912, 960, 720, 960), ("gripper", "jaw"): (38, 40, 40, 40)}
    suction = next(s for s in slice_drops(counts) if s.level == "suction")
    assert (suction.verdict, suction.is_shared, suction.is_suspect) == ("worse", True, False)
    even = slice_drops({("gripper", "suction"): (475, 500, 375, 500), ("gripper", "jaw"): (475, 500, 480, 500)})
    assert next(s for s in even if s.level == "suction").is_suspect
