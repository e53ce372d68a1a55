"""Which days, robots and versions stand before a fix, which after it, and which beside it as a control; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from gapwatch.store.read.fix_rows import DayRange, MitigationRow, VersionDays

# Long enough for a few hundred episodes of most robots, short enough that little else changed.
DAYS_AROUND = 28
MOST_CONTROLS = 5
DAY = timedelta(days=1)

Side = Literal["before", "after"]
Standing = Literal["treated", "control", "still old"]


@dataclass(frozen=True)
class FixPeriods:
    """When a fix has its two sides. Without `start` it has not shipped, or nobody knows where it is."""

    before_since: datetime
    before_until: datetime
    start: datetime | None
    until: datetime | None
    # The first day of the version that brought it, where one did.
    shipped_day: datetime | None = None
    reason: str | None = None

    @property
    def neither_side(self) -> int:
        """Days between collecting and shipping that are on no side."""
        return 0 if self.start is None else max(0, (self.start - self.before_until).days)


@dataclass(frozen=True)
class RangeRole:
    """What the counts of one range are: of which fix, on which side, of whom."""

    fix: int
    side: Side
    standing: Standing
    deployment: str


@dataclass(frozen=True)
class PlannedFix:
    mitigation: MitigationRow
    periods: FixPeriods
    deployments: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """`roles[range.number]` says what a range is for."""

    fixes: tuple[PlannedFix, ...]
    ranges: tuple[DayRange, ...]
    roles: tuple[RangeRole, ...]


def plan_periods(
    mitigations: Sequence[MitigationRow],
    everybody: Sequence[MitigationRow],
    versions: Sequence[VersionDays],
    now: datetime,
) -> Plan:
    """Plan what to read. `everybody` are all mitigations that are known: who got one is no control."""
    by_deployment: dict[int, list[VersionDays]] = {}
    for row in versions:
        by_deployment.setdefault(row.deployment_id, []).append(row)
    fixes: list[PlannedFix] = []
    ranges: list[DayRange] = []
    roles: list[RangeRole] = []
    for number, mitigation in enumerate(mitigations):
        own = _treated(mitigation, by_deployment)
        periods = _periods(mitigation, own, now)
        fixes.append(PlannedFix(mitigation, periods, tuple(sorted({row.deployment for row in own}))))
        for row, side, standing, since, until in _wanted(mitigation, periods, own, by_deployment, everybody):
            by_day = bool(mitigation.fix.get("conditions"))
            ranges.append(
                DayRange(len(ranges), row.deployment_id, row.policy_id, row.task_id, since, until, by_day)
            )
            roles.append(RangeRole(number, side, standing, row.deployment))
    return Plan(tuple(fixes), tuple(ranges), tuple(roles))


def day_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _treated(
    mitigation: MitigationRow, by_deployment: Mapping[int, Sequence[VersionDays]]
) -> Sequence[VersionDays]:
    if mitigation.deployment is not None:
        return by_deployment.get(mitigation.deployment_id or 0, ())
    return [row for rows in by_deployment.values() for row in rows]


def _periods(mitigation: MitigationRow, own: Sequence[VersionDays], now: datetime) -> FixPeriods:
    """Before: the four weeks until the day it was told of, or until it shipped if that was earlier. After: four
    weeks from the first day of its version, or from the day after it was told of. What lies between is on no side.
    """
    told = day_of(mitigation.at)
    version = mitigation.fix.get("from_version")
    if version is None:
        start = told + DAY
        return FixPeriods(told - DAYS_AROUND * DAY, told, start, min(start + DAYS_AROUND * DAY, _tomorrow(now)))
    first_days = [row.first_day for row in own if row.version == version]
    if not first_days:
        reason = f"No real episode of version {version} yet: it has not shipped."
        return FixPeriods(told - DAYS_AROUND * DAY, told, None, None, reason=reason)
    shipped = day_of(min(first_days))
    until = min(told, shipped)
    return FixPeriods(
        until - DAYS_AROUND * DAY, until, shipped, min(shipped + DAYS_AROUND * DAY, _tomorrow(now)), shipped
    )


def _tomorrow(now: datetime) -> datetime:
    return day_of(now) + DAY


def _wanted(
    mitigation: MitigationRow,
    periods: FixPeriods,
    own: Sequence[VersionDays],
    by_deployment: Mapping[int, Sequence[VersionDays]],
    everybody: Sequence[MitigationRow],
) -> Iterable[tuple[VersionDays, Side, Standing, datetime, datetime]]:
    """The ranges of one fix: of each version that has days in them."""
    if periods.start is None or periods.until is None:
        for row in own:
            yield from _cut(row, "before", "treated", periods.before_since, periods.before_until)
        return
    new = _new_versions(mitigation, own)
    for row in own:
        key = (row.deployment_id, row.policy_id)
        if key not in new:
            yield from _cut(row, "before", "treated", periods.before_since, periods.before_until)
        if periods.shipped_day is None or key in new:
            yield from _cut(row, "after", "treated", periods.start, periods.until)
        elif periods.shipped_day is not None:
            # Robots that were left on the old version stand beside those that have the new one.
            yield from _cut(row, "after", "still old", periods.start, periods.until)
    is_part = bool(mitigation.fix.get("robots") or mitigation.fix.get("conditions") or mitigation.robots)
    if mitigation.deployment is None or is_part:
        return
    for rows in _control_deployments(mitigation, periods, by_deployment, everybody):
        ran_before = {
            row.policy_id
            for row in rows
            if row.first_day < periods.before_until and row.last_day >= periods.before_since
        }
        for row in rows:
            if row.policy_id in ran_before:
                yield from _cut(row, "before", "control", periods.before_since, periods.before_until)
                yield from _cut(row, "after", "control", periods.start, periods.until)


def _new_versions(mitigation: MitigationRow, own: Sequence[VersionDays]) -> set[tuple[int, int]]:
    """The version that brought it, and those that came after it, by deployment."""
    version = mitigation.fix.get("from_version")
    if version is None:
        return set()
    came: dict[int, datetime] = {}
    for row in own:
        if row.version == version:
            came[row.deployment_id] = min(row.first_day, came.get(row.deployment_id, row.first_day))
    first: dict[tuple[int, int], datetime] = {}
    for row in own:
        key = (row.deployment_id, row.policy_id)
        first[key] = min(row.first_day, first.get(key, row.first_day))
    brought = {(row.deployment_id, row.policy_id) for row in own if row.version == version}
    return brought | {key for key, day in first.items() if key[0] in came and day > came[key[0]]}


def _control_deployments(
    mitigation: MitigationRow,
    periods: FixPeriods,
    by_deployment: Mapping[int, Sequence[VersionDays]],
    everybody: Sequence[MitigationRow],
) -> list[Sequence[VersionDays]]:
    """Deployments of the same policy with days on both sides, and without a fix or a new version of their own."""
    assert periods.start is not None and periods.until is not None  # noqa: S101 - the caller looked
    mended = {
        other.deployment_id
        for other in everybody
        if other.id != mitigation.id and periods.before_since <= other.at < periods.until
    }
    found = []
    for deployment_id, rows in by_deployment.items():
        if deployment_id == mitigation.deployment_id or deployment_id in mended or None in mended:
            continue
        if mitigation.policy is None or rows[0].policy != mitigation.policy:
            continue
        ran = [row for row in rows if row.first_day < periods.before_until and row.last_day >= periods.start]
        if ran:
            found.append(rows)
    found.sort(key=lambda rows: rows[0].deployment)
    return found[:MOST_CONTROLS]


def _cut(
    row: VersionDays, side: Side, standing: Standing, since: datetime, until: datetime
) -> Iterable[tuple[VersionDays, Side, Standing, datetime, datetime]]:
    if row.first_day < until and row.last_day >= since:
        yield row, side, standing, since, until
