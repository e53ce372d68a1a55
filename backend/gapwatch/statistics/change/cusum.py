"""CUSUM of a standardised signal: fast where the signal is near normal, with its run length from theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt

import numpy as np

from gapwatch.statistics.change.drift import Crossing

NODES = 80
# An outlier moves the sums by at most this many deviations.
CLIP = 4.0


@lru_cache(maxsize=256)
def one_sided_arl(k: float, h: float, shift: float = 0.0) -> float:
    """Mean number of values until S ← max(0, S + z − k) exceeds h, from S = 0, for z normal with mean `shift`.

    Formula: L(u) = 1 + L(0) Φ(k − u − μ) + ∫₀ʰ L(x) φ(x + k − u − μ) dx, solved at Gauss–Legendre nodes.
    Source: Page 1954; checked against Lucas & Crosier 1982, Brook & Evans 1972 and Vance 1986.
    """
    from scipy.special import ndtr

    x, weight = np.polynomial.legendre.leggauss(NODES)
    x, weight = h / 2 * (x + 1), h / 2 * weight
    u = np.concatenate([[0.0], x])
    density = np.exp(-0.5 * (x[None, :] + k - u[:, None] - shift) ** 2) / sqrt(2 * np.pi)
    matrix = np.eye(NODES + 1)
    matrix[:, 0] -= ndtr(k - u - shift)
    matrix[:, 1:] -= density * weight
    return float(np.linalg.solve(matrix, np.ones(NODES + 1))[0])


def two_sided_arl(k: float, h: float, shift: float = 0.0) -> float:
    """ARL of an upper and a lower sum together: 1/ARL = 1/ARL₊ + 1/ARL₋ (exact for k ≥ 0 from zero: Kemp 1961)."""
    return 1 / (1 / one_sided_arl(k, h, shift) + 1 / one_sided_arl(k, h, -shift))


@lru_cache(maxsize=256)
def threshold_for(arl: float, k: float = 0.5) -> float:
    """The h at which the two-sided scheme runs `arl` values on average without a shift, by bisection."""
    low, high = 0.5, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_arl(k, middle) < arl else (low, middle)
    return high


@dataclass(frozen=True)
class CusumWatch:
    """`k` is half the shift, in deviations, to be found soonest. Mean and deviation are learned first."""

    arl: float = 10_000.0
    k: float = 0.5
    learn: int = 200
    clear_episodes: int = 100


@dataclass
class CusumState:
    """`began` is where each sum was last at zero. After an alarm `calm` counts the episodes without new
    suspicion.
    """

    n: int = 0
    learned: list[float] = field(default_factory=lambda: [0.0, 0.0])
    mean: float | None = None
    deviation: float = 0.0
    high: float = 0.0
    low: float = 0.0
    began: list[int] = field(default_factory=lambda: [0, 0])
    alarmed: bool = False
    calm: int = 0


def update_cusum(watch: CusumWatch, state: CusumState, values: Sequence[float]) -> list[Crossing]:
    """Update `state` with these values, in order. Return the alarms and recoveries on the way.

    Formula: z = (x − mean)/deviation of the first `learn` values, clipped to ±4; S₊ ← max(0, S₊ + z − k), S₋ ←
    max(0, S₋ − z − k), alarm when either exceeds the h whose two-sided run length is `arl`. The change is where
    the sum was last at zero. After an alarm the sums restart, and the series has recovered when
    `clear_episodes` pass without either reaching h/2. Assumes independent, near-normal values; a reference of
    200 leaves an error of the mean of 0.07 deviations, which k covers. For other shapes use `drift_shape`.
    Smallest n: `learn`.
    """
    crossings: list[Crossing] = []
    h = threshold_for(watch.arl, watch.k)
    for index, x in enumerate(values):
        number, state.n = state.n, state.n + 1
        if state.mean is None:
            _learn(watch, state, x)
            continue
        z = min(CLIP, max(-CLIP, (x - state.mean) / state.deviation))
        state.high = max(0.0, state.high + z - watch.k)
        state.low = max(0.0, state.low - z - watch.k)
        if state.high == 0:
            state.began[0] = state.n
        if state.low == 0:
            state.began[1] = state.n
        top = max(state.high, state.low)
        if not state.alarmed and top > h:
            up = state.high >= state.low
            change = state.began[0 if up else 1]
            facts = {
                "reference": {
                    "n": watch.learn,
                    "value": state.mean,
                    "deviation": state.deviation,
                    "end": watch.learn - 1,
                },
                "since": {"n": state.n - change, "direction": "higher" if up else "lower"},
                "arl": watch.arl,
            }
            crossings.append(Crossing("breach", index, number, change, "cusum", top, h, facts))
            restart_cusum(state, alarmed=True)
        elif state.alarmed:
            state.calm = 0 if top > h / 2 else state.calm + 1
            if top > h / 2:
                restart_cusum(state, alarmed=True)
            elif state.calm >= watch.clear_episodes:
                began = number + 1 - state.calm
                crossings.append(Crossing("recovery", index, number, began, "cusum", top, h / 2, {}))
                restart_cusum(state, alarmed=False)
    return crossings


def _learn(watch: CusumWatch, state: CusumState, x: float) -> None:
    """Welford's sums, until there are enough values."""
    mean, spread = state.learned
    step = x - mean
    mean += step / state.n
    state.learned = [mean, spread + step * (x - mean)]
    if state.n >= watch.learn:
        state.mean, state.deviation = mean, max(sqrt(state.learned[1] / (state.n - 1)), 1e-9 * (1 + abs(mean)))
        restart_cusum(state, alarmed=False)


def restart_cusum(state: CusumState, *, alarmed: bool) -> None:
    """Reset the evidence; keep what was learned."""
    state.high = state.low = 0.0
    state.began = [state.n, state.n]
    state.alarmed, state.calm = alarmed, 0
