"""What shape a fall of success has over the days: a step, a ramp, or a fall that was made good again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# A ramp shorter than this, in days and as a share of all, cannot be told from a step; nor can a fall that was over
# sooner be told from bad days.
SHORTEST_RAMP, RAMP_SHARE, SHORTEST_FALL = 7, 0.15, 3
# Ramps and falls that ended have two days each: more days than these are thinned out for them.
MOST_DAYS = 64
FEWEST_WITHIN = 10
LEAST_RATE = 0.005
# x has no spread within the units where the candidate splits nothing.
NO_SPREAD = 1e-9


@dataclass(frozen=True)
class ShapeEvidence:
    """One shape: `gain` is twice the log of its mean likelihood over all its days, above that of no fall.

    `from_day` … `to_day`: where it begins and ends; those of a ramp are medians, `earliest` and `latest` hold the
    beginning with 95 %. `loss`: the points lost from before to its lowest.
    """

    gain: float
    from_day: float
    to_day: float
    earliest: float
    latest: float
    loss: float


NOT_FOUND = ShapeEvidence(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class FallShapes:
    step: ShapeEvidence
    ramp: ShapeEvidence
    recovered: ShapeEvidence


def fall_shapes(days: Array, k: Array, n: Array, rates: Array, spread: float = 1.0) -> FallShapes:
    """How well each shape of a fall explains successes `k` of `n` by day and unit; `rates` are near what they are.

    Formula: success = level of the unit − loss · x, weighted least squares with the weights n/(p(1 − p)) of
    `rates`. x is 0 before the day of a step and 1 from it on; rises from 0 to 1 between the two days of a ramp;
    is 1 between the two days of a fall that ended. With g twice the log-likelihood that a candidate gains, by the
    overdispersion `spread`, a shape's evidence is the mean of exp(g/2) over its candidates, a uniform prior on
    their days: a shape with more freedom has to earn it. Falls count, rises do not.
    Why not the binomial likelihood: thousands of ramps are fitted at once, and least squares has them in one
    product of matrices. Assumes rates away from 0 and 1 (`LEAST_RATE`). Source: Kass & Raftery 1995.
    Smallest n: 10 episodes within a fall that ended, and before and after it.
    """
    table = _DayTable(days, k, n, np.clip(rates, LEAST_RATE, 1 - LEAST_RATE), spread)
    first, last = float(days[0]), float(days[-1])
    starts = days[1:]
    grid = days if days.size <= MOST_DAYS else days[np.linspace(0, days.size - 1, MOST_DAYS).round().astype(int)]
    begin, end = (of.ravel() for of in np.meshgrid(grid, grid, indexing="ij"))
    shortest = max(SHORTEST_RAMP, RAMP_SHARE * (last - first))
    long_enough = end - begin >= shortest
    ramp_from, ramp_to = begin[long_enough], end[long_enough]
    over = (begin > first) & (end - begin >= SHORTEST_FALL)
    fall_from, fall_to = begin[over], end[over]
    enough = table.has_enough(fall_from, fall_to)
    fall_from, fall_to = fall_from[enough], fall_to[enough]
    return FallShapes(
        table.evidence(starts, starts, lambda d, s, _: np.heaviside(d - s, 1)),
        table.evidence(ramp_from, ramp_to, lambda d, s, e: np.clip((d - s) / (e - s), 0, 1)),
        table.evidence(
            fall_from, fall_to, lambda d, s, e: np.heaviside(d - s, 1) - np.heaviside(d - e, 1), best=True
        ),
    )


def mean_gain(gains: Array) -> float:
    """Twice the log of the mean likelihood of candidates, from twice the log-likelihood that each gains."""
    if not gains.size:
        return 0.0
    top = float(gains.max())
    return top + 2 * float(np.log(np.exp((gains - top) / 2).mean()))


class _DayTable:
    """Sums by day and unit, weighted; a candidate is a row of x, one entry a day."""

    def __init__(self, days: Array, k: Array, n: Array, rates: Array, spread: float) -> None:
        self.days, self.spread, self.n = days, spread, n.sum(axis=1)
        weight = 1 / (rates * (1 - rates))
        self.weight, self.weighted = n * weight, k * weight

    def has_enough(self, begin: Array, end: Array) -> NDArray[np.bool_]:
        before = np.concatenate([[0.0], np.cumsum(self.n)])
        first, last = np.searchsorted(self.days, begin), np.searchsorted(self.days, end)
        within, rest = before[last] - before[first], before[-1] - before[last]
        return np.asarray(np.minimum(np.minimum(before[first], within), rest) >= FEWEST_WITHIN)

    def evidence(
        self, begin: Array, end: Array, x_of: Callable[[Array, Array, Array], Array], *, best: bool = False
    ) -> ShapeEvidence:
        if not begin.size:
            return NOT_FOUND
        gain, loss = self._gains(x_of(self.days, begin[:, None], end[:, None]))
        top = int(gain.argmax())
        if gain[top] <= 0:
            return NOT_FOUND
        weights = np.exp((gain - gain[top]) / 2)
        weights /= weights.sum()
        low, middle, high = _quantiles(begin, weights, (0.025, 0.5, 0.975))
        to_day = _quantiles(end, weights, (0.5,))[0]
        if best:
            middle, to_day = float(begin[top]), float(end[top])
        return ShapeEvidence(mean_gain(gain), middle, to_day, low, high, float(loss[top]))

    def _gains(self, x: Array) -> tuple[Array, Array]:
        """Each unit's level is projected out: what is left of x is held against what is left of the outcomes."""
        of_units, levels = self.weight.sum(axis=0), self.weighted.sum(axis=0)
        known = of_units > 0
        x_units = x @ self.weight[:, known]
        slant = (x @ self.weighted).sum(axis=1) - (x_units * (levels / np.where(known, of_units, 1))[known]).sum(1)
        bend = np.square(x) @ self.weight.sum(axis=1) - (x_units**2 / of_units[known]).sum(axis=1)
        falls = (slant < 0) & (bend > NO_SPREAD)
        safe = np.where(falls, bend, 1.0)
        return np.where(falls, slant**2 / safe / self.spread, 0.0), np.where(falls, -slant / safe, 0.0)


def _quantiles(values: Array, weights: Array, at: tuple[float, ...]) -> list[float]:
    order = np.argsort(values, kind="stable")
    places = np.searchsorted(np.cumsum(weights[order]), at)
    return [float(values[order[min(place, values.size - 1)]]) for place in places]
