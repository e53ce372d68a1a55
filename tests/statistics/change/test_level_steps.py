"""Steps of daily counts against histories whose levels are known."""

import numpy as np

from gapwatch.statistics.change.level_steps import find_steps


def days(rng, *parts):
    """Days of ten episodes: (how many, rate)."""
    return [(int(rng.binomial(10, rate)), 10) for number, rate in parts for _ in range(number)]


def test_a_constant_rate_has_no_steps():
    rng = np.random.default_rng(1)
    found = [find_steps(days(rng, (120, 0.9))) for _ in range(200)]
    assert sum(bool(steps) for steps in found) <= 6


def test_every_step_of_a_history_is_found_where_it_is():
    rng = np.random.default_rng(2)
    found = [find_steps(days(rng, (40, 0.95), (20, 0.5), (40, 0.95))) for _ in range(100)]
    exact = [len(steps) == 2 and abs(steps[0] - 40) <= 2 and abs(steps[1] - 60) <= 2 for steps in found]
    assert sum(exact) >= 85


def test_a_straight_line_is_no_staircase():
    rng = np.random.default_rng(3)
    line = [[(int(rng.binomial(10, 0.95 - 0.01 * day)), 10) for day in range(60)] for _ in range(50)]
    assert sum(bool(find_steps(one)) for one in line) <= 3


def test_few_episodes_have_no_steps():
    assert find_steps([]) == []
    assert find_steps([(0, 10), (10, 10)]) == []
    assert find_steps([(0, 0), (10, 10), (0, 0), (0, 30)]) == []


def test_what_resembles_itself_needs_more():
    counts = [(9, 10)] * 10 + [(5, 10)] * 10
    assert find_steps(counts) == [10]
    assert find_steps(counts, design_effect=9.0) == []
