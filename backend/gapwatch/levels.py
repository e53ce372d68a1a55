"""Condition values as levels: what two episodes share when the same "condition" holds for both.

Bins do not depend on the data, so folding in any order gives the same cells.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import floor, log10

# A condition that an episode does not name has this level: missing is a level of its own.
MISSING = "missing"
LARGEST_WHOLE = 20
_STEPS = (1, 2, 5, 10)


def level_of(value: str | bool | float) -> str:
    """A category is its own level; whole numbers up to ±20 too; other numbers fall into 1-2-5 bins."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return _number_level(float(value))


@lru_cache(maxsize=4096)
def _number_level(value: float) -> str:
    if abs(value) <= LARGEST_WHOLE and value == int(value):
        return str(int(value))
    low, high = bounds(abs(value))
    return f"{low:g} to {high:g}" if value > 0 else f"-{high:g} to -{low:g}"


def bounds(size: float) -> tuple[float, float]:
    """The bin [low, high) of a positive number: 1 to 2, 2 to 5 and 5 to 10 of each power of ten.

    The power is estimated with a logarithm and decided by comparison with decimal literals, which round the same
    on every machine.
    """
    power = floor(log10(size))
    for exponent in (power - 1, power, power + 1):
        edges = [float(f"{step}e{exponent}") for step in _STEPS]
        for low, high in pairwise(edges):
            if low <= size < high:
                return low, high
    return size, size  # below the smallest normal double, where powers of ten run together


def number_range(level: str) -> tuple[float, float] | None:
    """The numbers that a level stands for, low ≤ x < high (mirrored below zero); None for a word."""
    try:
        if " to " not in level:
            return float(level), float(level)
        low, high = level.split(" to ")
        return float(low), float(high)
    except ValueError:
        return None
