"""Which deployments moved from one week to the next, of many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Literal

from gapwatch.statistics.estimates.drops import Side, side_limits
from gapwatch.statistics.estimates.multiplicity import benjamini_hochberg
from gapwatch.statistics.estimates.rates import Z_95, Limits, square_and_add

WeekVerdict = Literal["rose", "fell", "steady", "too few episodes"]
Clusters = Sequence[tuple[int, int]]
FEWEST_EPISODES = 20
LEVEL = 0.05


@dataclass(frozen=True)
class WeekMove:
    """This week's success minus last week's, as a fraction."""

    value: float | None
    interval: tuple[float, float] | None
    verdict: WeekVerdict


def week_moves(weeks: Sequence[tuple[Clusters, Clusters]]) -> list[WeekMove]:
    """Of each deployment, from (successes, episodes) of its robots' days last week and this week.

    Formula: difference of the two rates with limits that know robots' days (`clustered_rate`), squared and added;
    it moved if Benjamini and Hochberg's q of |value| by its half-width is at most 5 % over all deployments.
    Assumes independent robot-days. Smallest n: twenty episodes a week, otherwise too few.
    """
    limits: list[Limits | None] = []
    for before, after in weeks:
        sides = [
            Side(sum(k for k, _ in week), sum(n for _, n in week), week, "robot and day")
            for week in (before, after)
        ]
        if min(side.n for side in sides) < FEWEST_EPISODES:
            limits.append(None)
            continue
        was, now = sides
        limits.append(square_and_add(side_limits(now, was), side_limits(was, now)))
    p_values = [_p_value(one) for one in limits if one is not None]
    q_values = iter(benjamini_hochberg(p_values) if p_values else ())
    moves = []
    for one in limits:
        if one is None:
            moves.append(WeekMove(None, None, "too few episodes"))
            continue
        has_moved = next(q_values) <= LEVEL
        verdict: WeekVerdict = "steady" if not has_moved else "rose" if one.value > 0 else "fell"
        moves.append(WeekMove(one.value, (one.low, one.high), verdict))
    return moves


def _p_value(limits: Limits) -> float:
    reach = limits.value - limits.low if limits.value > 0 else limits.high - limits.value
    return erfc(abs(limits.value) / max(reach, 1e-9) * Z_95 / sqrt(2))
