import numpy as np
import pytest

from gapwatch.statistics.causes.signal_credit import SignalOutcomes, signal_credit
from gapwatch.statistics.causes.signals import shape_of

CHANCE = np.random.default_rng(11)
SIM = CHANCE.normal(10, 1, 1000)
LOW, MEDIAN, HIGH = (float(np.quantile(SIM, q)) for q in (0.01, 0.5, 0.99))


def outcomes(values, rate):
    """`rate` is the chance of failing, a number or one a value."""
    failed = np.random.default_rng(5).random(len(values)) < rate
    return SignalOutcomes(shape_of(values[~failed]), shape_of(values[failed]))


def credit(real, rate, side="above"):
    return signal_credit(LOW, MEDIAN, HIGH, outcomes(SIM, 0.05), outcomes(real, rate), side)


def test_values_that_every_real_episode_has_are_not_to_blame_where_real_fails_as_often_as_sim():
    assert credit(np.random.default_rng(1).normal(16, 1, 300), 0.05) == 0


def test_values_far_out_that_failures_do_not_follow_are_not_to_blame_although_real_fails_more():
    assert credit(np.random.default_rng(1).normal(14, 1, 300), 0.4) < 0.1


def test_a_shift_that_is_the_same_everywhere_cannot_be_cleared():
    real = np.full(300, 16.0)
    assert credit(real, 0.4) > 0.8
    assert credit(real, 0.4, "below") == 0


def test_failures_that_follow_the_value_are_blamed_on_it():
    real = np.random.default_rng(1).normal(14, 1.5, 300)
    rate = 1 / (1 + np.exp(-(real - 14.5) * 2))
    assert credit(real, rate) > 0.8


def test_below_is_the_mirror_of_above():
    real = np.random.default_rng(1).normal(14, 1.5, 300)
    rate = 1 / (1 + np.exp(-(real - 14.5) * 2))
    sim, mirrored = outcomes(SIM, 0.05), outcomes(-SIM, 0.05)
    above = signal_credit(LOW, MEDIAN, HIGH, sim, outcomes(real, rate), "above")
    below = signal_credit(-HIGH, -MEDIAN, -LOW, mirrored, outcomes(-real, rate), "below")
    assert above == pytest.approx(below, abs=1e-9)


def test_one_failure_far_out_is_an_anecdote():
    few, many = (SignalOutcomes(shape_of(SIM[:200]), shape_of([99.0] * times + [10.0] * 10)) for times in (1, 12))
    assert signal_credit(LOW, MEDIAN, HIGH, outcomes(SIM, 0.05), few, "above") < 0.1
    assert signal_credit(LOW, MEDIAN, HIGH, outcomes(SIM, 0.05), many, "above") > 0.9


def test_without_real_values_nothing_is_blamed_that_sim_does_not_show():
    nothing = SignalOutcomes(shape_of([]), shape_of([]))
    assert signal_credit(LOW, MEDIAN, HIGH, outcomes(SIM, 0.05), nothing, "above") == 0
    assert signal_credit(5, 5, 5, outcomes(np.full(60, 5.0), 0.1), nothing, "below") == 0
