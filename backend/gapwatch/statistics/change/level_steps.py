"""Where a success rate stepped from one level to another: all such places of a history."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from gapwatch.statistics.change.present import FEWEST, Array, best_likelihood, split_limit


def find_steps(counts: Sequence[tuple[int, int]], design_effect: float = 1.0) -> list[int]:
    """Places in `counts`, successes and episodes of days in a row, at which another level begins.

    Binary segmentation: the split with the largest likelihood ratio counts if its signed root exceeds √(design
    effect) times the limit of `find_present`, which chance exceeds in 0.5 %, unless a straight line through all
    days explains them as well; then both parts are searched. Assumes days independent given their level, up
    to the design effect. Sources: James, James and Siegmund 1987, eq. 3.3; Vostrikova 1981 for the segmentation.
    Smallest n: 20 episodes on either side. Why not a library: ruptures has no binomial cost and no such limit.
    """
    k = np.array([successes for successes, _ in counts], dtype=np.float64)
    n = np.array([episodes for _, episodes in counts], dtype=np.float64)
    found: list[int] = []
    pending = [(0, len(counts))]
    while pending:
        first, last = pending.pop()
        split = _split(k[first:last], n[first:last], design_effect)
        if split is not None:
            found.append(first + split)
            pending += [(first, first + split), (first + split, last)]
    return sorted(found)


def _split(k: Array, n: Array, design_effect: float) -> int | None:
    left_k, left_n = np.cumsum(k), np.cumsum(n)
    total_k, total_n = float(k.sum()), float(n.sum())
    if total_n < 2 * FEWEST:
        return None
    allowed = np.flatnonzero((left_n >= FEWEST) & (total_n - left_n >= FEWEST))
    if not allowed.size:
        return None
    likelihood = best_likelihood(left_k[allowed], left_n[allowed]) + best_likelihood(
        total_k - left_k[allowed], total_n - left_n[allowed]
    )
    best = int(np.argmax(likelihood))
    gain = float(likelihood[best] - best_likelihood(total_k, total_n))
    if sqrt(max(0.0, 2 * gain)) <= split_limit(round(total_n)) * sqrt(design_effect):
        return None
    if _line_likelihood(k, n) >= float(likelihood[best]):
        return None
    return int(allowed[best]) + 1


def _line_likelihood(k: Array, n: Array) -> float:
    """Of a straight line through the days, by weighted least squares."""
    t = np.arange(len(k), dtype=np.float64)
    middle, rate = float(np.average(t, weights=n)), float(k.sum() / n.sum())
    slope = float(((t - middle) * (k - n * rate)).sum() / (n * (t - middle) ** 2).sum())
    edge = 0.5 / float(n.sum())
    p = np.clip(rate + slope * (t - middle), edge, 1 - edge)
    return float((k * np.log(p) + (n - k) * np.log1p(-p)).sum())
