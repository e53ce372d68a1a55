import numpy as np
import pytest
from scipy.special import beta

from gapwatch.statistics.change.change_set import change_set


def coverage(draw, *, rate: bool, runs: int = 200, moved=None, alike: float = 1.0) -> float:
    """How often the set holds the place where the change truly is."""
    held = 0
    for seed in range(runs):
        chance = np.random.default_rng(seed)
        before, after = int(chance.integers(60, 200)), int(chance.integers(20, 120))
        found = change_set(draw(chance, before, after), rate=rate, moved=moved, alike=alike)
        held += found is not None and found.first <= before <= found.last
    return held / runs


def test_the_weights_are_those_of_the_formula():
    values = [1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0]
    found = change_set(values, rate=True)
    by_hand = {
        k: beta(1 + sum(values[:k]), 1 + k - sum(values[:k]))
        * beta(1 + sum(values[k:]), 1 + (12 - k) - sum(values[k:]))
        for k in (5, 6, 7)
    }
    total = sum(by_hand.values())
    assert [found.weights[k] for k in by_hand] == pytest.approx([weight / total for weight in by_hand.values()])
    assert sum(found.weights) == pytest.approx(1)
    assert found.weights[found.best] == max(found.weights)


@pytest.mark.parametrize("fall", [0.15, 0.25, 0.45])
def test_the_set_holds_the_change_of_a_rate(fall):
    def draw(chance, before, after):
        return np.concatenate([chance.random(before) < 0.95, chance.random(after) < 0.95 - fall]).astype(float)

    assert coverage(draw, rate=True, moved="lower") >= 0.91


def test_the_set_holds_the_change_of_any_other_number_whatever_its_shape():
    def draw(chance, before, after):
        return np.exp(np.concatenate([chance.normal(0, 1, before), chance.normal(1, 1, after)]))

    assert coverage(draw, rate=False) >= 0.92


def test_a_place_that_moved_the_other_way_has_no_weight():
    values = [0.0] * 40 + [1.0] * 40 + [0.0] * 10
    assert change_set(values, rate=True).best == 40
    assert change_set(values, rate=True, moved="lower").best == 80
    assert change_set([0.0] * 20 + [1.0] * 20, rate=True, moved="lower") is None


def test_constant_values_say_nothing_and_break_nothing():
    for rate in (True, False):
        found = change_set([1.0] * 30, rate=rate)
        assert found.last - found.first > 15


def test_too_few_values_have_no_set():
    assert change_set([], rate=True) is None
    assert change_set([1.0] * 9, rate=False) is None
