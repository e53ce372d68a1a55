"""Real against its simulation, block by block, from many starts."""

import json
import time

import numpy as np
import pytest

from gapwatch.statistics.change import drift_against_sim
from gapwatch.statistics.change.drift_against_sim import (
    BLOCK,
    SIM_BLOCK,
    SimProcess,
    SimState,
    SimWatch,
    update_against_sim,
)
from gapwatch.statistics.estimates.sequential import EProcess, add_block


def series(rng, *parts):
    return [float(x) for rate, n in parts for x in rng.random(n) < rate]


def breaches(rng, number, *parts, sim_rate=0.8, sim_n=2000, **settings):
    sim = (int(rng.binomial(sim_n, sim_rate)), sim_n)
    crossings = update_against_sim(SimWatch(seed=number, **settings), SimState(), sim, series(rng, *parts))
    return [c for c in crossings if c.kind == "breach"]


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_a_thousand_equal_pairs_looked_at_three_hundred_times_rarely_alarm(rate):
    """340 pairs of each rate, 1020 in all, 3000 real episodes in 300 looks; any drop at all would count."""
    rng = np.random.default_rng(1)
    alarmed = sum(bool(breaches(rng, i, (rate, 3000), sim_rate=rate, above=0.0)) for i in range(340))
    assert alarmed / 340 <= 0.065


@pytest.mark.parametrize(("real", "within"), [(0.6, 200), (0.5, 100)])
def test_a_drop_of_20_or_30_points_at_deploy_is_flagged_in_time(real, within):
    rng = np.random.default_rng(2)
    found = [bool(breaches(rng, i, (real, within))) for i in range(400)]
    assert np.mean(found) >= 0.95


@pytest.mark.parametrize(("real", "within"), [(0.6, 200), (0.5, 100)])
def test_a_drop_after_three_hundred_good_episodes_is_flagged_in_time(real, within):
    rng = np.random.default_rng(3)
    found = [breaches(rng, i, (0.8, 300), (real, within)) for i in range(400)]
    assert np.mean([bool(f) and f[-1].number >= 300 for f in found]) >= 0.93
    # The grid of starts dates the change to within fifty episodes.
    changes = [f[0].change for f in found if f and f[0].number >= 300]
    assert 240 <= np.median(changes) <= 350


def test_with_few_sim_episodes_intervals_decide():
    rng = np.random.default_rng(4)
    null = [breaches(rng, i, (0.8, 1500), sim_n=150, above=0.0) for i in range(100)]
    assert np.mean([bool(f) for f in null]) <= 0.03
    [alarm] = breaches(rng, 0, (0.4, 150), sim_n=150)
    assert alarm.statistic == "confidence sequence against sim"


def test_without_sim_episodes_nothing_is_said():
    state = SimState()
    assert update_against_sim(SimWatch(), state, (0, 0), [0.0] * 500) == []
    assert state.n == 500


def test_a_drop_that_is_certain_but_small_is_no_alarm():
    rng = np.random.default_rng(5)
    assert not breaches(rng, 1, (0.72, 1500), above=0.2)


def test_the_alarm_has_the_drop_with_its_interval():
    [alarm] = breaches(np.random.default_rng(6), 1, (0.4, 100))
    drop = alarm.facts["drop"]
    assert drop["interval"][0] < drop["value"] < drop["interval"][1]
    assert drop["interval"][0] > 0.05
    assert alarm.facts["reference"]["n"] == 2000
    assert alarm.value >= alarm.threshold == SimWatch().arl / 50


def test_real_that_comes_back_recovers_and_may_fall_again():
    rng = np.random.default_rng(7)
    values = series(rng, (0.8, 300), (0.4, 100), (0.85, 250), (0.4, 100))
    kinds = [c.kind for c in update_against_sim(SimWatch(), SimState(), (1600, 2000), values)]
    assert kinds == ["breach", "recovery", "breach"]


def test_a_process_is_the_two_sample_e_process():
    rng = np.random.default_rng(8)
    process, e = SimProcess(0, 0, 1600, 2000, 1.0), EProcess("real worse")
    for _ in range(40):
        sim, real = int(rng.binomial(SIM_BLOCK, 0.8)), float(rng.binomial(BLOCK, 0.6))
        process.add(sim, real)
        e = add_block(e, sim_successes=sim, sim_n=SIM_BLOCK, real_successes=real, real_n=BLOCK)
        assert process.log_e == pytest.approx(e.log_e, abs=1e-9)


def test_a_pool_is_drawn_without_replacement_in_an_order_of_its_own():
    drawn = drift_against_sim._draws(3, 0, 1600, 2000)
    assert len(drawn) == 2000 // SIM_BLOCK
    assert sum(drawn) == 1600
    assert drawn != drift_against_sim._draws(3, 1, 1600, 2000)
    assert drawn == drift_against_sim._draws.__wrapped__(3, 0, 1600, 2000)


def test_batches_and_stored_state_give_the_same_to_the_bit():
    rng = np.random.default_rng(9)
    values = series(rng, (0.8, 300), (0.5, 120), (0.85, 600))
    whole, state, found = SimState(), SimState(), []
    expected = update_against_sim(SimWatch(), whole, (4800, 6000), values)
    for at in range(0, len(values), 33):
        state = SimState.load(json.loads(json.dumps(state.dump())))
        found += update_against_sim(SimWatch(), state, (4800, 6000), values[at : at + 33])
    assert [(c.kind, c.number, c.value) for c in found] == [(c.kind, c.number, c.value) for c in expected]
    assert [c.kind for c in found] == ["breach", "recovery"]
    assert state.dump() == whole.dump()


def test_two_hundred_thousand_episodes_a_second():
    values = series(np.random.default_rng(10), (0.8, 40_000))
    best = 0.0
    for _ in range(5):
        started = time.process_time()
        update_against_sim(SimWatch(), SimState(), (1600, 2000), values)
        best = max(best, len(values) / (time.process_time() - started))
    assert best >= 200_000
