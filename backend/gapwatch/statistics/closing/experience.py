"""What a team's own fixes brought: points closed per robot-hour, and the share that did nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from gapwatch.statistics.closing.closure import ClosureVerdict
from gapwatch.statistics.estimates.rates import Z_95, t_95, wilson

Interval = tuple[float, float]


@dataclass(frozen=True)
class MeasuredFix:
    """One fix with its closure, in points of success as a fraction; None while it is not measured."""

    points: float | None
    interval: Interval | None
    verdict: ClosureVerdict
    robot_hours: float | None


@dataclass(frozen=True)
class Experience:
    """`decided` are fixes with a verdict; `per_hour` is of those of them that say their hours. Fractions of 1."""

    fixes: int
    decided: int
    points: float | None
    points_interval: Interval | None
    robot_hours: float
    per_hour: float | None
    per_hour_interval: Interval | None
    did_nothing: int
    did_nothing_share: float | None
    did_nothing_interval: Interval | None


def pool_experience(fixes: Sequence[MeasuredFix]) -> Experience:
    """One cell of the table kind × category.

    Formula: per_hour R = Σ points / Σ hours; its variance the larger of Σ seᵢ² / (Σ hours)² and, with two or more
    fixes, S/(S − 1) Σ (pointsᵢ − R hoursᵢ)² / (Σ hours)² with a t quantile (Cochran 1977, ratio estimator): fixes
    of one kind differ by more than their measurement. `points` is their mean, likewise. A fix that made it worse
    did nothing, too; one with too few episodes is in no share. Assumes independent fixes. Smallest n: one.
    """
    decided = [fix for fix in fixes if fix.verdict != "too few episodes" and fix.points is not None]
    with_hours = [fix for fix in decided if fix.robot_hours]
    hours = sum(fix.robot_hours or 0.0 for fix in with_hours)
    mean, mean_interval = _ratio(decided, [1.0] * len(decided))
    per_hour, per_hour_interval = _ratio(with_hours, [fix.robot_hours or 0.0 for fix in with_hours])
    idle = sum(fix.verdict in ("did nothing", "worse") for fix in decided)
    return Experience(
        len(fixes),
        len(decided),
        mean,
        mean_interval,
        hours,
        per_hour,
        per_hour_interval,
        idle,
        idle / len(decided) if decided else None,
        wilson(idle, len(decided)) if decided else None,
    )


def _ratio(fixes: Sequence[MeasuredFix], sizes: Sequence[float]) -> tuple[float | None, Interval | None]:
    total = sum(sizes)
    if not fixes or total <= 0:
        return None, None
    points = [fix.points or 0.0 for fix in fixes]
    ratio = sum(points) / total
    measured = sum(((fix.interval[1] - fix.interval[0]) / (2 * Z_95)) ** 2 for fix in fixes if fix.interval)
    half = Z_95 * sqrt(measured) / total
    count = len(fixes)
    if count > 1:
        apart = count / (count - 1) * sum((p - ratio * h) ** 2 for p, h in zip(points, sizes, strict=True))
        half = max(half, t_95(count - 1) * sqrt(apart) / total)
    return ratio, (ratio - half, ratio + half)
