"""Loading both sides of a comparison: the queries that the needs call for, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import compress
from typing import Literal, TypeVar

from gapwatch.answers.answer import Baseline, SimulatorCount, Span
from gapwatch.answers.baselines import Choice, choose, on_sim
from gapwatch.answers.comparison_side import (
    MOST_SESSIONS,
    ComparisonSide,
    SideData,
    Values,
    outcomes_of,
)
from gapwatch.answers.needs import Need, resolve
from gapwatch.answers.question import Question, history_window, settle_window, trend_tier, trend_window
from gapwatch.answers.sides import NO_EPISODES, SharedData, Sides
from gapwatch.answers.subjects import Subject
from gapwatch.answers.tallies import ALL_TIME, Tally, matching
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory
from gapwatch.store.read import sides as store
from gapwatch.store.read.range_measurements import NO_RANGES, RangesRead, measured_series, read_declared
from gapwatch.store.read.robot_contracts import robot_contracts
from gapwatch.store.read.shadow_episodes import NO_SHADOW, ShadowPlace, ShadowRead, read_shadow
from gapwatch.store.read.sides import (
    BucketCount,
    CellCount,
    CellFilter,
    ContractCount,
    EpisodeSelection,
    FailureCount,
    Kind,
    PairRow,
    PlaceCount,
    PlacedValue,
    SampledRows,
    Scope,
    SessionCount,
    Window,
    WindowEdges,
)

T = TypeVar("T")
# Of sim, of real, and of what was before; None where it was not needed.
Each = list[T | None]

# Of more failures, signals are those of a sample; what was said of them is known of all.
MOST_FAILED = {"real": 400, "sim": 250}
# Successes to hold them against; more would tell little more.
MOST_SUCCEEDED = {"real": 300, "sim": 300}
# With a filter, metrics and signals come from the newest episodes that match it.
MOST_SAMPLED = 2000
MOST_PAIRS = 5000
OUTCOMES: tuple[Literal["failure", "success"], ...] = ("failure", "success")
NO_SIMULATOR = Scope("sim", (), None, ())


def load_sides(
    connection: Connection, project_id: int, subject: Subject, question: Question, needs: Need
) -> Sides:
    """Read what the needs call for. Afterwards the connection is not touched again."""
    began = subject.began(question.now)
    before = subject.before_or_event(question.now) if question.is_against_before else None
    if before is not None and before.then is not None:
        began = replace(began, now=before.then, now_words=before.then_words)
    question = settle_window(question, began)
    return _Loader(connection, project_id, subject, question, resolve(needs, question)).load()


@dataclass(frozen=True)
class _Counted:
    """A side of which only the outcomes are known, and the counts that they were added up from."""

    side: ComparisonSide
    counts: Sequence[Tally]


@dataclass(frozen=True)
class _Days:
    """`sim` is None where nobody needs it; `hours` of real are those of a trend that goes by the hour."""

    real: Sequence[BucketCount]
    sim: Sequence[BucketCount] | None = None
    hours: Sequence[BucketCount] | None = None


class _Loader:
    def __init__(
        self, connection: Connection, project_id: int, subject: Subject, question: Question, needs: Need
    ) -> None:
        self._connection, self._project_id = connection, project_id
        self._subject, self._question, self._needs = subject, question, needs
        with_values = question.wanted.is_open and bool((Need.METRICS | Need.SIGNALS) & needs)
        self._edges = WindowEdges(connection, project_id, with_values=with_values)
        self._before = self._find_before()

    def load(self) -> Sides:
        counted, baseline = self._choose_baseline()
        sides = [one.side for one in counted]
        sessions, contracts, failure_counts = self._load_counts(sides)
        days = self._load_days(*sides[:2])
        parts = zip(
            [self._cells_of(one) for one in counted],
            sessions,
            self._load_places(counted),
            contracts,
            failure_counts,
            *self._load_episodes(sides, days),
            self._load_values(sides, Need.METRICS, "metric"),
            self._load_values(sides, Need.SIGNALS, "signal"),
            self._load_placed_values(sides),
            strict=True,
        )
        population = self._question.population
        sim, real, *before = (
            replace(side, data=SideData(*part), population=population)
            for side, part in zip(sides, parts, strict=True)
        )
        real = self._with_robot_contracts(real)
        shared = SharedData(
            None if days is None else days.real,
            self._load_trend(days),
            self._load_pairs(*sides[:2]),
            self._load_tasks(),
            self._load_shadow(),
            self._load_ranges(sides[0], sides[1], baseline),
        )
        return Sides(self._subject, self._question, sim, real, baseline, shared, before[0] if before else None)

    # What was before the present

    def _find_before(self) -> tuple[Scope, Window] | None:
        """Which real episodes were before, where they are asked for: all that is known of them if the present is
        held against them, else what they measured."""
        is_asked = self._question.is_against_before or Need.SIGNALS in self._needs
        if not is_asked or self._question.asked_window != "now":
            return None
        now = self._question.now
        is_held = self._question.is_against_before
        before = self._subject.before_or_event(now) if is_held else self._subject.before(now)
        if before is None:
            return None
        scope = self._subject.real_scope
        if before.is_earlier_version:
            others = tuple(
                policy_id
                for policy_id in self._subject.surroundings.versions
                if policy_id != self._subject.policy_id
            )
            scope = replace(scope, policy_ids=others)
        return (scope, Window(before.since, before.until)) if scope.policy_ids else None

    def _is_needed(self, side: ComparisonSide, need: Need) -> bool:
        if need not in self._needs:
            return False
        return not side.is_before or self._question.is_against_before or need == Need.SIGNALS

    # Outcomes and the baseline

    @property
    def _sim_window(self) -> Window:
        return self._question.window if self._question.sim_window is None else self._question.sim_window

    def _choose_baseline(self) -> tuple[list[_Counted], Baseline | None]:
        """Count sim, real and what was before, and choose the simulator: over all time, because the choice must
        not depend on the window that is looked at."""
        in_real, in_sim, in_sim_window, in_before = self._count_outcomes()
        real = _counted(self._subject.real_scope, self._question.window, self._question.wanted, in_real)
        others = [] if self._before is None else [_counted(*self._before, self._question.wanted, in_before)]
        others = [replace(one, side=replace(one.side, is_before=True)) for one in others]
        sizes: dict[int, int] = {}
        for count in in_sim:
            sizes[count.source_id] = sizes.get(count.source_id, 0) + count.successes + count.failures
        choice = choose(
            sizes,
            self._subject.surroundings.simulators,
            self._question.simulators,
            self._subject.pinned_simulator_id,
        )
        if choice is None:
            return [_counted(NO_SIMULATOR, ALL_TIME, self._question.wanted, ()), real, *others], None
        sim = self._count_baseline(choice, in_sim, in_sim_window)
        return [sim, real, *others], self._describe_baseline(choice, sizes, sim.side)

    def _count_outcomes(self) -> tuple[Sequence[Tally], Sequence[Tally], Sequence[Tally], Sequence[Tally]]:
        """Count real in the window, sim over all time, sim in the window, and what was before the present.

        By cell where cells are needed or filtered, except sim over all time, of which a window seldom needs cells.
        """
        connection, project_id = self._connection, self._project_id
        window, is_open = self._question.window, self._question.wanted.is_open
        sim_window = self._sim_window
        in_window = [(self._subject.real_scope, window), (self._subject.sim_scope, sim_window)]
        all_time = (self._subject.sim_scope, ALL_TIME)
        counts: Sequence[Sequence[Tally]]
        if sim_window == ALL_TIME:
            before = [] if self._before is None else [self._before]
            counts = (
                store.each_totals(connection, project_id, [*in_window, *before], self._edges)
                if is_open and Need.CELLS not in self._needs
                else store.each_cell_counts(connection, project_id, [*in_window, *before], self._edges)
            )
            return counts[0], counts[1], counts[1], counts[2] if before else ()
        if not is_open:
            counts = store.each_cell_counts(connection, project_id, [*in_window, all_time], self._edges)
            return counts[0], counts[2], counts[1], ()
        if Need.CELLS in self._needs:
            counts, totals = store.cell_counts_and_totals(connection, project_id, in_window, all_time, self._edges)
            return counts[0], totals, counts[1], ()
        counts = store.each_totals(connection, project_id, [*in_window, all_time], self._edges)
        return counts[0], counts[2], counts[1], ()

    def _count_baseline(self, choice: Choice, all_time: Sequence[Tally], in_window: Sequence[Tally]) -> _Counted:
        """Count the chosen simulator's episodes in the window, or all of them where the window has none."""
        scope = replace(self._subject.sim_scope, source_ids=(choice.simulator_id,))
        window, counts = self._sim_window, _of_source(in_window, choice.simulator_id)
        if not any(count.successes or count.failures for count in counts):
            window, counts = ALL_TIME, _of_source(all_time, choice.simulator_id)
            if Need.CELLS in self._needs and any(count.cell is None for count in counts):
                counts = store.cell_counts(self._connection, self._project_id, scope, window)
        wanted = on_sim(self._question.wanted, (count.cell for count in counts if count.cell is not None))
        return _counted(scope, window, wanted, counts)

    def _describe_baseline(self, choice: Choice, sizes: dict[int, int], sim: ComparisonSide) -> Baseline:
        simulators = self._subject.surroundings.simulators
        others = sorted((-n, simulator_id) for simulator_id, n in sizes.items() if n)
        return Baseline(
            *simulators[choice.simulator_id],
            choice.why,
            sim.n,
            None if sim.window == ALL_TIME else Span(sim.window.since, sim.window.until),
            tuple(
                SimulatorCount(*simulators[simulator_id], -minus_n)
                for minus_n, simulator_id in others
                if simulator_id != choice.simulator_id
            ),
        )

    def _cells_of(self, counted: _Counted) -> Sequence[CellCount] | None:
        if not self._is_needed(counted.side, Need.CELLS):
            return None
        return [count for count in matching(counted.counts, counted.side.filter) if isinstance(count, CellCount)]

    # Counts beside the outcomes

    def _load_counts(
        self, sides: Sequence[ComparisonSide]
    ) -> tuple[Each[Sequence[SessionCount]], Each[Sequence[ContractCount]], Each[Sequence[FailureCount]]]:
        """Load sessions, contracts and failures; unfiltered, and where all three are needed, in one query."""
        all_three = Need.SESSIONS | Need.CONTRACTS | Need.FAILURE_COUNTS
        if all_three in self._needs and self._question.wanted.is_open:
            return self._load_combined_counts(sides)
        return (
            self._load(Need.SESSIONS, sides, lambda side: side.n, self._read_sessions, []),
            self._load(Need.CONTRACTS, sides, lambda side: side.n_unfiltered, self._read_contracts, []),
            self._load(Need.FAILURE_COUNTS, sides, lambda side: side.failures, self._read_failure_counts, []),
        )

    def _load_combined_counts(
        self, sides: Sequence[ComparisonSide]
    ) -> tuple[Each[Sequence[SessionCount]], Each[Sequence[ContractCount]], Each[Sequence[FailureCount]]]:
        needed = [self._is_needed(side, Need.SESSIONS) for side in sides]
        asked = [has and side.n_unfiltered > 0 for side, has in zip(sides, needed, strict=True)]
        selections = [(side.scope, side.window) for side in compress(sides, asked)]
        counts = store.combined_counts(self._connection, self._project_id, selections, MOST_SESSIONS, self._edges)
        return (
            _spread(counts.sessions, needed, asked, []),
            _spread(counts.contracts, needed, asked, []),
            _spread(counts.failures, needed, asked, []),
        )

    def _read_sessions(self, sides: Sequence[ComparisonSide]) -> list[list[SessionCount]]:
        selections = [(side.scope, side.window, side.filter) for side in sides]
        return store.each_session_counts(
            self._connection, self._project_id, selections, MOST_SESSIONS, self._edges
        )

    def _load_places(self, counted: Sequence[_Counted]) -> Each[Sequence[PlaceCount]]:
        """Load real outcomes by robot and site: from the cells where those were read."""
        places: Each[Sequence[PlaceCount]] = []
        unread = []
        for one in counted:
            if not self._is_needed(one.side, Need.PLACES) or one.side.scope.domain == "sim":
                places.append(None)
            elif all(count.cell is not None for count in one.counts):
                places.append(_places_in(matching(one.counts, one.side.filter)))
            else:
                unread.append(len(places))
                places.append(None)
        selections = [(counted[at].side.scope, counted[at].side.window) for at in unread]
        if selections:
            read = store.each_place_counts(self._connection, self._project_id, selections, self._edges)
            for at, counts in zip(unread, read, strict=True):
                places[at] = counts
        return places

    def _read_contracts(self, sides: Sequence[ComparisonSide]) -> list[list[ContractCount]]:
        selections = [(side.scope, side.window) for side in sides]
        return store.each_contract_counts(self._connection, self._project_id, selections, self._edges)

    def _with_robot_contracts(self, real: ComparisonSide) -> ComparisonSide:
        """Say who ran under which contract where there are several. Counts know no robots, so those of a filter
        are counted from the same episodes."""
        contracts = real.data.contracts
        is_filtered = not real.filter.is_open
        if contracts is None or real.scope.source_ids is None or not (len(contracts) > 1 or is_filtered):
            return real
        if not any(count.body is not None for count in contracts):
            return real
        found = robot_contracts(self._connection, self._project_id, real.scope, real.window, real.filter)
        if is_filtered:
            bodies = {count.contract_id: count for count in contracts}
            episodes: dict[int, int] = {}
            for one in found:
                episodes[one.contract_id] = episodes.get(one.contract_id, 0) + one.episodes
            contracts = [
                replace(bodies[number], episodes=n)
                for number, n in sorted(episodes.items(), key=lambda item: -item[1])
                if number in bodies
            ]
        return replace(real, data=replace(real.data, contracts=contracts, robot_contracts=found))

    def _read_failure_counts(self, sides: Sequence[ComparisonSide]) -> list[list[FailureCount]]:
        selections = [(side.scope, side.window) for side in sides]
        counts = store.each_failure_counts(self._connection, self._project_id, selections, self._edges)
        return [
            [count for count in failures if side.filter.matches(count.cell)]
            for side, failures in zip(sides, counts, strict=True)
        ]

    def _load_shadow(self) -> ShadowRead | None:
        if Need.SHADOW not in self._needs:
            return None
        subject = self._subject
        if subject.deployment_id is None or not subject.surroundings.has_shadow:
            return NO_SHADOW
        # The regime and the version are those of what the candidate drove, which follows its shadow.
        window = ALL_TIME if self._question.asked_window is not None else self._question.window
        return read_shadow(
            self._connection,
            self._project_id,
            ShadowPlace(subject.deployment_id, subject.policy_id, subject.task_ids),
            window,
            self._question.wanted,
        )

    def _load_ranges(
        self, sim: ComparisonSide, real: ComparisonSide, baseline: Baseline | None
    ) -> RangesRead | None:
        """Load ranges and identifications, and single values only where a parameter is mapped to some."""
        if Need.RANGES not in self._needs:
            return None
        subject = self._subject
        if subject.deployment_id is None or subject.deployment is None or not subject.surroundings.has_ranges:
            return NO_RANGES
        simulator = None if baseline is None else (baseline.simulator, baseline.version)
        place = (subject.deployment_id, subject.deployment)
        read = read_declared(self._connection, self._project_id, place, simulator)
        names = [
            (kind, str(one[kind])) for one in read.parameters for kind in ("signal", "condition") if one.get(kind)
        ]
        # A site's friction does not depend on the version that runs there.
        everything = replace(real.scope, policy_ids=tuple(subject.surroundings.versions))
        asked = [(everything, real.window, real.filter)]
        if sim.n_unfiltered:
            asked.append((sim.scope, ALL_TIME, CellFilter()))
        measured = measured_series(self._connection, self._project_id, asked, names)
        return replace(read, measured=tuple(measured))

    # Over time

    def _load_days(self, sim: ComparisonSide, real: ComparisonSide) -> _Days | None:
        """Load the real days of all versions, because a release explains much.

        Sim's days come with them where failed episodes are sampled by day, and the hours of a trend.
        """
        if Need.DAYS not in self._needs:
            return None
        if not real.filter.is_open:
            return _Days(self._read_filtered_buckets("day", history_window(self._question)))
        scope = self._subject.all_versions_scope
        selections = [(scope, history_window(self._question))]
        with_sim = Need.FAILED_EPISODES in self._needs and sim.n > 0
        if with_sim:
            selections.append((sim.scope, sim.window))
        by_hour = Need.TREND in self._needs and trend_tier(self._question) == "hour"
        hours = (scope, trend_window(self._question)) if by_hour else None
        counts = store.each_day_counts(self._connection, self._project_id, selections, hours)
        return _Days(counts[0], counts[1] if with_sim else None, counts[-1] if by_hour else None)

    def _load_trend(self, days: _Days | None) -> Sequence[BucketCount] | None:
        if Need.TREND not in self._needs:
            return None
        tier, window = trend_tier(self._question), trend_window(self._question)
        if tier == "day" and days is not None:
            return days.real
        if days is not None and days.hours is not None:
            return days.hours
        if not self._question.wanted.is_open:
            return self._read_filtered_buckets(tier, window)
        scope = self._subject.all_versions_scope
        return store.bucket_counts(self._connection, self._project_id, scope, window, tier)

    def _read_filtered_buckets(self, tier: store.Tier, window: Window) -> list[BucketCount]:
        scope, wanted = self._subject.all_versions_scope, self._question.wanted
        buckets = store.bucket_counts(self._connection, self._project_id, scope, window, tier, by_cell=True)
        return [bucket for bucket in buckets if bucket.cell is not None and wanted.matches(bucket.cell)]

    # Single episodes and values

    def _load_episodes(self, sides: Sequence[ComparisonSide], days: _Days | None) -> list[Each[SampledRows]]:
        """Load single failures of each side, and successes, in one query."""

        def by_day(side: ComparisonSide) -> Sequence[BucketCount] | None:
            if days is None:
                return None
            if side.scope.domain == "sim":
                return days.sim
            # Without all history the days before the present are not among those that were read.
            is_read = not side.is_before or self._question.is_history_whole
            return _within(days.real, side.window) if is_read else None

        needed = [self._is_needed(side, Need.FAILED_EPISODES) for side in sides]
        selections = [
            _selection(side, by_day(side), outcome) if is_needed else None
            for outcome in OUTCOMES
            for side, is_needed in zip(sides, needed, strict=True)
        ]
        asked = [one for one in selections if one is not None and one.total]
        read = iter(store.each_sampled_episodes(self._connection, self._project_id, asked) if asked else [])
        rows = [None if one is None else next(read) if one.total else NO_EPISODES for one in selections]
        return [rows[: len(sides)], rows[len(sides) :]]

    def _load_values(self, sides: Sequence[ComparisonSide], need: Need, kind: Kind) -> Each[Values]:
        """Load values from the rollups; with a filter from the newest episodes that match it."""

        def read(asked: Sequence[ComparisonSide]) -> list[Values]:
            unfiltered = [side for side in asked if side.filter.is_open]
            selections = [(side.scope, side.window) for side in unfiltered]
            rollups = iter(
                store.each_value_rollups(self._connection, self._project_id, selections, kind, self._edges)
                if selections
                else []
            )
            return [next(rollups) if side.filter.is_open else self._sample_values(side, kind) for side in asked]

        return self._load(need, sides, lambda side: side.n, read, {})

    def _load_placed_values(self, sides: Sequence[ComparisonSide]) -> Each[Sequence[PlacedValue]]:
        def read(asked: Sequence[ComparisonSide]) -> list[list[PlacedValue]]:
            selections = [(side.scope, side.window, side.filter) for side in asked]
            metric = self._question.metric
            return store.each_placed_values(self._connection, self._project_id, selections, metric, MOST_SAMPLED)

        return self._load(Need.PLACED_VALUES, sides, lambda side: side.n, read, [])

    def _sample_values(self, side: ComparisonSide, kind: Kind) -> Values:
        return store.sampled_values(
            self._connection, self._project_id, side.scope, side.window, kind, side.filter, MOST_SAMPLED
        )

    def _load_pairs(self, sim: ComparisonSide, real: ComparisonSide) -> Sequence[PairRow] | None:
        if Need.PAIRS not in self._needs:
            return None
        if not sim.n or not real.n:
            return []
        return store.paired_episodes(
            self._connection,
            self._project_id,
            real.scope,
            sim.scope,
            self._question.window,
            self._question.wanted,
            MOST_PAIRS,
        )

    def _load_tasks(self) -> dict[int, str] | None:
        if Need.TASKS not in self._needs or self._subject.task_ids is not None:
            return None
        return directory.tasks(self._connection, self._project_id)

    def _load(
        self,
        need: Need,
        sides: Sequence[ComparisonSide],
        has: Callable[[ComparisonSide], int],
        read: Callable[[Sequence[ComparisonSide]], Sequence[T]],
        nothing: T,
    ) -> Each[T]:
        """Read all sides in one query, where they are needed; a side that has none of it is not asked for."""
        needed = [self._is_needed(side, need) for side in sides]
        asked = [is_needed and has(side) > 0 for side, is_needed in zip(sides, needed, strict=True)]
        return _spread(read(list(compress(sides, asked))) if any(asked) else [], needed, asked, nothing)


