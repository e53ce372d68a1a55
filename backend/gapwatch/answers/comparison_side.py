"""The two sides of a comparison: their cells at once, everything else when an answer first needs it.

What one side needs the other does too, so both are read in one query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeVar
from weakref import ref

from gapwatch.answers.cell_table import CellTable
from gapwatch.answers.session_effects import Sitting, with_sessions
from gapwatch.statistics.estimates import drops
from gapwatch.store.core.database import Connection
from gapwatch.store.read import sides
from gapwatch.store.read.sides import (
    CellCount,
    CellFilter,
    ContractCount,
    FailedRows,
    FailedSelection,
    FailureCount,
    Scope,
    SessionCount,
    Total,
    ValueRollup,
    Window,
)

T = TypeVar("T")
Values = Mapping[str, Mapping[Literal["success", "failure"], ValueRollup]]

# Of more failures, signals are those of a sample; what was said of them is known of all.
MOST_FAILED = {"real": 1000, "sim": 500}
MOST_SESSIONS = 2000
# With a filter, metrics and signals come from the newest episodes that match it.
MOST_SAMPLED = 2000
NO_FAILURES = FailedRows((), (), {}, {})


def by_source(counts: Iterable[CellCount | Total]) -> dict[int, Sequence[int]]:
    """The outcomes of each deployment or simulator."""
    found: dict[int, list[CellCount | Total]] = {}
    for count in counts:
        found.setdefault(count.source_id, []).append(count)
    return {source: totals_of(mine) for source, mine in found.items()}


def totals_of(cells: Iterable[CellCount | Total]) -> tuple[int, int, int, int]:
    """Successes, failures, aborted, abandoned."""
    counts = [(c.successes, c.failures, c.aborted, c.abandoned) for c in cells]
    successes, failures, aborted, abandoned = map(sum, zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
    return successes, failures, aborted, abandoned


class Half:
    """One side. `count` gives the cells of the scope in the window, before the filter; `totals` their outcomes
    where there is no filter, so that what asks for no more reads no cells.
    """

    def __init__(
        self,
        scope: Scope,
        window: Window,
        wanted: CellFilter,
        count: Callable[[], Iterable[CellCount]],
        totals: Sequence[int] | None,
    ) -> None:
        self.scope, self.window, self.wanted = scope, window, wanted
        self._count, self._given = count, totals
        self._read: Callable[[], Reading | None] = lambda: None

    @property
    def read(self) -> Reading:
        found = self._read()
        assert found is not None  # noqa: S101 - whoever has a side has its comparison
        return found

    def read_by(self, reading: Reading) -> None:
        """Without holding it: a side and its reading in a circle would wait for the garbage collector, with
        thousands of rows, and a page for it."""
        self._read = ref(reading)

    @cached_property
    def _everything(self) -> list[CellCount]:
        return list(self._count())

    @cached_property
    def cells(self) -> list[CellCount]:
        if self.wanted.is_open:
            return self._everything
        return [c for c in self._everything if self.wanted.matches(c.cell)]

    @cached_property
    def _totals(self) -> Sequence[int]:
        return totals_of(self.cells) if self._given is None else self._given

    @cached_property
    def n_unfiltered(self) -> int:
        found = totals_of(self._everything) if self._given is None else self._given
        return found[0] + found[1]

    @property
    def successes(self) -> int:
        return self._totals[0]

    @property
    def failures(self) -> int:
        return self._totals[1]

    @property
    def aborted(self) -> int:
        return self._totals[2]

    @property
    def abandoned(self) -> int:
        return self._totals[3]

    @property
    def n(self) -> int:
        """The attempts that succeeded or failed; aborted and abandoned ones are in no rate."""
        return self.successes + self.failures

    @property
    def is_sampled(self) -> bool:
        """Metrics and signals are those of the newest matching episodes, not of all."""
        return not self.wanted.is_open

    @property
    def sessions(self) -> Sequence[SessionCount]:
        return self.read.sessions.get(self, ())

    @cached_property
    def sitting(self) -> Sitting:
        # A session of two days takes two of the rows that are read, so a full answer may hold fewer sessions.
        complete = len(self.sessions) < MOST_SESSIONS / 2
        counts = [(s.successes, s.successes + s.failures) for s in self.sessions]
        return with_sessions(self.successes, self.n, counts, complete=complete)

    @property
    def side(self) -> drops.Side:
        return self.sitting.side

    @property
    def contracts(self) -> Sequence[ContractCount]:
        return self.read.contracts.get(self, ())

    @property
    def failed(self) -> FailedRows:
        return self.read.failed.get(self, NO_FAILURES)

    @cached_property
    def failure_counts(self) -> Sequence[FailureCount]:
        return [c for c in self.read.failure_counts.get(self, ()) if self.wanted.matches(c.cell)]

    @property
    def metrics(self) -> Values:
        return self.read.metrics.get(self, {})

    @property
    def signals(self) -> Values:
        return self.read.signals.get(self, {})


@dataclass(frozen=True)
class PagePart:
    """What a whole page reads of a side at once."""

    failures: list[FailureCount]
    contracts: list[ContractCount]
    sessions: list[SessionCount]


class Reading:
    """What both sides hold beside their cells, each kind read once; a side that has none of it is not asked."""

    def __init__(
        self,
        connection: Connection,
        project_id: int,
        halves: tuple[Half, Half],
        by_day: Callable[[Half], Mapping[datetime, int]] | None = None,
    ) -> None:
        """`by_day`, for a whole page: the failures of each day, which it has read already."""
        self._connection, self._project_id = connection, project_id
        self.halves, self._by_day = halves, by_day
        for half in halves:
            half.read_by(self)

    @cached_property
    def _page(self) -> dict[Half, PagePart] | None:
        """Three kinds in one query, where all of them will be needed."""
        asked = [half for half in self.halves if half.n_unfiltered]
        if self._by_day is None or not asked:
            return None
        found = sides.combined_counts(
            self._connection,
            self._project_id,
            [(h.scope, h.window) for h in asked],
            MOST_SESSIONS,
            sides.WindowEdges(self._connection, self._project_id),
        )
        parts = zip(found.failures, found.contracts, found.sessions, strict=True)
        return {half: PagePart(*part) for half, part in zip(asked, parts, strict=True)}

    @cached_property
    def table(self) -> CellTable:
        sim, real = self.halves
        return CellTable(sim.cells, real.cells)

    @cached_property
    def sessions(self) -> dict[Half, list[SessionCount]]:
        if self._page is not None:
            return {half: part.sessions for half, part in self._page.items()}
        return self._of(
            lambda half: half.n,
            lambda halves: sides.each_session_counts(
                self._connection, self._project_id, [(h.scope, h.window, h.wanted) for h in halves], MOST_SESSIONS
            ),
        )

    @cached_property
    def contracts(self) -> dict[Half, list[ContractCount]]:
        if self._page is not None:
            return {half: part.contracts for half, part in self._page.items()}
        return self._of(
            lambda half: half.n_unfiltered,
            lambda halves: sides.each_contract_counts(
                self._connection, self._project_id, [(h.scope, h.window) for h in halves]
            ),
        )

    @cached_property
    def failed(self) -> dict[Half, FailedRows]:
        return self._of(
            lambda half: half.failures,
            lambda halves: sides.each_failed_episodes(
                self._connection,
                self._project_id,
                [
                    FailedSelection(
                        h.scope,
                        h.window,
                        h.wanted,
                        MOST_FAILED[h.scope.domain],
                        h.failures,
                        None if self._by_day is None else self._by_day(h),
                    )
                    for h in halves
                ],
            ),
        )

    @cached_property
    def failure_counts(self) -> dict[Half, list[FailureCount]]:
        if self._page is not None:
            return {half: part.failures for half, part in self._page.items()}
        return self._of(
            lambda half: half.failures,
            lambda halves: sides.each_failure_counts(
                self._connection, self._project_id, [(h.scope, h.window) for h in halves]
            ),
        )

    @cached_property
    def metrics(self) -> dict[Half, Values]:
        return self._values("metric")

    @cached_property
    def signals(self) -> dict[Half, Values]:
        return self._values("signal")

    def _values(self, kind: Literal["metric", "signal"]) -> dict[Half, Values]:
        """From the rollups; with a filter from the newest episodes that match it."""
        found: dict[Half, Values] = self._of(
            lambda half: half.n if half.wanted.is_open else 0,
            lambda halves: sides.each_value_rollups(
                self._connection, self._project_id, [(h.scope, h.window) for h in halves], kind
            ),
        )
        for half in self.halves:
            if half.n and not half.wanted.is_open:
                found[half] = sides.sampled_values(
                    self._connection, self._project_id, half.scope, half.window, kind, half.wanted, MOST_SAMPLED
                )
        return found

    def _of(self, has: Callable[[Half], int], read: Callable[[Sequence[Half]], Sequence[T]]) -> dict[Half, T]:
        asked = [half for half in self.halves if has(half)]
        return dict(zip(asked, read(asked), strict=True)) if asked else {}
