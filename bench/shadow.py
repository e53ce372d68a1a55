"""Whether what shadow says of a candidate holds: worlds in which the truth is known, because it is made.

A world draws how often the candidate disagrees, how often agreeing episodes succeed, and how the candidate would have
fared where it disagreed, which its bound must hold without being told: always, never, or by any chance. Half of the
worlds come in sessions that resemble themselves. `make bench-shadow`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from gapwatch.statistics.estimates.shadow import ShadowOutcome, step_rate, success_bound


@dataclass(frozen=True)
class Coverage:
    worlds: int
    covered: int
    mean_width: float

    def __str__(self) -> str:
        return f"{self.covered} of {self.worlds} ({100 * self.covered / self.worlds:.1f} %), mean width {self.mean_width:.3f}"


def run_worlds(count: int, seed: int) -> Coverage:
    """Bounds of success against what the candidate would have had."""
    chance = np.random.default_rng(seed)
    covered, widths = 0, 0.0
    for world in range(count):
        n = int(chance.integers(30, 600))
        disagrees, succeeds = chance.uniform(0.0, 0.5), chance.uniform(0.4, 0.99)
        own = (0.0, 1.0, chance.uniform())[world % 3]
        truth = (1 - disagrees) * succeeds + disagrees * own
        episodes = _episodes(chance, n, disagrees, succeeds, in_sessions=world % 2 == 1)
        bound = success_bound(episodes)
        assert bound is not None
        low, high = bound.interval
        covered += low <= truth <= high
        widths += high - low
    return Coverage(count, covered, widths / count)


def run_step_worlds(count: int, seed: int) -> Coverage:
    """Intervals of a share of steps against that of all episodes, whose own shares and lengths differ."""
    chance = np.random.default_rng(seed)
    covered, widths = 0, 0.0
    for _ in range(count):
        m, mean = int(chance.integers(10, 300)), float(chance.choice([0.005, 0.02, 0.1, 0.3]))
        spread = float(chance.choice([0.5, 2.0, 10.0]))
        shares = chance.beta(mean * spread, (1 - mean) * spread, m)
        steps = chance.integers(50, 500, m)
        found = step_rate(chance.binomial(steps, shares), steps)
        assert found is not None and found.interval is not None
        covered += found.interval[0] <= mean <= found.interval[1]
        widths += found.interval[1] - found.interval[0]
    return Coverage(count, covered, widths / count)


def _episodes(
    chance: np.random.Generator, n: int, disagrees: float, succeeds: float, *, in_sessions: bool
) -> list[ShadowOutcome]:
    sessions = [f"s{index // 20}" if in_sessions else None for index in range(n)]
    # Sessions shift both chances, by an ICC of 0.1.
    shift = {
        session: (
            chance.beta(9 * disagrees + 1e-9, 9 * (1 - disagrees)),
            chance.beta(9 * succeeds, 9 * (1 - succeeds)),
        )
        for session in dict.fromkeys(sessions)
        if session is not None
    }
    found = []
    for session in sessions:
        apart, good = (disagrees, succeeds) if session is None else shift[session]
        agreed = bool(chance.random() >= apart)
        # What executed succeeds as agreeing episodes do; where the candidate disagreed, it tells nothing.
        found.append(ShadowOutcome(agreed, bool(chance.random() < (good if agreed else 0.5)), session))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    print("bounds of success cover the truth in", run_worlds(asked.worlds, asked.seed))
    print("rates of steps cover the truth in", run_step_worlds(asked.worlds, asked.seed))


if __name__ == "__main__":
    main()
