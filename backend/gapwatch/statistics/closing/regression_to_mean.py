"""What a slice, robot or deployment regains by itself when it was picked because it did worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FEWEST_PEERS = 2
# How much units of one kind usually differ: half-normal, in success. Two or three units say little of it.
USUAL_SPREAD = 0.1
WIDEST_SPREAD, SPREADS = 0.5, 201
# A unit's own rate counts as so many episodes at the rate of all when its variance is estimated.
PULL = 5.0


@dataclass(frozen=True)
class Peer:
    """One of the units that could have been picked, before the fix."""

    successes: float
    n: float
    design_effect: float = 1.0


@dataclass(frozen=True)
class Regression:
    """`shifts`: how much each unit's rate is expected to move by itself, in the order of the peers.

    `narrowed`: the variance with which the true rates are known then, by that of their own episodes alone.
    `worst` is the index of the lowest rate.
    """

    shifts: tuple[float, ...]
    narrowed: tuple[float, ...]
    worst: int


def expected_regression(peers: Sequence[Peer]) -> Regression | None:
    """How far each rate is expected to move when it is measured again and nothing is done.

    Formula: rates yᵢ ~ N(θᵢ, sᵢ²), θᵢ ~ N(μ, τ²); μ flat, τ half-normal with sd 0.1; shift = E[θᵢ | y] − yᵢ,
    averaged over the posterior of τ on a grid. sᵢ² = p(1 − p)/nᵢ times the design effect, p drawn towards the rate
    of all by five episodes. A posterior mean does not depend on which unit was looked at, so it also holds for the
    one that was picked for being lowest. Source: Efron & Morris 1975; Rubin 1981 (the average over τ).
    Assumes units of one kind. Measured, no fix, twelve slices of 30 at 80 %: the worst rises by 12.8 points when
    measured again, of which 3.2 are still credited (bench/closing). Smallest n: two units with an episode.
    """
    held = [peer for peer in peers if peer.n > 0]
    if len(held) < FEWEST_PEERS or len(held) < len(peers):
        return None
    k, n, effect = (np.array(column, dtype=float) for column in zip(
        *((peer.successes, peer.n, peer.design_effect) for peer in held), strict=True
    ))  # fmt: skip
    rate = k / n
    everything = (k.sum() + 0.5) / (n.sum() + 1)
    pulled = (k + PULL * everything) / (n + PULL)
    variance = pulled * (1 - pulled) / n * np.maximum(effect, 1.0)
    spreads = np.linspace(0.0, WIDEST_SPREAD, SPREADS)
    total = variance + spreads[:, None] ** 2
    precision = 1 / total
    centre = (precision * rate).sum(axis=1) / precision.sum(axis=1)
    log_weight = -0.5 * (
        np.log(total).sum(axis=1)
        + np.log(precision.sum(axis=1))
        + (precision * (rate - centre[:, None]) ** 2).sum(axis=1)
        + (spreads / USUAL_SPREAD) ** 2
    )
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    drawn = variance / total
    moves = drawn * (centre[:, None] - rate)
    shift: Array = weight @ moves
    given = variance * (1 - drawn) + drawn**2 / precision.sum(axis=1)[:, None]
    known: Array = weight @ (given + (moves - shift) ** 2)
    narrowed = np.minimum(known / variance, 1.0)
    return Regression(tuple(shift.tolist()), tuple(narrowed.tolist()), int(np.argmin(rate)))
