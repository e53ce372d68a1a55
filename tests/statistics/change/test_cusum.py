"""Run lengths as published, and a CUSUM that goes on from stored numbers."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from gapwatch.statistics.change.cusum import (
    CusumState,
    CusumWatch,
    one_sided_arl,
    threshold_for,
    two_sided_arl,
    update_cusum,
)


@pytest.mark.parametrize(("shift", "arl"), [(0, 168), (0.25, 74.2), (0.5, 26.6), (1, 8.38), (2, 3.34)])
def test_run_lengths_of_lucas_and_crosier(shift, arl):
    assert two_sided_arl(0.5, 4, shift) == pytest.approx(arl, rel=0.003)


def test_run_lengths_of_brook_and_evans_vance_and_ours():
    assert one_sided_arl(0.5, 3) == pytest.approx(117.59, abs=0.02)
    assert one_sided_arl(0.0, 10) == pytest.approx(124.66, abs=0.01)
    assert one_sided_arl(0.0, 10, 1) == pytest.approx(10.75, abs=0.01)
    assert two_sided_arl(0.5, 5) == pytest.approx(465.4, abs=0.1)
    assert one_sided_arl(0.5, 5, 1) == pytest.approx(10.38, abs=0.01)


def test_the_threshold_gives_the_run_length_asked_for():
    assert two_sided_arl(0.5, threshold_for(10_000)) == pytest.approx(10_000, rel=1e-3)


def test_the_simulated_run_length_is_the_computed_one():
    rng = np.random.default_rng(1)
    first = []
    for _ in range(600):
        state = CusumState(n=200, mean=0.0, deviation=1.0)
        first.append(update_cusum(CusumWatch(arl=100), state, rng.normal(size=1500).tolist())[0].index + 1)
    assert np.mean(first) == pytest.approx(100, rel=0.1)


def test_a_shift_of_one_deviation_is_found_and_dated_and_its_end_too():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(50, 4, 300), rng.normal(54, 4, 100), rng.normal(50, 4, 250)]).tolist()
    breach, recovery = update_cusum(CusumWatch(), CusumState(), values)
    assert 300 <= breach.number <= 340
    assert abs(breach.change - 300) <= 10
    assert breach.facts["since"]["direction"] == "higher"
    assert breach.facts["reference"]["value"] == pytest.approx(50, abs=1)
    assert recovery.kind == "recovery"
    assert recovery.number >= 400 + CusumWatch().clear_episodes - 1


def test_one_wild_value_is_no_alarm():
    values = np.random.default_rng(3).normal(size=500).tolist()
    values[300] = 1e9
    assert update_cusum(CusumWatch(), CusumState(), values) == []


def test_a_constant_signal_never_alarms_and_its_first_change_does():
    assert update_cusum(CusumWatch(), CusumState(), [7.0] * 1000) == []
    assert update_cusum(CusumWatch(), CusumState(), [7.0] * 300 + [8.0] * 5) != []


def test_batches_and_stored_state_give_the_same_to_the_bit():
    values = np.random.default_rng(4).normal(size=900).tolist() + [3.0] * 50
    whole, state = CusumState(), CusumState()
    expected = update_cusum(CusumWatch(), whole, values)
    found = []
    for at in range(0, len(values), 37):
        state = CusumState(**json.loads(json.dumps(asdict(state))))
        found += update_cusum(CusumWatch(), state, values[at : at + 37])
    assert [(c.kind, c.number, c.value) for c in found] == [(c.kind, c.number, c.value) for c in expected]
    assert asdict(state) == asdict(whole)
