"""One side of a comparison: which episodes it holds, how they ended, and what was loaded of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from gapwatch.answers.needs import Need, loaded
from gapwatch.answers.populations import (
    NO_PLACES,
    ClusterEffect,
    PlacesTried,
    Population,
    crowding_of,
    describe_population,
    places_of,
    with_population,
    with_sessions,
)
from gapwatch.answers.tallies import Tally
from gapwatch.filters import PopulationName
from gapwatch.statistics.causes.slices import Crowding
from gapwatch.statistics.estimates import drops
from gapwatch.store.read.robot_contracts import RobotContract
from gapwatch.store.read.sides import (
    CellCount,
    CellFilter,
    ContractCount,
    Domain,
    FailureCount,
    PlaceCount,
    PlacedValue,
    SampledRows,
    Scope,
    SessionCount,
    ValueRollup,
    Window,
)

Values = Mapping[str, Mapping[Literal["success", "failure"], ValueRollup]]

MOST_SESSIONS = 2000


class Outcomes(NamedTuple):
    successes: int = 0
    failures: int = 0
    aborted: int = 0
    abandoned: int = 0

    @property
    def n(self) -> int:
        """The attempts that succeeded or failed; aborted and abandoned ones are in no rate."""
        return self.successes + self.failures


def outcomes_of(counts: Iterable[Tally]) -> Outcomes:
    columns = [(count.successes, count.failures, count.aborted, count.abandoned) for count in counts]
    return Outcomes(*map(sum, zip(*columns, strict=True)))


@dataclass(frozen=True)
class SideData:
    """What was loaded of a side; None where no need called for it."""

    cells: Sequence[CellCount] | None = None
    sessions: Sequence[SessionCount] | None = None
    places: Sequence[PlaceCount] | None = None
    contracts: Sequence[ContractCount] | None = None
    failure_counts: Sequence[FailureCount] | None = None
    failed: SampledRows | None = None
    succeeded: SampledRows | None = None
    metrics: Values | None = None
    signals: Values | None = None
    placed_values: Sequence[PlacedValue] | None = None
    # Of real, where there are several contracts or a filter: who ran under which, by the newest episodes.
    robot_contracts: Sequence[RobotContract] | None = None


@dataclass(frozen=True)
class ComparisonSide:
    """`outcomes` are those that match the filter; `n_unfiltered` are the attempts before it."""

    scope: Scope
    window: Window
    filter: CellFilter
    outcomes: Outcomes
    n_unfiltered: int
    data: SideData = SideData()
    # Real episodes from before the present, which stand where sim does when the present is held against them.
    is_before: bool = False
    # Whom its interval in a drop speaks for.
    population: PopulationName = "these"

    @property
    def role(self) -> Domain:
        """Which of the two sides it is in a comparison."""
        return "sim" if self.is_before else self.scope.domain

    @property
    def successes(self) -> int:
        return self.outcomes.successes

    @property
    def failures(self) -> int:
        return self.outcomes.failures

    @property
    def aborted(self) -> int:
        return self.outcomes.aborted

    @property
    def abandoned(self) -> int:
        return self.outcomes.abandoned

    @property
    def n(self) -> int:
        return self.outcomes.n

    @property
    def is_sampled(self) -> bool:
        """Whether metrics and signals are those of the newest matching episodes, not of all."""
        return not self.filter.is_open

    @property
    def cells(self) -> Sequence[CellCount]:
        return loaded(self.data.cells, Need.CELLS)

    @property
    def sessions(self) -> Sequence[SessionCount]:
        return loaded(self.data.sessions, Need.SESSIONS)

    @cached_property
    def places(self) -> PlacesTried:
        """Of a real side. Simulated robots and sites are set up, not drawn: sim differs by session only."""
        return NO_PLACES if self.scope.domain == "sim" else places_of(loaded(self.data.places, Need.PLACES))

    @cached_property
    def session_counts(self) -> list[tuple[int, int]]:
        return [(s.successes, s.successes + s.failures) for s in self.sessions]

    @property
    def _has_all_sessions(self) -> bool:
        # A session of two days takes two of the rows that are read, so a full answer may hold fewer sessions.
        return len(self.sessions) < MOST_SESSIONS / 2

    @cached_property
    def session_effect(self) -> ClusterEffect:
        """What sessions alone make of it."""
        return with_sessions(self.successes, self.n, self.session_counts, complete=self._has_all_sessions)

    @cached_property
    def cluster_effect(self) -> ClusterEffect:
        """What its clusters make of it, for the population that was asked for."""
        if self.population == "these":
            return self.session_effect
        counts, complete = self.session_counts, self._has_all_sessions
        return with_population(self.population, self.successes, self.n, counts, self.places, complete=complete)

    def speaking_for(self, population: PopulationName) -> ComparisonSide:
        return self if population == self.population else replace(self, population=population)

    def describe(self, population: PopulationName) -> Population:
        return describe_population(population, self.places, len(self.session_counts))

    @cached_property
    def crowding(self) -> Crowding | None:
        """What its clusters say about any part of it."""
        side = self.drop_side
        if not side.clustered and self.session_counts:
            # Too many to be listed with all attempts: those that are known stand for all.
            known = self.session_counts
            side = drops.Side(sum(k for k, _ in known), sum(n for _, n in known), known)
        return crowding_of(side)

    @property
    def drop_side(self) -> drops.Side:
        return self.cluster_effect.side

    @property
    def contracts(self) -> Sequence[ContractCount]:
        return loaded(self.data.contracts, Need.CONTRACTS)

    @property
    def failure_counts(self) -> Sequence[FailureCount]:
        return loaded(self.data.failure_counts, Need.FAILURE_COUNTS)

    @property
    def failed(self) -> SampledRows:
        return loaded(self.data.failed, Need.FAILED_EPISODES)

    @property
    def succeeded(self) -> SampledRows:
        """Some of the successes, to hold failures against."""
        return loaded(self.data.succeeded, Need.FAILED_EPISODES)

    @property
    def metrics(self) -> Values:
        return loaded(self.data.metrics, Need.METRICS)

    @property
    def placed_values(self) -> Sequence[PlacedValue]:
        """The metric in question of the newest episodes."""
        return loaded(self.data.placed_values, Need.PLACED_VALUES)

    @property
    def signals(self) -> Values:
        return loaded(self.data.signals, Need.SIGNALS)
