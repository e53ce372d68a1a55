"""What became of fixes: each with its closure, its control, its rivals, and its expectation beside the outcome."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
import numpy as np

from gapwatch.answers.cell_table import CellTable
from gapwatch.answers.strata import condition_strata
from gapwatch.closing.fix import FIX_KINDS
from gapwatch.closing.periods import DAY, FixPeriods, Plan, PlannedFix, plan_periods
from gapwatch.levels import MISSING
from gapwatch.statistics.causes.decomposition import Counts
from gapwatch.statistics.causes.failed_episodes import FailedBatch
from gapwatch.statistics.causes.weighing import weigh
from gapwatch.statistics.closing.closure import Closure, PeriodCounts, measure_closure
from gapwatch.statistics.estimates.rates import FEWEST_SESSIONS, wilson
from gapwatch.store.core.database import Connection
from gapwatch.store.read import fix_rows
from gapwatch.store.read.directory import project_options
from gapwatch.store.read.fix_rows import FixOutcomes, MitigationRow, NearEvent, VersionDays
from gapwatch.store.read.selection import Cell
from gapwatch.store.read.sides import CellCount
from gapwatch.tally.sums import Signature
from gapwatch.taxonomy import BY_ID, UNATTRIBUTED, Taxonomy

Interval = tuple[float, float]
Unit = Hashable
# Fixes that one answer measures; a page shows fewer.
MOST_MEASURED = 200
RIVAL_DAYS = timedelta(days=7)
MOST_NAMED = 10
MOST_LEVELS = 30
STRATUM_SIZE = 25
# Robots are offline for days: until then a fix is measured anew whenever somebody asks.
LATE_EPISODES = timedelta(days=3)
METHOD = (
    "rate part of the change (Kitagawa) at matched conditions, less that of the control; 95 % interval clustered "
    "by robot and day; categories by the words of failures"
)


@dataclass(frozen=True)
class PeriodRate:
    """Real episodes of one side of a fix, crude."""

    since: datetime
    until: datetime
    n: int
    successes: int
    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class CategoryPoints:
    category: str
    name: str
    points: float
    interval: Interval
    regression_subtracted: float | None


@dataclass(frozen=True)
class ControlAnswer:
    """Who did not get the fix: `kind` says what the units are. Their change was subtracted."""

    kind: Literal["robots", "slices", "deployments"]
    units: tuple[str, ...]
    n_before: int
    n_after: int
    points: float
    interval: Interval


@dataclass(frozen=True)
class Rival:
    """Something else near the fix that may have done it."""

    kind: str
    at: datetime
    title: str


@dataclass(frozen=True)
class ClosureAnswer:
    """Points are percentage points of real success, positive when the gap closed."""

    points: float | None
    interval: Interval | None
    per_category: tuple[CategoryPoints, ...]
    control: ControlAnswer | None
    rivals: tuple[Rival, ...]
    regression_subtracted: float | None
    selection: str
    verdict: Literal["closed", "did nothing", "worse", "too few episodes"]
    before: PeriodRate
    after: PeriodRate | None
    mix: float | None
    off_support: float | None
    days_on_no_side: int
    method: str
    reason: str | None


@dataclass(frozen=True)
class FixAnswer:
    """One fix. `expectation` says how the outcome stands to what was expected; `written` whether that was said
    before the first episode with the fix.
    """

    id: int
    at: datetime
    title: str
    told_at: datetime
    deployment: str | None
    kind: str | None
    kind_name: str
    category: str | None
    category_name: str | None
    robots: tuple[str, ...]
    conditions: Mapping[str, str]
    from_version: str | None
    robot_hours: float | None
    demonstrations: int | None
    expected_points: float | None
    shipped_at: datetime | None
    expectation: Literal["as expected", "less than expected", "more than expected"] | None
    written: Literal["before", "after"] | None
    closure: ClosureAnswer


@dataclass(frozen=True)
class FixListAnswer:
    fixes: tuple[FixAnswer, ...]
    next: int | None


def answer_fixes(
    connection: Connection,
    project_id: int,
    now: datetime,
    *,
    deployment: str | None = None,
    before_id: int | None = None,
    number: int | None = None,
    limit: int = MOST_MEASURED,
) -> list[FixAnswer]:
    """Measure mitigations, newest first, in a fixed number of queries."""
    chosen = fix_rows.mitigations(
        connection, project_id, deployment=deployment, before_id=before_id, number=number, limit=limit
    )
    if not chosen:
        return []
    kept = {row.id: msgspec.convert(row.closure, FixAnswer) for row in chosen if row.closure is not None}
    is_all = deployment is None and before_id is None and number is None and limit >= MOST_MEASURED
    left = [row for row in chosen if row.id not in kept]
    measured = measure_fixes(connection, project_id, left, now, chosen if is_all else None)
    found = kept | {answer.id: answer for answer in measured}
    return [found[row.id] for row in chosen]


def keep_settled(connection: Connection, project_id: int, now: datetime) -> int:
    """Keep what fixes closed whose days are over, late episodes included; return how many. May run twice."""
    rows = fix_rows.mitigations(connection, project_id, limit=MOST_MEASURED)
    measured = measure_fixes(connection, project_id, rows, now, rows)
    settled = 0
    for answer in measured:
        after = answer.closure.after
        is_settled = after is not None and after.until + LATE_EPISODES <= now
        settled += is_settled
        fix_rows.keep_closure(
            connection, project_id, answer.id, msgspec.to_builtins(answer) if is_settled else None
        )
    return settled


def measure_fixes(
    connection: Connection,
    project_id: int,
    chosen: Sequence[MitigationRow],
    now: datetime,
    everybody: Sequence[MitigationRow] | None = None,
) -> list[FixAnswer]:
    """`everybody`: all mitigations that are known, where the caller has them."""
    if not chosen:
        return []
    everybody = everybody or fix_rows.mitigations(connection, project_id, limit=MOST_MEASURED)
    policies = {row.policy for row in chosen if row.policy is not None}
    of_everything = any(row.deployment is None for row in chosen)
    versions = fix_rows.version_days(connection, project_id, None if of_everything else sorted(policies))
    plan = plan_periods(chosen, everybody, versions, now)
    outcomes = fix_rows.fix_outcomes(connection, project_id, plan.ranges)
    stretches = [_stretch(index, fix) for index, fix in enumerate(plan.fixes)]
    near = fix_rows.events_near_fixes(connection, project_id, stretches)
    taxonomy = Taxonomy(project_options(connection, project_id).get("taxonomy"))
    return [
        _answer(fix, _gather(plan, outcomes, index, taxonomy), _rivals(fix, versions, near, index))
        for index, fix in enumerate(plan.fixes)
    ]


# Which cells are whose


_Clusters = dict[Any, list[int]]


@dataclass
class _UnitRows:
    """Everything that was counted of one unit: cells, clusters and failures of each side."""

    cells: tuple[list[CellCount], list[CellCount]]
    clusters: tuple[list[_Clusters], list[_Clusters]]
    failures: tuple[list[tuple[Cell, Signature, int]], list[tuple[Cell, Signature, int]]]


@dataclass(frozen=True)
class _Gathered:
    treated: Mapping[Unit, PeriodCounts]
    controls: Mapping[Unit, PeriodCounts]
    control_kind: Literal["robots", "slices", "deployments"]


class _Units:
    """Sorts rows into the units of a fix: named robots, a slice, the robots of a new version, or a deployment."""

    def __init__(self, fix: PlannedFix, outcomes: FixOutcomes, plan: Plan, index: int) -> None:
        stated = fix.mitigation.fix
        self.robots = {*(stated.get("robots") or fix.mitigation.robots)}
        self.conditions: Mapping[str, str] = stated.get("conditions") or {}
        on_new: set[str | None] = set()
        on_old: set[str | None] = set()
        for row in outcomes.places:
            role = plan.roles[row.number]
            if role.fix == index and role.side == "after":
                (on_old if role.standing == "still old" else on_new).add(row.robot)
        self.left_behind = {robot for robot in on_old - on_new if robot is not None}
        self.kind: Literal["robots", "slices", "deployments"] = (
            "slices" if self.conditions else "robots" if self.robots or self.left_behind else "deployments"
        )

    def unit(self, standing: str, side: str, deployment: str, cell: Cell) -> tuple[bool, Unit] | None:
        """Whether treated, and which unit; None of rows that are on no side."""
        if standing == "control":
            return False, deployment
        is_left_behind = cell.robot in self.left_behind
        if standing == "still old" and not is_left_behind:
            return None
        if self.conditions:
            own = {name: cell.levels.get(name, "") for name in self.conditions}
            return own == dict(self.conditions), " × ".join(own.values()) or "(not given)"
        if self.robots:
            return cell.robot in self.robots, cell.robot or "(not given)"
        if is_left_behind:
            return False, cell.robot
        return True, deployment


def _gather(plan: Plan, outcomes: FixOutcomes, index: int, taxonomy: Taxonomy) -> _Gathered:
    units = _Units(plan.fixes[index], outcomes, plan, index)
    rows: dict[tuple[bool, Unit], _UnitRows] = {}

    def rows_of(key: tuple[bool, Unit]) -> _UnitRows:
        return rows.setdefault(key, _UnitRows(([], []), ([{}, {}, {}], [{}, {}, {}]), ([], [])))

    for cells in outcomes.cells:
        role = plan.roles[cells.number]
        key = units.unit(role.standing, role.side, role.deployment, cells.cell) if role.fix == index else None
        if key is None:
            continue
        own, at = rows_of(key), 0 if role.side == "before" else 1
        # A changed mix of robots, deployments and tasks must change nothing either.
        levels = {"(robot)": cells.cell.robot or "", "(deployment)": role.deployment, **cells.cell.levels}
        own.cells[at].append(
            CellCount(0, 0, 0, cells.cell._replace(levels=levels), cells.successes, cells.failures, 0, 0)
        )
        if cells.day is not None:
            _add(own.clusters[at][1], (cells.cell.robot, cells.day), cells.successes, cells.failures)
            _add(own.clusters[at][2], cells.day, cells.successes, cells.failures)
    for place in outcomes.places:
        role = plan.roles[place.number]
        if role.fix != index or units.kind == "slices":
            continue
        key = units.unit(role.standing, role.side, role.deployment, Cell(place.robot, None, None, {}))
        if key is not None:
            own, at = rows_of(key), 0 if role.side == "before" else 1
            _add(own.clusters[at][1], (place.robot, place.day), place.successes, place.failures)
            _add(own.clusters[at][2], place.day, place.successes, place.failures)
    for sitting in outcomes.sessions:
        role = plan.roles[sitting.number]
        # Sessions do not say of which robots, or under which conditions.
        if role.fix != index or role.standing == "still old" or (role.standing == "treated" and _is_part(units)):
            continue
        own, at = rows_of((role.standing == "treated", role.deployment)), 0 if role.side == "before" else 1
        _add(own.clusters[at][0], sitting.session, sitting.successes, sitting.failures)
    for failed in outcomes.failures:
        role = plan.roles[failed.number]
        key = units.unit(role.standing, role.side, role.deployment, failed.cell) if role.fix == index else None
        if key is not None:
            levels = {"(robot)": failed.cell.robot or "", "(deployment)": role.deployment, **failed.cell.levels}
            at = 0 if role.side == "before" else 1
            rows_of(key).failures[at].append(
                (failed.cell._replace(levels=levels), failed.signature, failed.failures)
            )
    counted = {key: _counts(own, taxonomy) for key, own in rows.items() if own.cells[0] or own.cells[1]}
    controls = {unit: counts for (is_treated, unit), counts in counted.items() if not is_treated}
    if len(controls) > MOST_LEVELS:
        controls = dict(sorted(controls.items(), key=lambda item: -sum(item[1].n))[:MOST_LEVELS])
    return _Gathered(
        {unit: counts for (is_treated, unit), counts in counted.items() if is_treated}, controls, units.kind
    )


def _is_part(units: _Units) -> bool:
    return units.kind != "deployments"


def _add(clusters: _Clusters, key: object, successes: int, failures: int) -> None:
    total = clusters.setdefault(key, [0, 0])
    total[0] += successes
    total[1] += successes + failures


def _counts(rows: _UnitRows, taxonomy: Taxonomy) -> PeriodCounts:
    """Strata as a drop has them, with before in the place of sim; and the weights of the failures in each."""
    shared: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def with_shared_levels(counts: Iterable[CellCount]) -> list[CellCount]:
        # Cells with equal levels must share the mapping, by which a cell table recognises them.
        return [
            count._replace(
                cell=count.cell._replace(
                    levels=shared.setdefault(tuple(sorted(count.cell.levels.items())), count.cell.levels)
                )
            )
            for count in counts
        ]

    table = CellTable(with_shared_levels(rows.cells[0]), with_shared_levels(rows.cells[1]))
    names = _strata_names(table)
    counts: dict[Hashable, Counts] = dict(table.count(names).items())
    weights: dict[str, dict[Hashable, tuple[float, float]]] = {}
    for side, failures in enumerate(rows.failures):
        for category, stratum, weight in _weighed(failures, names, taxonomy):
            own = weights.setdefault(category, {})
            before, after = own.get(stratum, (0.0, 0.0))
            own[stratum] = (before + weight, after) if side == 0 else (before, after + weight)
    return PeriodCounts(counts, (_ways(rows.clusters[0]), _ways(rows.clusters[1])), weights)


def _strata_names(table: CellTable) -> list[str]:
    """Conditions to cross, the most telling first, as long as a stratum has enough episodes of the smaller side.

    Thinner strata would match more and measure less: their rates vary more than the mix could move them.
    """
    everything = table.count([])
    smaller = min((sum(c[side] for c in everything.values()) for side in (1, 3)), default=0)
    crossed: list[str] = []
    for name in condition_strata(table).names:
        tried = [*crossed, name]
        if len(table.count(tried)) * STRATUM_SIZE <= smaller:
            crossed = tried
    return crossed


def _ways(clusters: Sequence[_Clusters]) -> list[list[tuple[float, int]]]:
    """By robots' days and by days, which hold for the sessions within them; by sessions where days are few.

    Mornings that always differ from evenings are no noise: over days they cancel out. Nor are robots that differ:
    each stands in strata of its own, so a robot's days are compared with its other days.
    """
    sessions, robot_days, days = clusters
    if len(robot_days) < FEWEST_SESSIONS and sessions:
        return [[(k, n) for k, n in sessions.values()]]
    robots: dict[object, list[int]] = {}
    for (robot, _), (k, n) in robot_days.items():
        total = robots.setdefault(robot, [0, 0])
        total[0] += k
        total[1] += n
    rate = sum(k for k, _ in robots.values()) / max(1, sum(n for _, n in robots.values()))
    centred = [
        (k - n * (robots[robot][0] / robots[robot][1] - rate), n) for (robot, _), (k, n) in robot_days.items()
    ]
    return [centred, [(k, n) for k, n in days.values()]]


def _weighed(
    failures: Sequence[tuple[Cell, Signature, int]], names: Sequence[str], taxonomy: Taxonomy
) -> Iterable[tuple[str, Hashable, float]]:
    """The failures of a side by category and stratum, by what was written about them."""
    if not failures:
        return
    signatures = list(dict.fromkeys(signature for _, signature, _ in failures))
    batch = FailedBatch(
        np.ones(len(signatures)),
        [signature.category for signature in signatures],
        [signature.labels for signature in signatures],
        [signature.phase for signature in signatures],
    )
    weights = weigh(batch, taxonomy)
    shares = {signature: weights.row(row) for row, signature in enumerate(signatures)}
    for cell, signature, count in failures:
        stratum = tuple(cell.levels.get(name, MISSING) for name in names)
        for category, share in shares[signature].items():
            yield category, stratum, share * count


# What is said of it


def _answer(fix: PlannedFix, gathered: _Gathered, rivals: tuple[Rival, ...]) -> FixAnswer:
    row, stated = fix.mitigation, fix.mitigation.fix
    expected = stated.get("expected_points")
    measured = measure_closure(
        gathered.treated,
        gathered.controls,
        aimed_at=stated.get("category"),
        expected=None if expected is None else expected / 100,
    )
    closure = _closure(fix.periods, gathered, measured, rivals)
    kind, category = stated.get("kind"), stated.get("category")
    return FixAnswer(
        row.id,
        row.at,
        row.title,
        row.told_at,
        row.deployment,
        kind,
        FIX_KINDS.get(kind or "", "not said"),
        category,
        None if category is None else BY_ID[category].name,
        tuple(stated.get("robots") or row.robots),
        stated.get("conditions") or {},
        stated.get("from_version"),
        stated.get("robot_hours"),
        stated.get("demonstrations"),
        expected,
        fix.periods.start,
        _against_expectation(expected, closure),
        _written(row, fix.periods) if expected is not None else None,
        closure,
    )


def _written(row: MitigationRow, periods: FixPeriods) -> Literal["before", "after"]:
    return "before" if periods.start is None or row.told_at < periods.start else "after"


def _against_expectation(
    expected: float | None, closure: ClosureAnswer
) -> Literal["as expected", "less than expected", "more than expected"] | None:
    """Whether the interval holds what was expected."""
    if expected is None or closure.interval is None or closure.verdict == "too few episodes":
        return None
    low, high = closure.interval
    return "less than expected" if high < expected else "more than expected" if low > expected else "as expected"


def _closure(
    periods: FixPeriods, gathered: _Gathered, measured: Closure, rivals: tuple[Rival, ...]
) -> ClosureAnswer:
    change = measured.change
    return ClosureAnswer(
        _points(measured.points),
        _span(measured.interval),
        tuple(
            CategoryPoints(
                part.category,
                _category_name(part.category),
                100 * part.points,
                (100 * part.interval[0], 100 * part.interval[1]),
                _points(part.regression_subtracted),
            )
            for part in measured.per_category
        ),
        _control(gathered, measured),
        rivals,
        _points(measured.regression_subtracted),
        _selection_words(gathered, measured),
        measured.verdict,
        _rate(gathered, 0, periods.before_since, periods.before_until),
        None
        if periods.start is None or periods.until is None
        else _rate(gathered, 1, periods.start, periods.until),
        _points(None if change is None else change.mix),
        _points(None if change is None else change.off_support),
        periods.neither_side,
        METHOD,
        periods.reason or measured.reason,
    )


def _points(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _span(interval: Interval | None) -> Interval | None:
    return None if interval is None else (100 * interval[0], 100 * interval[1])


def _category_name(category: str) -> str:
    return "Unattributed" if category == UNATTRIBUTED else BY_ID[category].name if category in BY_ID else category


def _control(gathered: _Gathered, measured: Closure) -> ControlAnswer | None:
    change = measured.control_change
    if change is None:
        return None
    units = sorted(map(str, gathered.controls))
    before, after = (sum(counts.n[side] for counts in gathered.controls.values()) for side in (0, 1))
    return ControlAnswer(
        gathered.control_kind,
        tuple(units),
        int(before),
        int(after),
        100 * change.value,
        (100 * change.low, 100 * change.high),
    )


def _selection_words(gathered: _Gathered, measured: Closure) -> str:
    """Which of the two was done about picking the worst, in words."""
    one = {"robots": "robot", "slices": "slice", "deployments": "deployment"}[gathered.control_kind]
    if measured.regression_subtracted is not None:
        return (
            f"It was the worst of {measured.peers} {gathered.control_kind} before, so the "
            f"{100 * measured.regression_subtracted:.1f} points that the worst is expected to regain by itself "
            "are subtracted."
        )
    if measured.peers:
        return f"It was not the worst {one} of {measured.peers} before: nothing is subtracted."
    return (
        f"There is no other {one} to tell what a poor stretch regains by itself: nothing is subtracted. If it was "
        "picked because it did badly, wait for fresh episodes."
    )


def _rate(gathered: _Gathered, side: int, since: datetime, until: datetime) -> PeriodRate:
    n = int(sum(counts.n[side] for counts in gathered.treated.values()))
    k = int(sum(counts.successes[side] for counts in gathered.treated.values()))
    return PeriodRate(since, until, n, k, k / n if n else None, wilson(k, n) if n else None)


def _stretch(index: int, fix: PlannedFix) -> tuple[int, int | None, datetime, datetime]:
    periods = fix.periods
    last = periods.start or periods.before_until
    return index, fix.mitigation.deployment_id, periods.before_until - RIVAL_DAYS, last + RIVAL_DAYS


def _rivals(
    fix: PlannedFix, versions: Sequence[VersionDays], near: Sequence[NearEvent], index: int
) -> tuple[Rival, ...]:
    """Other events near it, and versions that were new then; the release that brought the fix is none."""
    _, deployment_id, since, until = _stretch(index, fix)
    row, version, shipped = fix.mitigation, fix.mitigation.fix.get("from_version"), fix.periods.shipped_day
    rivals = [
        Rival(event.kind, event.at, event.title)
        for event in near
        if event.number == index
        and event.id != row.id
        and not (event.kind == "release" and shipped is not None and _brings(event, version, shipped))
    ]
    own = [one for one in versions if deployment_id is None or one.deployment_id == deployment_id]
    oldest: dict[int, datetime] = {}
    first: dict[tuple[str, str], VersionDays] = {}
    for one in own:
        oldest[one.deployment_id] = min(one.first_day, oldest.get(one.deployment_id, one.first_day))
        first.setdefault((one.policy, one.version), one)
    told = " ".join(rival.title for rival in rivals)
    for (policy, name), one in first.items():
        is_new = one.first_day > oldest[one.deployment_id] and since <= one.first_day <= until
        if is_new and name != version and name not in told:
            rivals.append(Rival("release", one.first_day, f"{policy} {name} first seen"))
    rivals.sort(key=lambda rival: rival.at)
    return tuple(rivals[:MOST_NAMED])


def _brings(event: NearEvent, version: str | None, shipped: datetime) -> bool:
    """Whether a release is the one that the fix came with: it names the version, or was told of on that day."""
    if version is not None and version in event.title:
        return True
    return shipped - DAY <= event.at < shipped + DAY