def _counted(scope: Scope, window: Window, wanted: CellFilter, counts: Sequence[Tally]) -> _Counted:
    everything = outcomes_of(counts)
    outcomes = everything if wanted.is_open else outcomes_of(matching(counts, wanted))
    return _Counted(ComparisonSide(scope, window, wanted, outcomes, everything.n), counts)


def _places_in(counts: Sequence[Tally]) -> list[PlaceCount]:
    return [
        PlaceCount(count.cell.robot, count.cell.site, count.successes, count.failures)
        for count in counts
        if count.cell is not None
    ]


def _of_source(counts: Sequence[Tally], source_id: int) -> Sequence[Tally]:
    return [count for count in counts if count.source_id == source_id]


def _selection(
    side: ComparisonSide, days: Sequence[BucketCount] | None, outcome: Literal["failure", "success"]
) -> EpisodeSelection:
    by_day = None
    if days is not None and side.filter.is_open:
        own = (day for day in days if day.policy_id in side.scope.policy_ids)
        by_day = store.outcomes_by_day(own, outcome)
    most = (MOST_FAILED if outcome == "failure" else MOST_SUCCEEDED)[side.scope.domain]
    total = side.failures if outcome == "failure" else side.successes
    return EpisodeSelection(side.scope, side.window, side.filter, most, total, by_day, outcome)


def _spread(values: Sequence[T], needed: Sequence[bool], asked: Sequence[bool], nothing: T) -> Each[T]:
    """Return the values of each side, where only some were asked for."""
    of_asked = iter(values)
    return [
        next(of_asked) if was_asked else nothing if is_needed else None
        for is_needed, was_asked in zip(needed, asked, strict=True)
    ]


def _within(days: Sequence[BucketCount], window: Window) -> Sequence[BucketCount]:
    """Keep the days that reach into a window."""
    since, until = window.since, window.until
    return [
        day
        for day in days
        if (since is None or day.bucket_at > since - timedelta(days=1))
        and (until is None or day.bucket_at < until)
    ]
