from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from bench.populations import drawn_policies
from gapwatch.statistics.estimates.trust import (
    PolicyPoint,
    drawn_measures,
    fisher_interval,
    mmrv,
    pearson,
    simulator_trust,
)

steady = settings(deadline=None, derandomize=True, database=None)
GOOGLE = ("rt-2-x", "rt-1-converged", "rt-1-15pct", "rt-1-x", "rt-1-begin", "octo-base")
WIDOWX = ("rt-1-x", "octo-base", "octo-small")

# SIMPLER (arXiv:2405.05941, SimplerEnv, MIT): real trials, real and sim success; then MMRV, MMRV with the
# arguments swapped, Pearson and Spearman; the paper prints 0.031/0.976, –/0.855, –/0.969, 0.000/0.827, 0.111/0.575,
# 0.000/1.000 and 0.000/0.990 for those it prints.
SIMPLER = {
    "pick_coke_can": (
        (75, (0.907, 0.853, 0.92, 0.76, 0.133, 0.293), (0.787, 0.857, 0.71, 0.567, 0.027, 0.17)),
        (0.031333, 0.061833, 0.975434, 0.771429),
    ),
    "move_near": (
        (60, (0.733, 0.633, 0.583, 0.45, 0.017, 0.35), (0.779, 0.442, 0.354, 0.317, 0.05, 0.042)),
        (0.111000, 0.002667, 0.856097, 0.942857),
    ),
    "open_drawer": (
        (27, (0.333, 0.815, 0.704, 0.519, 0.0, 0.148), (0.157, 0.601, 0.463, 0.296, 0.0, 0.009)),
        (0.0, 0.0, 0.983167, 1.0),
    ),
    "close_drawer": (
        (27, (0.63, 0.926, 0.889, 0.741, 0.0, 0.519), (0.343, 0.861, 0.667, 0.891, 0.278, 0.444)),
        (0.123333, 0.113333, 0.771233, 0.771429),
    ),
    "place_apple": (
        (27, (0.074, 0.185, 0.185, 0.407, 0.0, 0.0), (0.037, 0.065, 0.13, 0.213, 0.0, 0.0)),
        (0.0, 0.010833, 0.969172, 0.985184),
    ),
    "spoon_on_towel": ((24, (0.0, 0.333, 0.417), (0.0, 0.125, 0.472)), (0.0, 0.0, 0.826944, 1.0)),
    "carrot_on_plate": ((24, (0.0, 0.25, 0.083), (0.042, 0.083, 0.097)), (0.111333, 0.009333, 0.571368, 0.5)),
    "stack_cube": ((24, (0.0, 0.0, 0.125), (0.0, 0.0, 0.042)), (0.0, 0.0, 1.0, 1.0)),
    "eggplant_in_basket": ((24, (0.0, 0.25, 0.4), (0.0, 0.431, 0.569)), (0.0, 0.0, 0.989415, 1.0)),
}


def points(task, n_sim=300):
    n_real, real, sim = SIMPLER[task][0]
    names = GOOGLE if len(real) == len(GOOGLE) else WIDOWX
    return [PolicyPoint(name, s, r, n_sim, n_real) for name, s, r in zip(names, sim, real, strict=True)]


@pytest.mark.parametrize("task", SIMPLER)
def test_the_whole_simpler_table(task):
    (_, real, sim), (expected, swapped, r, rank) = SIMPLER[task]
    assert (mmrv(sim=sim, real=real), pearson(sim, real)) == pytest.approx((expected, r), abs=6e-7)
    trust = simulator_trust(points(task))
    if len(real) > 3:
        assert (trust.mmrv, trust.pearson, trust.spearman) == pytest.approx((expected, r, rank), abs=6e-7)
    assert mmrv(sim=real, real=sim) == pytest.approx(swapped, abs=6e-7)
    assert "real side" in trust.convention


def test_arguments_cannot_be_swapped_by_accident():
    with pytest.raises(TypeError):
        mmrv([0.1, 0.2], [0.1, 0.2])


@pytest.mark.parametrize(
    ("sim", "real", "expected"),
    [
        ([0.6, 0.6], [0.5, 0.7], 0.1),
        ([0.6, 0.7], [0.5, 0.5], 0.0),
        ([0.6, 0.6], [0.5, 0.5], 0.0),
        ([0.4], [0.9], 0.0),
    ],
)
def test_a_tie_counts_in_one_direction(sim, real, expected):
    assert mmrv(sim=sim, real=real) == pytest.approx(expected)


def test_how_noisy_a_printed_mmrv_is():
    """pick_coke_can, 75 real and 300 sim trials: 0.031 as printed, 0.000 to 0.07 as measured."""
    trust = simulator_trust(points("pick_coke_can"))
    assert trust.mmrv_interval == pytest.approx((0.0, 0.068), abs=0.008)
    # Fisher's, of the printed rates as if they were the true ones.
    assert fisher_interval(trust.pearson, 6) == pytest.approx((0.786, 0.997), abs=6e-4)
    assert trust.pearson_interval == pytest.approx((0.78, 0.999), abs=0.015)
    assert simulator_trust(points("pick_coke_can")) == trust


