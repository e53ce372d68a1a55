"""The present against histories whose rate is known; `bench/now.py` does the same with many more runs."""

from __future__ import annotations

import numpy as np
import pytest

from bench.now import CONSTANTS, SCENARIOS, Scenario, constant, odd_robot, run, step
from gapwatch.statistics.change.present import FEWEST, NEWEST, find_present, split_limit
from gapwatch.statistics.estimates.rates import wilson

RUNS = 120


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_rate_now_is_covered_whatever_happened(scenario: Scenario) -> None:
    assert run(scenario, RUNS, np.random.default_rng(1)).covered >= 0.92


def test_a_step_is_named_and_a_constant_rate_is_steady() -> None:
    rng = np.random.default_rng(2)
    for before in (0.9, 0.8):
        fell = Scenario("step", lambda rate=before: step(rate, rate - 0.15, 100), ("fell",))  # type: ignore[misc]
        assert run(fell, RUNS, rng).right >= 0.9
    steady = [Scenario("constant", lambda rate=rate: constant(rate), ("steady",)) for rate in CONSTANTS]  # type: ignore[misc]
    assert np.mean([run(one, RUNS // 2, rng).right for one in steady]) >= 0.95


def test_the_odd_robot_is_found_and_equal_ones_are_not() -> None:
    rng = np.random.default_rng(3)
    assert odd_robot(-0.25, 300, rng) >= 0.9
    assert odd_robot(0.0, 300, rng) >= 0.93


def outcomes(*parts: tuple[int, int]) -> list[bool]:
    """Successes spread evenly: (successes, n) of each part."""
    return [(i * k) // n != ((i + 1) * k) // n for k, n in parts for i in range(n)]


def test_the_estimate_is_the_newest_hundred() -> None:
    present = find_present(outcomes((450, 500), (80, 100)))
    assert (present.estimate.successes, present.estimate.n) == (80, NEWEST)
    assert present.estimate.interval == wilson(80, 100, 2.03)


def test_a_step_starts_the_regime_and_what_was_before_stays() -> None:
    present = find_present(outcomes((480, 500), (75, 150)))
    assert (present.start, present.moved.verdict) == ("found", "fell")
    assert abs(present.regime_from - 500) <= 3
    assert present.before is not None
    assert present.before.value == pytest.approx(0.96, abs=0.01)
    assert present.moved.change == pytest.approx(-0.46, abs=0.02)


def test_a_version_is_held_against_the_one_before_it() -> None:
    present = find_present(outcomes((50, 60)), earlier=outcomes((390, 400)))
    assert (present.start, present.regime_from, present.regime.n) == ("first", 0, 60)
    assert present.before is not None
    assert present.before.n == 400
    assert present.moved.verdict == "fell"


def test_a_known_change_starts_the_regime() -> None:
    present = find_present(outcomes((285, 300), (36, 40)), known_from=300)
    assert (present.start, present.regime_from, present.moved.verdict) == ("known", 300, "steady")


def test_a_known_change_with_few_episodes_since_starts_none() -> None:
    assert find_present(outcomes((285, 300), (10, 10)), known_from=300).start == "first"


def test_a_line_is_still_falling() -> None:
    rng = np.random.default_rng(5)
    rates = np.concatenate([np.full(400, 0.96), np.linspace(0.96, 0.4, 400)])
    present = find_present(rng.random(800) < rates)
    assert (present.start, present.moved.verdict) == ("drifting", "falling")


def test_the_split_goes_the_way_of_the_newest() -> None:
    # A rise long ago is larger than the fall of the newest, and is not what is said.
    present = find_present(outcomes((160, 200), (940, 1000), (85, 100)))
    assert present.moved.verdict == "fell"


@pytest.mark.parametrize("n", [0, 1, FEWEST - 1])
def test_few_episodes_are_called_few(n: int) -> None:
    present = find_present([True] * n)
    assert present.moved.verdict == "too few episodes"
    assert present.estimate.n == n


def test_clustered_episodes_are_worth_less() -> None:
    data = outcomes((450, 500), (78, 100))
    alone, clustered = find_present(data), find_present(data, design_effect=4.0)
    assert alone.moved.verdict == "fell"
    assert clustered.moved.verdict == "steady"
    assert alone.estimate.interval is not None
    assert clustered.estimate.interval is not None
    assert clustered.estimate.interval[0] < alone.estimate.interval[0]


def test_the_limit_of_the_scan_is_what_chance_exceeds_seldom() -> None:
    rng = np.random.default_rng(7)
    found = [find_present(rng.random(300) < 0.5).start == "found" for _ in range(200)]
    assert np.mean(found) <= 0.06
    assert 3 < split_limit(1000) < 4.5
