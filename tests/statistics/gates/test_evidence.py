"""Bets, followed after every episode; and the gate against controls, as `make bench-gates` has it in full."""

from math import log

import numpy as np
import pytest

from bench import gates
from gapwatch.statistics.gates.evidence import bets_above, bets_on_any, follow, since_any_start


def test_nothing_seen_is_no_evidence():
    assert follow(bets_above(0.8, 0.9), [], 0.05).e_value == 1.0


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.8])
def test_e_is_on_average_at_most_one_at_the_boundary_and_below(rate):
    bets = bets_on_any(0.8)
    for true in (rate, 0.8):
        n = 12
        chances = [_chance(k, n, true) for k in range(n + 1)]
        mean = sum(p * np.exp(bets.log_e(k, n)) for k, p in enumerate(chances))
        assert mean <= 1 + 1e-9


def test_the_order_of_arrival_moves_the_path_and_not_the_end():
    good = np.array([1.0] * 60 + [0.0] * 10)
    bets = bets_above(0.7, 0.9)
    first, second = follow(bets, good, 0.05), follow(bets, good[::-1], 0.05)
    assert first.log_e == pytest.approx(second.log_e)
    assert first.highest_log_e > second.highest_log_e
    assert first.reached_at < second.reached_at


def test_the_number_of_good_ones_needed_is_where_the_evidence_suffices():
    bets = bets_above(0.8, 0.9)
    n = np.array([50.0, 200.0, 800.0])
    needed = bets.good_needed(n, 0.05)
    assert np.allclose(bets.log_path(needed, n), log(20), atol=1e-3)


def test_a_worn_candidate_counts_for_less_when_episodes_resemble_each_other():
    bets = bets_above(0.7, 0.9)
    alone, alike = follow(bets, [1.0] * 40, 0.05), follow(bets, [1.0] * 40, 0.05, design_effect=4.0)
    assert 0 < alike.log_e < alone.log_e


def test_a_change_after_long_good_times_is_found():
    good = np.concatenate([np.zeros(2000), np.tile([1.0, 0.0], 60)])
    assert since_any_start(bets_on_any(0.2), good).max() > 2000 / 0.05
    assert since_any_start(bets_on_any(0.2), np.zeros(2000)).max() < 100


def test_looking_after_every_episode_is_harmless_for_the_gate_and_not_for_its_controls():
    ever = {
        name: float(np.isfinite(gates.passing(rule, gates.MARGIN, 250, 600)).mean())
        for name, rule in gates.GATES.items()
    }
    ours = ever.pop(next(iter(gates.GATES)))
    assert ours <= 0.05
    assert min(ever.values()) > 0.05


def test_another_mix_of_conditions_does_not_let_a_worse_policy_pass():
    easier = "easier work, 10 points worse in each"
    ours = gates.passing_in_mix(easier, 60, 300, every=30)
    control = gates.passing_in_mix(easier, 60, 300, every=30, is_standardised=False)
    assert np.isfinite(ours).mean() <= 0.05 < np.isfinite(control).mean()


def test_equal_boundaries_give_the_same_evidence():
    bets = bets_above(0.8, 0.9)
    good = np.array([1.0, 1.0, 0.0, 1.0] * 20)
    plain, mixed = follow(bets, good, 0.05, 2.0), follow(bets, good, 0.05, 2.0, np.full(80, 0.8))
    assert mixed.log_e == pytest.approx(plain.log_e) and mixed.highest_log_e == pytest.approx(plain.highest_log_e)


def test_an_equal_policy_passes_within_400_episodes():
    first = gates.passing(gates.e_process, 0.0, 250, 400)
    assert np.isfinite(first).mean() >= 0.95


def _chance(k, n, p):
    from math import comb

    return comb(n, k) * p**k * (1 - p) ** (n - k)
