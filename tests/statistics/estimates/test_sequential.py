from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.estimates.sequential import EProcess, add_block

steady = settings(deadline=None, derandomize=True, database=None)

# Fifty hardware trials of two policies each and the pair at which the reference decides "the first is worse" at
# 5 %, None if never (Dryad 10.5061/dryad.xd2547dxc, CC0). They decide as TRI's published letters do, eight of eight.
TRI = {
    "PutKiwi, single task against finetuned": (
        "01101000000010001101000110001110101111010100001011",
        "11111011111110110001111111110111111111101110110111",
        10,
    ),
    "PutKiwi, zeroshot against finetuned": (
        "00000001000010001001000110000010000000100000000110",
        "11111011111110110001111111110111111111101110110111",
        4,
    ),
    "TurnMug, single task against finetuned": (
        "01110011110011111111111110111110111111111110111111",
        "11110111101111111110111111111011111111111110111101",
        None,
    ),
    "PushCoaster, single task against finetuned": (
        "00001000000100110001010000000000000000000000000000",
        "10111001110100111001010010000000100000100000010000",
        10,
    ),
    "PutKiwi under shift, single task against finetuned": (
        "00000001000101001010010000101111101000000110010010",
        "11111111101111111110111001111111111111011101010001",
        4,
    ),
    "SetUpBreakfastTable, single task against finetuned": (
        "00000000000000000000000000000000000000000000000000",
        "11001010000100001010010000111000000001110011111000",
        19,
    ),
    "ClearKitchenCounter, single task against finetuned": (
        "00100000000000000000000101000011000000000000000101",
        "00011000011011000001001110110110001101000110010011",
        30,
    ),
    "BikeRotorInstall, single task against finetuned": (
        "00000000000010000010101010001000101101010110010000",
        "10011010000000000000000000000011000100100000000100",
        None,
    ),
}


def run(real, sim, alternative="real worse"):
    """The state after each pair of outcomes."""
    states = [EProcess(alternative)]
    for real_outcome, sim_outcome in zip(real, sim, strict=True):
        block = {"sim_successes": int(sim_outcome), "sim_n": 1, "real_successes": int(real_outcome), "real_n": 1}
        states.append(add_block(states[-1], **block))
    return states


def stop(states, alpha=0.05):
    return next((number for number, state in enumerate(states) if state.decided(alpha)), None)


@pytest.mark.parametrize("name", TRI)
def test_stopping_times_on_the_tri_trials(name):
    worse, better, expected = TRI[name]
    assert stop(run(worse, better)) == expected
    assert stop(run(better, worse)) is None
    assert stop(run(better, worse, "real better")) == expected


@pytest.mark.parametrize(("trials", "decides"), [(3, False), (4, True)])
def test_four_of_four_are_needed(trials, decides):
    for alternative, real, sim in (("real worse", "0", "1"), ("real better", "1", "0"), ("different", "1", "0")):
        assert (stop(run(real * trials, sim * trials, alternative)) is not None) == decides
    assert stop(run("1" * trials, "0" * trials, "real worse")) is None


def test_the_first_block_by_hand():
    """Prior means 2/3 and 1/3, pooled 1/2: a sim success and a real failure give (2/3 · 2/3) / (1/2 · 1/2)."""
    state = run("0", "1")[-1]
    assert exp(state.log_e) == pytest.approx(16 / 9)
    assert state.p_value == pytest.approx(9 / 16)
    assert state.estimates == pytest.approx((3 / 4, 1 / 4))


def test_unequal_blocks_pool_by_size():
    state = add_block(EProcess("real worse"), sim_successes=5, sim_n=5, real_successes=0, real_n=1)
    pooled = (5 * 2 / 3 + 1 / 3) / 6
    assert state.log_e == pytest.approx(5 * log(2 / 3 / pooled) + log(2 / 3 / (1 - pooled)))


def test_p_value_is_the_best_so_far():
    states = run("0000000" + "1" * 60, "1111111" + "0" * 60)
    assert [state.p_value for state in states] == sorted((state.p_value for state in states), reverse=True)
    assert states[-1].log_e < states[7].log_e
    assert states[-1].decided()


def test_a_block_of_one_side_only_teaches():
    state = add_block(run("0", "1")[-1], sim_successes=40, sim_n=50, real_successes=0, real_n=0)
    assert state.log_e == run("0", "1")[-1].log_e
    assert state.sim_n == 51


