"""What the trials of a plan will tell, before they are made: by drawing rates from what is known, and trials from
the rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.estimates.rates import Z_95, Limits
from gapwatch.statistics.estimates.verdicts import SMALLEST_THAT_MATTERS

Numbers = NDArray[np.float64]

RUNS = 2000
SEED = 20261118
# The share of runs that a forecast's range holds.
PROBABILITY = 0.8


@dataclass(frozen=True)
class ForecastCell:
    """What is known of a cell before the plan, and how many trials it gets. `weight`: its part of the estimate,
    negative where it is held against others; `sim_n` 0 where sim has none.
    """

    weight: float
    successes: int
    n: int
    further: int
    sim_successes: int = 0
    sim_n: int = 0


@dataclass(frozen=True)
class WidthForecast:
    """The width of the interval: as likely narrower as wider, and the range that holds with `probability`.

    `reaches`: the share of runs that reach the goal.
    """

    width: float
    low: float
    high: float
    probability: float
    reaches: float


def stratified_drop(cells: Sequence[ForecastCell], effect: float = 1.0) -> Limits:
    """The weighted sum of the cells' drops, sim − real, with its interval.

    Formula: Σ wₕ (pₛₕ − pᵣₕ); each end a square root of summed squares of the distances of Wilson's limits from
    their rates, cell by cell and side by side. Source: Zou & Donner 2008 (MOVER); at one cell it is Newcombe's.
    A cell without real trials or without sim tells nothing and is left out. Assumes independent trials, or such
    as many of which are worth one (`effect`). Smallest n: one trial; without any, all that is possible.
    """
    counts = np.array([[c.weight, c.successes, c.n, c.sim_successes, c.sim_n] for c in cells], dtype=float)
    if not len(counts):
        return Limits(0.0, -1.0, 1.0)
    value, low, high = _stratified(counts[:, 0], counts[:, 1], counts[:, 2], counts[:, 3], counts[:, 4], effect)
    return Limits(float(value), float(low), float(high))


def forecast_drop(
    cells: Sequence[ForecastCell],
    effect: float = 1.0,
    *,
    reached: Callable[[Numbers, Numbers], NDArray[np.bool_]] | None = None,
    runs: int = RUNS,
    seed: int = SEED,
) -> WidthForecast:
    """How wide the interval of `stratified_drop` will be when the plan is done.

    Formula: rates from Jeffreys' posterior, Beta(k + ½, n − k + ½), of the real trials of each cell; so many
    successes of the further trials at that rate; the interval of all of them. Seeded, so that the same plan
    says the same. The prior is never sim: a simulator that is 8 points too good kept its promise in 1 % of plans.
    `reached`: whether ends reach the goal; a settled verdict if it is not given. Smallest n: 0.
    """
    weight, done, n, further, sim, sim_n = (
        np.array([getattr(cell, name) for cell in cells], dtype=float)
        for name in ("weight", "successes", "n", "further", "sim_successes", "sim_n")
    )
    generator = np.random.default_rng(seed)
    rates = generator.beta(done + 0.5, n - done + 0.5, size=(runs, len(cells)))
    new = generator.binomial(further.astype(int), rates)
    _, low, high = _stratified(weight, done + new, np.broadcast_to(n + further, new.shape), sim, sim_n, effect)
    widths = high - low
    share = (1 - PROBABILITY) / 2
    ends = np.quantile(widths, [share, 0.5, 1 - share])
    has_reached = (reached or settled)(low, high)
    return WidthForecast(float(ends[1]), float(ends[0]), float(ends[2]), PROBABILITY, float(np.mean(has_reached)))


def settled(low: Numbers, high: Numbers) -> NDArray[np.bool_]:
    """Whether the verdict is: a loss for certain, or less than matters for certain."""
    found: NDArray[np.bool_] = (low > 0) | (high < SMALLEST_THAT_MATTERS)
    return found


def told_apart(low: Numbers, high: Numbers) -> NDArray[np.bool_]:
    """Whether a difference is one for certain, whichever way."""
    found: NDArray[np.bool_] = (low > 0) | (high < 0)
    return found


def widest_wilson(cells: Sequence[ForecastCell], runs: int = RUNS, seed: int = SEED) -> WidthForecast:
    """How wide the widest interval of single cells' real rates will be."""
    done, n, further = (
        np.array([getattr(cell, name) for cell in cells], dtype=float) for name in ("successes", "n", "further")
    )
    generator = np.random.default_rng(seed)
    rates = generator.beta(done + 0.5, n - done + 0.5, size=(runs, len(cells)))
    new = generator.binomial(further.astype(int), rates)
    low, high = _wilson(done + new, n + further)
    widths = (high - low).max(axis=1)
    share = (1 - PROBABILITY) / 2
    ends = np.quantile(widths, [share, 0.5, 1 - share])
    return WidthForecast(float(ends[1]), float(ends[0]), float(ends[2]), PROBABILITY, 1.0)


