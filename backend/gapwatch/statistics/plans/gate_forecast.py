"""What the evidence of a gate's criterion will come to after so many more episodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.gates.evidence import Bets
from gapwatch.statistics.plans.forecast import PROBABILITY, SEED

RUNS = 400
# Beyond so many further episodes the forecast is that of these.
FURTHEST = 5000


@dataclass(frozen=True)
class EvidenceSoFar:
    """Good episodes of those that a criterion has seen, and of those that tell what to expect."""

    good: float
    n: int
    expected_good: float
    expected_n: int
    design_effect: float = 1.0


@dataclass(frozen=True)
class EvidenceForecast:
    """`e_value` lies in `e_range` with `probability`; `passes`: run by run, whether the limit was reached."""

    e_value: float
    e_range: tuple[float, float]
    probability: float
    passes: NDArray[np.bool_]

    @property
    def chance(self) -> float:
        return float(np.mean(self.passes))


def forecast_evidence(
    bets: Bets, so_far: EvidenceSoFar, further: int, alpha: float, *, has_passed: bool = False, seed: int = SEED
) -> EvidenceForecast:
    """Whether an e-process reaches 1/α at one of its further looks, and what it is at the last.

    Formula: a rate from Jeffreys' posterior of what is expected, episodes one by one at that rate, the gate's own
    bets on all of them; seeded. Source: as `power.median_episodes`, with the rate drawn instead of known.
    Assumes that episodes go on as those that tell what to expect. Smallest n: 0.
    """
    generator = np.random.default_rng(seed)
    bad = max(0.0, so_far.expected_n - so_far.expected_good)
    rates = generator.beta(so_far.expected_good + 0.5, bad + 0.5, size=RUNS)
    further = min(further, FURTHEST)
    looks = so_far.n + np.arange(1, further + 1, dtype=float)
    drawn = generator.random((RUNS, further)) < rates[:, None]
    good = so_far.good + np.cumsum(drawn, axis=1, dtype=np.int32)
    needed = bets.good_needed(looks / so_far.design_effect, alpha)
    passes = (good / so_far.design_effect >= needed).any(axis=1) if further else np.zeros(RUNS, dtype=bool)
    ends = good[:, -1] if further else np.full(RUNS, so_far.good)
    total = np.full(RUNS, so_far.n + further) / so_far.design_effect
    log_e = bets.log_path(np.asarray(ends, dtype=np.float64) / so_far.design_effect, total)
    share = (1 - PROBABILITY) / 2
    low, middle, high = (exp(value) for value in np.quantile(log_e, [share, 0.5, 1 - share]))
    return EvidenceForecast(middle, (low, high), PROBABILITY, np.logical_or(passes, has_passed))
