"""Evidence that a share of good episodes lies above a boundary, valid however often it is looked at.

No library has it in this form: `confseq` and `expectation` need every outcome in order and know no frozen
reference; this one is a function of two sums, so it costs the same after a million episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

# Rates of 0 and 1 would bet everything on one outcome.
CLOSEST = 1e-6
# A value above this says nothing more and would not fit into a number.
MOST_LOG_E = 600.0
# More of it would lose everything on one outcome.
MOST_STAKE = 0.98


@dataclass(frozen=True)
class Bets:
    """A boundary that the null lies below, and rates above it that are bet on, each with its share of the stake.

    Formula: E = Σ wₖ (qₖ/b)^g ((1−qₖ)/(1−b))^(n−g) with g good ones of n, boundary b, qₖ > b. For every rate up
    to b the expectation is at most one after any number of episodes, also one chosen by looking, so that the
    chance of E ever reaching 1/α is at most α (Ville 1939). Episodes that are good in part count as that part: E
    is convex in the outcome, so on average it is at most that of a coin of the same mean.
    Assumes that, given the past, an episode is good with a chance of at most b. Smallest n: 1; E is 1 before.
    """

    boundary: float
    rates: tuple[float, ...]
    weights: tuple[float, ...]

    def log_e(self, good: float, n: float) -> float:
        return float(self.log_path(np.array([good]), np.array([n]))[0])

    def log_path(self, good: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln E at each look; arrays of any shape."""
        rates = np.array(self.rates)
        of_good = np.log(rates / self.boundary)
        of_bad = np.log((1 - rates) / (1 - self.boundary))
        terms = np.multiply.outer(good, of_good) + np.multiply.outer(n - good, of_bad) + np.log(self.weights)
        highest = terms.max(axis=-1)
        found: NDArray[np.float64] = highest + np.log(np.exp(terms - highest[..., None]).sum(axis=-1))
        return np.minimum(found, MOST_LOG_E)

    def mixed_path(
        self, good: NDArray[np.float64], boundaries: NDArray[np.float64], design_effect: float
    ) -> NDArray[np.float64]:
        """ln E after each episode, where each has a boundary of its own.

        Formula: E = Σ wₖ Π (1 + sₖ(yᵢ − bᵢ)) with the stake sₖ = (qₖ − b)/(b(1 − b)), at most 0.98/max bᵢ. Equal
        boundaries give the same E. The stake is the same whatever the boundary, so on average over conditions E
        is at most one when the mean of all yᵢ − bᵢ is at most zero, also where some conditions gain what others
        lose. Assumes that conditions come in one mix, whatever was seen before.
        """
        terms = np.stack(
            [
                np.cumsum(np.log1p(stake * (good - boundaries))) / design_effect + log(weight)
                for stake, weight in zip(self.stakes(boundaries), self.weights, strict=True)
            ],
            axis=-1,
        )
        highest = terms.max(axis=-1)
        found: NDArray[np.float64] = highest + np.log(np.exp(terms - highest[..., None]).sum(axis=-1))
        return np.minimum(found, MOST_LOG_E)

    def stakes(self, boundaries: NDArray[np.float64]) -> list[float]:
        b, most = self.boundary, MOST_STAKE / float(boundaries.max(initial=CLOSEST))
        return [min((q - b) / (b * (1 - b)), most) for q in self.rates]

    def good_needed(self, n: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """How many good ones of n it takes to reach 1/α: E grows with them, so a bisection finds the number."""
        low, high = np.zeros_like(n), n + 1.0
        for _ in range(30):
            middle = (low + high) / 2
            is_enough = self.log_path(middle, n) >= log(1 / alpha)
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return high

    def growth(self, rate: float) -> float:
        """How much ln E gains from an episode at this true rate, by the best of the bets."""
        return max(
            rate * log(q / self.boundary) + (1 - rate) * log((1 - q) / (1 - self.boundary)) for q in self.rates
        )


@dataclass(frozen=True)
class Path:
    """What an e-process came to: now, at its highest, and when it first reached its limit."""

    log_e: float
    highest_log_e: float
    reached_at: int | None

    @property
    def e_value(self) -> float:
        return exp(self.log_e)


def follow(
    bets: Bets,
    good: Sequence[float] | NDArray[np.float64],
    alpha: float,
    design_effect: float = 1.0,
    boundaries: NDArray[np.float64] | None = None,
) -> Path:
    """Look after every episode; `good` are the outcomes in the order of arrival, each between 0 and 1."""
    outcomes = np.asarray(good, dtype=float)
    if not len(outcomes):
        return Path(0.0, 0.0, None)
    path = path_of(bets, outcomes, design_effect, boundaries)
    reached = np.flatnonzero(path >= log(1 / alpha))
    return Path(float(path[-1]), max(0.0, float(path.max())), int(reached[0]) + 1 if len(reached) else None)


def path_of(
    bets: Bets, outcomes: NDArray[np.float64], design_effect: float, boundaries: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """ln E after each episode; `boundaries` where they differ between episodes."""
    if boundaries is not None:
        return bets.mixed_path(outcomes, boundaries, design_effect)
    looks = np.arange(1, len(outcomes) + 1) / design_effect
    return bets.log_path(np.cumsum(outcomes) / design_effect, looks)


def bets_above(boundary: float, top: float) -> Bets:
    """That the rate is above a boundary, betting most on `top`, where it is expected."""
    boundary = min(max(boundary, CLOSEST), 1 - 2 * CLOSEST)
    steps = ((1.0, 0.5), (0.75, 0.2), (0.5, 0.2), (0.3, 0.1))
    rates = [min(1 - CLOSEST, boundary + step * (top - boundary)) for step, _ in steps]
    return Bets(boundary, tuple(rates), tuple(weight for _, weight in steps))


def bets_on_any(boundary: float) -> Bets:
    """That the rate is above a boundary, with nothing known of where: bets spread over what is left."""
    boundary = min(max(boundary, CLOSEST), 1 - 2 * CLOSEST)
    shares = (0.2, 0.4, 0.6, 0.8, 0.98)
    rates = [min(1 - CLOSEST, boundary + share * (1 - boundary)) for share in shares]
    return Bets(boundary, tuple(rates), (1 / len(shares),) * len(shares))


def clean_bets(limit: float) -> Bets:
    """That there is no event at all: everything on that, so that a single one ends it."""
    return Bets(1 - limit, (1 - CLOSEST,), (1.0,))


def since_any_start(
    bets: Bets,
    good: NDArray[np.float64],
    design_effect: float = 1.0,
    boundaries: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The evidence for a change to above the boundary at some unknown time, after each episode.

    Formula: R = (R + 1) × (bet of the episode), the Shiryaev-Roberts sum of e-processes started at every episode.
    Without a change the chance that it reaches A within N episodes is at most N/A (Shin, Ramdas & Rinaldo 2023).
    Episodes that resemble each other move it as much less: to the power of 1/d a bet is at most one on average.
    """
    own = np.full(len(good), bets.boundary) if boundaries is None else boundaries
    found = np.zeros(len(good))
    for stake, weight in zip(bets.stakes(own), bets.weights, strict=True):
        factors = np.exp(np.log1p(stake * (good - own)) / design_effect)
        total = 0.0
        for place, factor in enumerate(factors.tolist()):
            total = min((total + 1) * factor, exp(MOST_LOG_E))
            found[place] += weight * total
    return found
