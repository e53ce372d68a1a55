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
    bets: Bets, good: Sequence[float] | NDArray[np.float64], alpha: float, design_effect: float = 1.0
) -> Path:
    """Look after every episode; `good` are the outcomes in the order of arrival, each between 0 and 1."""
    outcomes = np.asarray(good, dtype=float)
    if not len(outcomes):
        return Path(0.0, 0.0, None)
    looks = np.arange(1, len(outcomes) + 1) / design_effect
    path = bets.log_path(np.cumsum(outcomes) / design_effect, looks)
    reached = np.flatnonzero(path >= log(1 / alpha))
    return Path(float(path[-1]), max(0.0, float(path.max())), int(reached[0]) + 1 if len(reached) else None)


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


def highest_since_any_start(bets: Bets, good: Sequence[float] | NDArray[np.float64]) -> float:
    """The evidence for a change to above the boundary at some unknown time.

    Formula: R = (R + 1) × (bet of the episode), the Shiryaev-Roberts sum of e-processes started at every episode.
    Without a change the chance that it reaches A within N episodes is at most N/A (Shin, Ramdas & Rinaldo 2023).
    """
    outcomes = np.asarray(good, dtype=float)
    found = 0.0
    for q, weight in zip(bets.rates, bets.weights, strict=True):
        growth = outcomes * log(q / bets.boundary) + (1 - outcomes) * log((1 - q) / (1 - bets.boundary))
        total = highest = 0.0
        for factor in np.exp(growth).tolist():
            total = min((total + 1) * factor, exp(MOST_LOG_E))
            highest = max(highest, total)
        found += weight * highest
    return found
