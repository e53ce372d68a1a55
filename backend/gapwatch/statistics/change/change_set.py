"""Where in a row of episodes a change lies: how plausible each place is, and the set that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Moved = Literal["lower", "higher"]
LEVEL = 0.95
# Fewer values on a side say nothing about a level.
FEWEST = 5


@dataclass(frozen=True)
class ChangeSet:
    """`weights[k]`: how plausible it is that value k is the first after the change; together 1.

    `first` to `last` are the places of the set that holds the change with 95 %.
    """

    weights: tuple[float, ...]
    first: int
    best: int
    last: int


def change_set(
    values: Sequence[float], *, rate: bool, moved: Moved | None = None, alike: float = 1.0
) -> ChangeSet | None:
    """The places at which a row of values, known to have changed once, may have changed.

    Formula: the posterior of the place under equal prior weights. Of a rate either side is Beta-binomial with a
    flat prior, B(1 + k, 1 + n − k); any other values are replaced by their normal scores, of which the sides have
    means of their own and one variance: RSS^(−(n − 1)/2). `alike` is the design effect of sessions: so many
    episodes are worth one, and the log of the evidence is divided by it. The set is the shortest run of places
    around the best one with a weight of 95 %.
    Places at which the mean did not move as `moved` says have no weight.
    Assumes one change and, apart from `alike`, independent values. Source: Smith 1975.
    Smallest n: 5 values on either side; None with fewer, and if no place moved that way.
    """
    x = np.asarray(values, dtype=float)
    n = x.size
    if n < 2 * FEWEST:
        return None
    log_weights = (_of_rates(x) if rate else _of_scores(x)) / max(1.0, alike)
    log_weights[:FEWEST] = log_weights[n - FEWEST + 1 :] = -np.inf
    if moved is not None:
        log_weights[_rises(x) == (moved == "lower")] = -np.inf
    if not np.isfinite(log_weights).any():
        return None
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    first, best, last = _shortest(weights)
    return ChangeSet(tuple(weights.tolist()), first, best, last)


def _rises(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """At which places the mean from there on is at least that of before."""
    place = np.arange(x.size)
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    return np.asarray((x.sum() - before) / (x.size - place) >= before / np.maximum(place, 1))


def _of_rates(x: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import betaln

    n, place = x.size, np.arange(x.size)
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    after = x.sum() - before
    left = betaln(1 + before, 1 + place - before)
    right = betaln(1 + after, 1 + (n - place) - after)
    return np.asarray(left + right, dtype=float)


def _of_scores(x: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    n, place = x.size, np.arange(x.size)
    scores = ndtri((rankdata(x) - 0.5) / n)
    before = np.concatenate([[0.0], np.cumsum(scores)[:-1]])
    after = scores.sum() - before
    explained = before**2 / np.maximum(place, 1) + after**2 / (n - place)
    rest = np.maximum(float((scores**2).sum()) - explained, 1e-9)
    return np.asarray(-(n - 1) / 2 * np.log(rest), dtype=float)


def _shortest(weights: NDArray[np.float64]) -> tuple[int, int, int]:
    """The run around the best place that grows by its heavier neighbour until it holds the level."""
    best = int(weights.argmax())
    first = last = best
    held = float(weights[best])
    while held < LEVEL and (first > 0 or last < weights.size - 1):
        left = weights[first - 1] if first > 0 else -1.0
        right = weights[last + 1] if last < weights.size - 1 else -1.0
        if left >= right:
            first -= 1
            held += float(left)
        else:
            last += 1
            held += float(right)
    return first, best, last
