"""Suspects among correlated conditions: a level that is worse only because it comes with another is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import erfc, sqrt

from gapwatch.statistics.causes.slices import RELEVANT, Slice

# Successes and episodes in sim, then in real.
Cells = Mapping[tuple[str, ...], Sequence[float]]
# As strict as that: a few suspects are looked at, each after it was chosen for standing out.
LEVEL = 0.01
# With more conditions every stratum is empty on a side.
MOST_ADJUSTED = 3
MOST_SUSPECTS = 12


def adjust_suspects(slices: Sequence[Slice], count: Callable[[Sequence[str]], Cells]) -> list[Slice]:
    """The same slices; a suspect that another one explains goes together with that and is no suspect any more.

    Formula: the suspects in order of how surely they stand out. Each is held against those taken before it, of
    other conditions: its excess within every combination of their levels, pooled by inverse variance (`_excess`).
    If what is left is below 5 points or may be chance (1 %, one-sided), it goes together with the one of them that
    takes most from it. One that was taken and is explained by a later one goes likewise.
    `count` gives the episodes by the levels of some conditions. Assumes that conditions do not interact; where two
    never occur apart neither explains the other, and the surer one stands for both.
    Source: Cochran 1954. Smallest n: 1 on each side with the level and without, in a stratum.
    """
    suspects = [one for one in slices if one.is_suspect]
    suspects.sort(key=lambda one: (-_sureness(one), one.condition, one.level))
    taken: list[Slice] = []
    goes_with: dict[tuple[str, str], str] = {}
    for one in suspects[:MOST_SUSPECTS]:
        others = _others(taken, one)
        if not others or _stands(one, others, count):
            taken.append(one)
        else:
            goes_with[one.condition, one.level] = _nearest(one, others, count)
    for one in list(taken):
        others = _others([other for other in taken if other is not one], one)
        if others and not _stands(one, others, count):
            goes_with[one.condition, one.level] = _nearest(one, others, count)
            taken.remove(one)
    kept = {(one.condition, one.level) for one in taken}
    return [
        replace(
            one,
            is_suspect=one.is_suspect and (one.condition, one.level) in kept,
            goes_with=goes_with.get((one.condition, one.level)),
        )
        for one in slices
    ]


def _sureness(one: Slice) -> float:
    excess, interval = one.excess or 0.0, one.excess_interval
    return 0.0 if interval is None else excess / max(1e-9, excess - interval[0])


def _others(taken: Sequence[Slice], one: Slice) -> list[Slice]:
    return [other for other in taken if other.condition != one.condition][:MOST_ADJUSTED]


def _stands(one: Slice, others: Sequence[Slice], count: Callable[[Sequence[str]], Cells]) -> bool:
    value, error = _excess(one, others, count)
    if error is None:
        return False
    return value >= RELEVANT and erfc(value / error / sqrt(2)) / 2 <= LEVEL


def _nearest(one: Slice, others: Sequence[Slice], count: Callable[[Sequence[str]], Cells]) -> str:
    """Of the others, the one that takes most from the excess."""
    nearest = min(others, key=lambda other: _excess(one, [other], count)[0])
    return f"{nearest.condition} = {nearest.level}"


def _excess(
    one: Slice, others: Sequence[Slice], count: Callable[[Sequence[str]], Cells]
) -> tuple[float, float | None]:
    """The drop at the level less the drop elsewhere, within equal levels of the others, and its standard error.

    A stratum is which of the other suspects hold. Rates are (k + ½)/(n + 1), so that none is certain.
    """
    names = [one.condition, *dict.fromkeys(other.condition for other in others)]
    sums: dict[tuple[bool, ...], list[list[float]]] = {}
    for key, cell in count(names).items():
        levels = dict(zip(names, key, strict=True))
        stratum = tuple(levels[other.condition] == other.level for other in others)
        here = sums.setdefault(stratum, [[0.0] * 4, [0.0] * 4])[levels[one.condition] == one.level]
        for place, number in enumerate(cell):
            here[place] += number
    total, weights = 0.0, 0.0
    for elsewhere, here in sums.values():
        if min(here[1], here[3], elsewhere[1], elsewhere[3]) < 1:
            continue
        value, variance = 0.0, 0.0
        for sign, (k, n) in ((1, here[:2]), (-1, here[2:]), (-1, elsewhere[:2]), (1, elsewhere[2:])):
            rate = (k + 0.5) / (n + 1)
            value += sign * rate
            variance += rate * (1 - rate) / (n + 1)
        total, weights = total + value / variance, weights + 1 / variance
    return (total / weights, 1 / sqrt(weights)) if weights else (0.0, None)