def widest_of(cells: Sequence[ForecastCell]) -> float:
    """The widest interval of single cells as they stand, without further trials."""
    low, high = _wilson(
        np.array([cell.successes for cell in cells], dtype=float),
        np.array([cell.n for cell in cells], dtype=float),
    )
    return float((high - low).max())


def _stratified(
    weight: Numbers, successes: Numbers, n: Numbers, sim: Numbers, sim_n: Numbers, effect: float
) -> tuple[Numbers, Numbers, Numbers]:
    """Value and ends; the last axis is that of the cells. Weights are those of the cells that tell something."""
    tells = (n > 0) & (sim_n > 0)
    weight = np.where(tells, weight, 0.0)
    # A mean keeps weights of one sum; a contrast has weights of both signs, each sign of the sum one.
    for sign in (weight > 0, weight < 0):
        size = np.abs(np.where(sign, weight, 0.0)).sum(axis=-1, keepdims=True)
        weight = np.where(sign & (size > 0), weight / np.where(size > 0, size, 1.0), weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        real_rate = np.where(n > 0, successes / n, 0.5)
        sim_rate = np.where(sim_n > 0, sim / sim_n, 0.5)
    real_low, real_high = _wilson(successes / effect, n / effect)
    sim_low, sim_high = _wilson(sim, sim_n)
    value = (weight * (sim_rate - real_rate)).sum(axis=-1)
    up, down = np.maximum(weight, 0.0), np.maximum(-weight, 0.0)
    below = (up * (sim_rate - sim_low)) ** 2 + (up * (real_high - real_rate)) ** 2
    below += (down * (sim_high - sim_rate)) ** 2 + (down * (real_rate - real_low)) ** 2
    above = (up * (sim_high - sim_rate)) ** 2 + (up * (real_rate - real_low)) ** 2
    above += (down * (sim_rate - sim_low)) ** 2 + (down * (real_high - real_rate)) ** 2
    has_any = np.abs(weight).sum(axis=-1) > 0
    low = np.where(has_any, value - np.sqrt(below.sum(axis=-1)), -1.0)
    high = np.where(has_any, value + np.sqrt(above.sum(axis=-1)), 1.0)
    return value, low, high


def _wilson(successes: Numbers, n: Numbers) -> tuple[Numbers, Numbers]:
    """`rates.wilson` of many at once."""
    size = np.where(n > 0, n, 1.0)
    rate = np.clip(successes / size, 0.0, 1.0)
    centre = rate + Z_95 * Z_95 / (2 * size)
    half = Z_95 * np.sqrt(rate * (1 - rate) / size + Z_95 * Z_95 / (4 * size * size))
    scale = 1 + Z_95 * Z_95 / size
    low = np.where(n > 0, np.maximum(0.0, np.minimum(rate, (centre - half) / scale)), 0.0)
    high = np.where(n > 0, np.minimum(1.0, np.maximum(rate, (centre + half) / scale)), 1.0)
    return low, high
