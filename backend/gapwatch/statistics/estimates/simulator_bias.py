"""How many points too much a simulator promises on a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gapwatch.statistics.estimates.rates import Limits, square_and_add, wilson

# A bias within so much is about right.
TOLERABLE = 0.05


@dataclass(frozen=True)
class SimulatorBias:
    """Sim minus real over the policies of a task; both rates are those of the real mix of policies."""

    sim: float
    real: float
    value: float
    low: float
    high: float


def policy_bias(counts: Sequence[tuple[int, int, int, int]]) -> SimulatorBias:
    """The bias from (k_sim, n_sim, k_real, n_real) of each policy.

    Formula: sim's rate is Σ w p, w the real share of the policy; its Wilson limits are those of as many episodes
    as have the variance Σ w² p̃ q̃ / n, p̃ = (k + 1)/(n + 2); real's are Wilson's of all real episodes, wide
    enough for policies that differ; squared and added (Newcombe 1998b). Speaks for these policies. Assumes
    independent episodes. Smallest n: one policy with an episode a side.
    """
    n_real = sum(c[3] for c in counts)
    real = sum(c[2] for c in counts) / n_real
    sim = sum(c[3] / n_real * c[0] / c[1] for c in counts)
    smoothed = [((c[0] + 1) / (c[1] + 2), c[1], c[3] / n_real) for c in counts]
    variance = sum(w * w * p * (1 - p) / n for p, n, w in smoothed)
    centre = sum(w * p for p, _, w in smoothed)
    worth = min(sum(c[1] for c in counts), centre * (1 - centre) / variance)
    bias = square_and_add(Limits(sim, *wilson(sim * worth, worth)), Limits(real, *wilson(real * n_real, n_real)))
    return SimulatorBias(sim, real, bias.value, bias.low, bias.high)


def bias_words(bias: SimulatorBias) -> str:
    """A bias that is certain is told in points; within five points for certain it is about right."""
    points = round(100 * abs(bias.value))
    if bias.low > 0 or bias.high < 0:
        plural = "point" if points == 1 else "points"
        return f"promises {points} {plural} too {'much' if bias.value > 0 else 'little'}"
    return "about right" if bias.low > -TOLERABLE and bias.high < TOLERABLE else "too few episodes"
