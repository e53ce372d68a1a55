"""Intervals for one success rate."""

from __future__ import annotations

from math import sqrt

Z_95 = 1.959963984540054


def wilson(successes: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson score interval for a rate.

    Formula: (p + z²/2n ± z √(pq/n + z²/4n²)) / (1 + z²/n), with p = successes / n and q = 1 − p.
    Assumes independent attempts with one rate. Source: Wilson 1927; checked against Newcombe 1998a, Table I.
    Smallest n: 1; with n = 0 nothing is known and the interval is [0, 1].
    """
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)