@pytest.mark.parametrize("task", ["spoon_on_towel", "carrot_on_plate", "stack_cube", "eggplant_in_basket"])
def test_three_policies_get_no_numbers(task):
    """The paper prints r = 0.575 for three points; by chance that is as likely as a toss."""
    trust = simulator_trust(points(task))
    assert trust.verdict == "too few policies"
    assert trust.reason == "3 policies; nothing is measured below 4"
    assert (trust.pearson, trust.spearman, trust.mmrv, trust.regret, trust.leave_one_out) == (None,) * 4 + ((),)
    assert trust.pearson_interval is trust.mmrv_interval is None


def test_words_for_the_simpler_tasks():
    words = {task: simulator_trust(points(task)).verdict for task in list(SIMPLER)[:5]}
    assert words["pick_coke_can"] == words["open_drawer"] == words["place_apple"] == "trustworthy"
    assert words["move_near"] == words["close_drawer"] == "undecided"


def made(sim, real, n=1000):
    return [PolicyPoint(f"policy-{i}", s, r, n, n) for i, (s, r) in enumerate(zip(sim, real, strict=True))]


def test_a_simulator_that_ranks_the_wrong_way_round_is_untrustworthy():
    trust = simulator_trust(made([0.9, 0.8, 0.6, 0.4, 0.3], [0.2, 0.4, 0.5, 0.8, 0.9]))
    assert trust.verdict == "untrustworthy"
    assert trust.regret == pytest.approx(0.7)


def test_one_policy_that_carries_the_correlation_is_named():
    trust = simulator_trust(made([0.70, 0.72, 0.69, 0.71, 0.05], [0.60, 0.58, 0.61, 0.62, 0.04]))
    assert trust.pearson > 0.99
    assert trust.fragile
    assert trust.largest_change > 0.10
    assert trust.reason == "one policy carries the correlation"
    weakest = min(trust.leave_one_out, key=lambda one: one.pearson)
    assert weakest.policy == "policy-4"


def test_leaving_one_out_is_the_measure_of_the_rest():
    everyone = points("close_drawer")
    for i, one in enumerate(simulator_trust(everyone).leave_one_out):
        rest = simulator_trust(everyone[:i] + everyone[i + 1 :])
        assert rest.policies == 5
        assert (one.pearson, one.mmrv) == (rest.pearson, rest.mmrv)


def test_regret_is_what_believing_sim_costs():
    assert simulator_trust(points("close_drawer")).regret == pytest.approx(0.926 - 0.741)
    assert simulator_trust(points("open_drawer")).regret == 0
    # On a tie in sim the worse choice is counted.
    assert simulator_trust(made([0.9, 0.9, 0.1, 0.2], [0.8, 0.5, 0.1, 0.2])).regret == pytest.approx(0.3)


def test_what_cannot_be_said_has_a_reason():
    assert simulator_trust([]).reason == "no policy has run on both sides"
    same = simulator_trust(made([0.5] * 4, [0.1, 0.2, 0.3, 0.4]))
    assert (same.pearson, same.verdict) == (None, "undecided")
    assert same.reason == "all policies are alike on one side"
    line = simulator_trust(made([0.1, 0.2, 0.3, 0.4], [0.2, 0.4, 0.6, 0.8]))
    assert line.pearson_interval[0] < 1 <= line.pearson_interval[1] + 1e-3
    uncounted = simulator_trust([PolicyPoint(p.policy, p.sim, p.real, 0, 0) for p in points("move_near")])
    assert (uncounted.mmrv_interval, uncounted.verdict) == (None, "undecided")


def test_fisher_needs_four_policies():
    assert fisher_interval(0.9, 3) is None
    assert fisher_interval(0.5, 28) == pytest.approx((0.156, 0.736), abs=5e-4)


rates = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), max_size=7)


@steady
@given(rates)
def test_any_policies_get_numbers(pairs):
    sim, real = [s / 10 for s, _ in pairs], [r / 10 for _, r in pairs]
    trust = simulator_trust(made(sim, real, n=10))
    assert trust.mmrv is None or 0 <= trust.mmrv <= 1
    assert trust.regret is None or 0 <= trust.regret <= 1
    varies = len(set(sim)) > 1 and len(set(real)) > 1 and len(pairs) > 3
    assert (trust.pearson is not None) == varies
    if varies:
        assert trust.pearson == pytest.approx(pearsonr(sim, real).statistic, abs=1e-9)
        assert trust.spearman == pytest.approx(spearmanr(sim, real).statistic, abs=1e-9)


@steady
@given(st.lists(st.integers(0, 100), min_size=2, max_size=5, unique=True))
def test_only_the_order_in_sim_matters_to_mmrv(real):
    assert mmrv(sim=real, real=real) == 0
    assert mmrv(sim=np.exp(np.array(real) / 10), real=real) == 0
    worst = mmrv(sim=[-value for value in real], real=real)
    assert all(mmrv(sim=order, real=real) <= worst + 1e-9 for order in permutations(real))
    assert pearson(real, [-value for value in real]) == pytest.approx(-1)


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.98])
def test_intervals_of_mmrv_and_correlation_cover(rho):
    """150 fields of eight policies with 20 real episodes each; bench/populations has more."""
    random = np.random.default_rng(3)
    held = np.zeros(2)
    for _ in range(150):
        policies, truth = drawn_policies(random, 8, 20, rho)
        found = drawn_measures(policies)
        held += (found.mmrv[0] <= truth <= found.mmrv[1], found.pearson[0] <= rho <= found.pearson[1])
    # Of a true 94 %, fewer than 88 % in one of 500 runs.
    assert (held / 150 >= 0.88).all(), held / 150