def evidence(random, sim_rate, real_rate, looks, sizes, series):
    """The highest ln E of many series at every look, by the same formula over arrays."""
    sim_k, real_k, log_e = np.zeros(series), np.zeros(series), np.zeros(series)
    highest = []
    for look in range(looks):
        sim = (2 + sim_k) / (3 + look * sizes[0])
        real = (1 + real_k) / (3 + look * sizes[1])
        common = (sizes[0] * sim + sizes[1] * real) / sum(sizes)
        x, y = random.binomial(sizes[0], sim_rate, series), random.binomial(sizes[1], real_rate, series)
        growth = x * np.log(sim / common) + (sizes[0] - x) * np.log((1 - sim) / (1 - common))
        growth += y * np.log(real / common) + (sizes[1] - y) * np.log((1 - real) / (1 - common))
        log_e += np.where(sim > real, growth, 0)
        sim_k, real_k = sim_k + x, real_k + y
        highest.append(log_e.copy() if not highest else np.maximum(highest[-1], log_e))
    return np.array(highest)


def test_the_formula_over_arrays_is_add_block():
    states, random = [EProcess("real worse")], np.random.default_rng(4)
    for _ in range(50):
        sim, real = random.binomial(25, 0.8, 1), random.binomial(5, 0.6, 1)
        block = {"sim_successes": int(sim[0]), "sim_n": 25, "real_successes": int(real[0]), "real_n": 5}
        states.append(add_block(states[-1], **block))
    expected = evidence(np.random.default_rng(4), 0.8, 0.6, 50, (25, 5), 1)[:, 0]
    assert [state.highest_log_e for state in states[1:]] == pytest.approx(np.maximum(expected, 0))


@pytest.mark.parametrize("sizes", [(10, 10), (25, 5)])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8, 0.95])
def test_looking_every_day_for_a_year_alarms_in_less_than_5_percent(rate, sizes):
    ever = evidence(np.random.default_rng(1), rate, rate, 365, sizes, 1500)[-1] >= log(20)
    assert ever.mean() < 0.05


@pytest.mark.parametrize(("real_rate", "episodes"), [(0.6, 200), (0.5, 100)])
def test_drops_of_20_and_30_points_are_found_in_time(real_rate, episodes):
    found = evidence(np.random.default_rng(2), 0.8, real_rate, episodes // 5, (25, 5), 1500)[-1] >= log(20)
    assert found.mean() >= 0.95


def test_session_means_keep_the_promise_where_single_attempts_break_it():
    """40 sessions of ten at ICC 0.3, nothing lost: attempts alarm in about 20 % of series, session means in none."""
    random, by_attempt, by_session = np.random.default_rng(6), [], []
    for _ in range(300):
        attempts = sessions = EProcess("real worse")
        rates = random.beta(0.8 / 0.3 * 0.7, 0.2 / 0.3 * 0.7, (40, 2))
        for sim, real in random.binomial(10, rates):
            attempts = add_block(attempts, sim_successes=sim, sim_n=10, real_successes=real, real_n=10)
            sessions = add_block(sessions, sim_successes=sim / 10, sim_n=1, real_successes=real / 10, real_n=1)
        by_attempt.append(attempts.decided())
        by_session.append(sessions.decided())
    assert np.mean(by_attempt) > 0.12
    assert np.mean(by_session) < 0.03


blocks = st.tuples(st.integers(0, 20), st.integers(0, 20), st.floats(0, 1), st.floats(0, 1))


@steady
@given(st.lists(blocks, max_size=30), st.sampled_from(["real worse", "real better", "different"]))
def test_any_blocks_can_be_resumed_and_never_give_nan(sizes, alternative):
    state = EProcess(alternative)
    for sim_n, real_n, sim_share, real_share in sizes:
        block = {"sim_n": sim_n, "real_n": real_n}
        block |= {"sim_successes": int(sim_share * sim_n), "real_successes": int(real_share * real_n)}
        stored = EProcess(**vars(state))
        state = add_block(state, **block)
        assert state == add_block(stored, **block)
    assert 0 <= state.p_value <= 1
    assert state.highest_log_e >= max(0.0, state.log_e)
    assert state.blocks == len(sizes)
