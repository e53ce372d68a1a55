"""The team's own experience: kind × category, what fixes closed per robot-hour, and how many did nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gapwatch.closing.closures import FixAnswer
from gapwatch.closing.fix import FIX_KINDS
from gapwatch.statistics.closing.experience import Experience, MeasuredFix, pool_experience
from gapwatch.taxonomy import BY_ID, CATEGORIES

Interval = tuple[float, float]


@dataclass(frozen=True)
class FixTableRow:
    """Points are percentage points. `decided` fixes have a verdict; of those, `did_nothing` closed nothing."""

    kind: str
    kind_name: str
    category: str
    category_name: str
    fixes: int
    decided: int
    points: float | None
    points_interval: Interval | None
    robot_hours: float
    points_per_robot_hour: float | None
    points_per_robot_hour_interval: Interval | None
    did_nothing: int
    did_nothing_share: float | None
    did_nothing_interval: Interval | None
    expected_points: float | None


@dataclass(frozen=True)
class FixTableAnswer:
    """`fixes`: how many the table is made of, those without a kind or category included."""

    fixes: int
    rows: tuple[FixTableRow, ...]


def fix_table(fixes: Sequence[FixAnswer]) -> list[FixTableRow]:
    """Only cells that have fixes, the most effective first; a fix that says no kind is in none."""
    groups: dict[tuple[str, str], list[FixAnswer]] = {}
    for fix in fixes:
        if fix.kind is not None and fix.category is not None:
            groups.setdefault((fix.kind, fix.category), []).append(fix)
    order = [(kind, category) for kind in FIX_KINDS for category in CATEGORIES if (kind, category) in groups]
    rows = [_row(kind, category, groups[kind, category]) for kind, category in order]
    rows.sort(key=lambda row: -(row.points if row.points is not None else -1000.0))
    return rows


def experience_of(fixes: Sequence[FixAnswer]) -> Experience:
    return pool_experience(
        [
            MeasuredFix(
                None if fix.closure.points is None else fix.closure.points / 100,
                None if fix.closure.interval is None else _hundredth(fix.closure.interval),
                fix.closure.verdict,
                fix.robot_hours,
            )
            for fix in fixes
        ]
    )


def _row(kind: str, category: str, fixes: Sequence[FixAnswer]) -> FixTableRow:
    pooled = experience_of(fixes)
    expected = [fix.expected_points for fix in fixes if fix.expected_points is not None]
    return FixTableRow(
        kind,
        FIX_KINDS[kind],
        category,
        BY_ID[category].name,
        pooled.fixes,
        pooled.decided,
        _points(pooled.points),
        _span(pooled.points_interval),
        pooled.robot_hours,
        _points(pooled.per_hour),
        _span(pooled.per_hour_interval),
        pooled.did_nothing,
        pooled.did_nothing_share,
        pooled.did_nothing_interval,
        sum(expected) / len(expected) if expected else None,
    )


def _points(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _span(interval: Interval | None) -> Interval | None:
    return None if interval is None else (100 * interval[0], 100 * interval[1])


def _hundredth(interval: Interval) -> Interval:
    return interval[0] / 100, interval[1] / 100
