"""Is the present right: eight histories whose rate now is known, looked at through `find_present` and `odd_ones`.

Coverage of the rate of the newest episode by the estimate's interval, the word that is said of it, and the robot
that stands out. The same seeds give the same table on every machine.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import process_time

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.change.present import REACH, find_present
from gapwatch.statistics.estimates.odd_ones import Member, odd_ones
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.tally.presents import ATTEMPTS, PresentFacts, RecentAttempt, make_present

Rates = NDArray[np.float64]

SEED = 20261118
HISTORY = 3000


@dataclass(frozen=True)
class Scenario:
    """`words`: what may rightly be said of it."""

    name: str
    rates: Callable[[], Rates]
    words: tuple[str, ...]


def constant(rate: float) -> Rates:
    return np.full(HISTORY, rate)


def step(before: float, after: float, ago: int) -> Rates:
    rates = constant(before)
    rates[-ago:] = after
    return rates


def ramp(before: float, after: float, over: int) -> Rates:
    rates = constant(before)
    rates[-over:] = np.linspace(before, after, over)
    return rates


def recovery(usual: float, low: float, lasted: int, ago: int) -> Rates:
    rates = constant(usual)
    rates[-ago - lasted : -ago] = low
    return rates


SCENARIOS = (
    Scenario("constant 90 %", lambda: constant(0.90), ("steady",)),
    Scenario("−10 points, 80 episodes ago", lambda: step(0.90, 0.80, 80), ("fell",)),
    Scenario("−15 points, 100 ago", lambda: step(0.90, 0.75, 100), ("fell",)),
    Scenario("−20 points, 300 ago", lambda: step(0.95, 0.75, 300), ("fell",)),
    Scenario("−30 points, 150 ago", lambda: step(0.95, 0.65, 150), ("fell",)),
    Scenario("ramp −20 points over 1000", lambda: ramp(0.92, 0.72, 1000), ("falling", "fell")),
    Scenario("ramp −20 points over 400", lambda: ramp(0.92, 0.72, 400), ("falling", "fell")),
    Scenario("recovery: −25 for 200, back for 150", lambda: recovery(0.90, 0.65, 200, 150), ("rose",)),
)
# Beyond the eight: so steep that the newest hundred lag behind by three points.
STEEP = Scenario("ramp −40 points over 600", lambda: ramp(0.95, 0.55, 600), ("falling", "fell"))
# Beside them: the word of the smallest step that is promised at several levels, and constants at several.
STEPS = ((0.97, 0.82), (0.90, 0.75), (0.80, 0.65), (0.70, 0.55), (0.75, 0.90), (0.95, 0.70))
CONSTANTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)


@dataclass(frozen=True)
class Result:
    covered: float
    width: float
    everything: float
    right: float
    words: dict[str, float]


def run(scenario: Scenario, runs: int, rng: np.random.Generator) -> Result:
    rates = scenario.rates()
    covered, everything, widths = 0, 0, []
    words: Counter[str] = Counter()
    for _ in range(runs):
        outcomes = rng.random(len(rates)) < rates
        present = find_present(outcomes[-REACH:])
        low, high = present.estimate.interval or (0.0, 1.0)
        covered += low <= rates[-1] <= high
        widths.append(100 * (high - low))
        low, high = wilson(int(outcomes.sum()), len(outcomes))
        everything += low <= rates[-1] <= high
        words[present.moved.verdict] += 1
    return Result(
        covered / runs,
        float(np.mean(widths)),
        everything / runs,
        sum(words[word] for word in scenario.words) / runs,
        {word: count / runs for word, count in words.most_common()},
    )


def odd_robot(points: float, runs: int, rng: np.random.Generator, robots: int = 4, n: int = 100) -> float:
    """How often exactly the odd one of some robots stands out; without a difference, how often none does."""
    right = 0
    for _ in range(runs):
        rates = [0.93 + points, *[0.93] * (robots - 1)]
        counts = rng.binomial(n, rates)
        judged = odd_ones([Member(str(i), int(k), n) for i, k in enumerate(counts)])
        found = {one.name for one in judged if one.stands_out}
        right += found == ({"0"} if points else set())
    return right / runs


def milliseconds_a_present() -> float:
    """What one deployment costs a worker at each fold that touches it, without reading: the best of twenty."""
    rng, start = np.random.default_rng(SEED), datetime(2026, 10, 1, tzinfo=UTC)
    attempts = [
        RecentAttempt(
            start - timedelta(minutes=i), "success" if good else "failure", 1, 1, f"robot-{i % 5}", f"s-{i // 20}"
        )
        for i, good in enumerate((rng.random(ATTEMPTS) < 0.9).tolist())
    ]
    facts = PresentFacts(1, 1, attempts[-1].started_at, True, None, None, 1.0)
    taken = []
    for _ in range(20):
        began = process_time()
        make_present(attempts, facts)
        taken.append(process_time() - began)
    return 1000 * min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    rng = np.random.default_rng(SEED)
    print(f"{'scenario':40}{'covered':>9}{'everything':>12}{'width':>8}{'word right':>12}  words")
    for scenario in (*SCENARIOS, STEEP):
        result = run(scenario, runs, rng)
        words = ", ".join(f"{word} {share:.1%}" for word, share in result.words.items())
        print(
            f"{scenario.name:40}{result.covered:>9.1%}{result.everything:>12.1%}{result.width:>8.1f}"
            f"{result.right:>12.1%}  {words}"
        )
    print("\nsteps of 15 points and more, 100 episodes after, word right:")
    for before, after in STEPS:
        word = "fell" if after < before else "rose"
        result = run(Scenario("", lambda b=before, a=after: step(b, a, 100), (word,)), runs, rng)  # type: ignore[misc]
        print(f"  {before:.0%} → {after:.0%}: {result.right:.1%} (covered {result.covered:.1%})")
    print("\nconstants, steady:")
    for rate in CONSTANTS:
        result = run(Scenario("", lambda r=rate: constant(r), ("steady",)), runs, rng)  # type: ignore[misc]
        print(f"  {rate:.1%}: {result.right:.1%} (covered {result.covered:.1%})")
    print("\nrobots, 100 episodes each:")
    for robots in (2, 4, 8):
        odd, equal = odd_robot(-0.25, runs, rng, robots), odd_robot(0.0, runs, rng, robots)
        print(f"  of {robots}: one at −25 points found alone {odd:.1%}; none found in equal fleets {equal:.1%}")
    print(f"\none present of {ATTEMPTS} attempts: {milliseconds_a_present():.1f} ms of a worker")


if __name__ == "__main__":
    main()
