"""How many trials each stratum gets: Neyman's allocation within bounds, with smoothed rates and set-up costs.

Written here because no library of ours has it: `scipy.optimize` would minimise the same sum, slower and to its
tolerance; this is exact and its bounds are met to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, sqrt

# Fewer trials than this under one condition tell nothing of it.
FEWEST_A_CELL = 5


def smoothed_rate(successes: float, n: float) -> float:
    """(k + 1)/(n + 2): three successes in three do not make a rate of one.

    A pilot without a failure would give a stratum no spread and, by Neyman, no trials (error 7.5 times that of an
    equal split at three a stratum). Source: Laplace's rule of succession. Smallest n: 0.
    """
    return (successes + 1) / (n + 2)


def smoothed_spread(successes: float, n: float) -> float:
    """Standard deviation of one outcome at the smoothed rate."""
    rate = smoothed_rate(successes, n)
    return sqrt(rate * (1 - rate))


def neyman(
    products: Sequence[float],
    total: float,
    lowest: Sequence[float] | None = None,
    highest: Sequence[float] | None = None,
) -> list[float]:
    """Sizes of strata that minimise Σ productₕ²/nₕ for Σ nₕ = total, each within its bounds.

    `products`: share or size of the stratum times its spread. Formula: nₕ = λ productₕ cut to its bounds, λ such
    that they add up; the only point that meets the conditions of Karush, Kuhn and Tucker. Source: Neyman 1934;
    bounds as Wesołowski, Wieczorkowski & Wójciak 2022. Assumes Σ lowest ≤ total ≤ Σ highest: beyond, the bounds
    themselves are returned.
    """
    low = list(lowest) if lowest is not None else [0.0] * len(products)
    high = list(highest) if highest is not None else [inf] * len(products)
    if total <= sum(low):
        return low
    if total >= sum(high):
        return high
    if not any(product > 0 for product in products):
        products = [1.0] * len(products)

    def cut(scale: float) -> list[float]:
        return [min(max(scale * p, lo), hi) for p, lo, hi in zip(products, low, high, strict=True)]

    # Between two neighbours of these nothing new is cut, so the sum is a straight line there.
    kinks = sorted(
        {bound / p for p, lo, hi in zip(products, low, high, strict=True) if p > 0 for bound in (lo, hi)} - {inf}
    )
    below = max((kink for kink in kinks if sum(cut(kink)) <= total), default=0.0)
    sizes = cut(below)
    # By the quotients that the kinks were made of: a product may miss its bound by a last digit.
    growing = [p > 0 and lo / p <= below < hi / p for p, lo, hi in zip(products, low, high, strict=True)]
    rise = sum(p for p, grows in zip(products, growing, strict=True) if grows)
    if not rise:
        return sizes
    scale = below + (total - sum(sizes)) / rise
    return [scale * p if grows else n for p, n, grows in zip(products, sizes, growing, strict=True)]


def whole(sizes: Sequence[float], total: int) -> list[int]:
    """Whole numbers that add up to the total: the largest remainders are rounded up."""
    floors = [floor(size + 1e-9) for size in sizes]
    left = total - sum(floors)
    order = sorted(range(len(sizes)), key=lambda at: (floors[at] - sizes[at], at))
    for at in order[: max(0, left)]:
        floors[at] += 1
    return floors


@dataclass(frozen=True)
class Stratum:
    """A cell that may be tried: its share of what is to be known, and what was seen of it so far.

    `is_urgent`: nothing can be said of it without trials there, so it comes before the others. `fewest`: what it
    gets if it is visited. `spread`: of one outcome, where it is not that of the smoothed rate; one for all gives
    trials in proportion to the weights.
    """

    weight: float
    successes: float
    n: float
    is_urgent: bool = False
    fewest: int = FEWEST_A_CELL
    spread: float | None = None

    @property
    def product(self) -> float:
        return self.weight * (smoothed_spread(self.successes, self.n) if self.spread is None else self.spread)


@dataclass(frozen=True)
class TrialBudget:
    """Trials, or minutes of robot time if `minutes` is given. A visit to a cell costs `setup_minutes`."""

    trials: int | None
    minutes: float | None = None
    setup_minutes: float = 0.0
    trial_minutes: float = 1.0

    def trials_for(self, visits: int) -> int:
        """How many trials are left after so many set-ups."""
        if self.minutes is None:
            return self.trials or 0
        return floor((self.minutes - visits * self.setup_minutes) / self.trial_minutes + 1e-9)

    def minutes_of(self, trials: int, visits: int) -> float:
        return trials * self.trial_minutes + visits * self.setup_minutes

    def allows(self, visits: int, fewest: int) -> bool:
        """Whether so many cells can be visited with so many trials at least: of a budget in trials, no more time
        is spent on set-ups than on trials, but one cell can always be set up."""
        trials = self.trials_for(visits)
        if trials < fewest:
            return False
        is_too_long = visits * self.setup_minutes > trials * self.trial_minutes + 1e-9
        return self.minutes is not None or visits == 1 or not is_too_long


def allocate(strata: Sequence[Stratum], budget: TrialBudget) -> list[int]:
    """Further trials for each stratum, none for one that is not visited.

    Rule: urgent strata first, then those whose trials take most off the variance; of every number of visits the
    one that takes most off it for the robot time that it costs. With set-up costs fewer cells are visited.
    Urgent ones are not weighed against others: as many as can be visited are. Variance: Σ weight² p(1 − p)/(n + 2)
    at smoothed rates, of what is there and what is planned. Smallest n: one visit; with less for it all zero.
    """
    order = sorted(range(len(strata)), key=lambda at: _gain(strata[at]))
    before = variance(strata, [0] * len(strata))
    best: tuple[float, list[int]] | None = None
    for visits in range(1, len(strata) + 1):
        visited = set(order[:visits])
        if not budget.allows(visits, sum(strata[at].fewest for at in visited)):
            break
        trials = budget.trials_for(visits)
        sizes = _within(strata, visited, trials)
        # A budget in minutes costs the same whatever is done with it.
        cost = 1.0 if budget.minutes is not None else budget.minutes_of(trials, visits)
        gain = (before - variance(strata, sizes)) / cost
        if best is None or strata[order[visits - 1]].is_urgent or gain > best[0] * (1 + 1e-12):
            best = (gain, sizes)
    return [0] * len(strata) if best is None else best[1]


def variance(strata: Sequence[Stratum], further: Sequence[int]) -> float:
    """Of the weighted rate, after so many further trials."""
    return sum(stratum.product**2 / (stratum.n + more + 2) for stratum, more in zip(strata, further, strict=True))


def _gain(stratum: Stratum) -> tuple[bool, float]:
    """What the first trials there take off the variance; urgent ones first."""
    now, then = stratum.n + 2, stratum.n + 2 + FEWEST_A_CELL
    return not stratum.is_urgent, -(stratum.product**2) * (1 / now - 1 / then)


def _within(strata: Sequence[Stratum], visited: set[int], trials: int) -> list[int]:
    # In sizes with what is there already: those that are visited get at least their fewest more, others stay.
    low = [stratum.n + (stratum.fewest if at in visited else 0) for at, stratum in enumerate(strata)]
    high = [inf if at in visited else stratum.n for at, stratum in enumerate(strata)]
    sizes = neyman([stratum.product for stratum in strata], sum(s.n for s in strata) + trials, low, high)
    return whole([size - stratum.n for size, stratum in zip(sizes, strata, strict=True)], trials)
