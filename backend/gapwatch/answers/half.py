"""One side of a comparison: its cells at once, everything else when an answer first needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Literal

from gapwatch.answers.sittings import Sitting, with_sessions
from gapwatch.statistics import drops
from gapwatch.store import sides
from gapwatch.store.database import Connection
from gapwatch.store.sides import (
    CellCount,
    CellFilter,
    ContractCount,
    FailedRow,
    FailureCount,
    Scope,
    SessionCount,
    ValueRollup,
    Window,
)

Values = Mapping[str, Mapping[Literal["success", "failure"], ValueRollup]]

# Of more failures, signals are those of a sample; what was said of them is known of all.
MOST_FAILED = {"real": 1000, "sim": 500}
MOST_SESSIONS = 2000
# With a filter, metrics and signals come from the newest episodes that match it.
MOST_SAMPLED = 2000


class Half:
    """`counted` are the cells of the scope in the window, before the filter."""

    def __init__(
        self,
        connection: Connection,
        project_id: int,
        scope: Scope,
        window: Window,
        wanted: CellFilter,
        counted: Iterable[CellCount],
    ) -> None:
        self._connection = connection
        self._project_id = project_id
        self.scope, self.window, self.wanted = scope, window, wanted
        everything = list(counted)
        self.n_unfiltered = sum(c.successes + c.failures for c in everything)
        self.cells = [c for c in everything if wanted.matches(c.cell)]
        self.successes = sum(c.successes for c in self.cells)
        self.failures = sum(c.failures for c in self.cells)
        self.aborted = sum(c.aborted for c in self.cells)
        self.abandoned = sum(c.abandoned for c in self.cells)

    @property
    def n(self) -> int:
        """The attempts that succeeded or failed; aborted and abandoned ones are in no rate."""
        return self.successes + self.failures

    @property
    def is_sampled(self) -> bool:
        """Metrics and signals are those of the newest matching episodes, not of all."""
        return not self.wanted.is_open

    @cached_property
    def sessions(self) -> list[SessionCount]:
        if not self.n:
            return []
        wanted = None if self.wanted.is_open else self.wanted
        return sides.session_counts(
            self._connection, self._project_id, self.scope, self.window, wanted, MOST_SESSIONS
        )

    @cached_property
    def sitting(self) -> Sitting:
        # A session of two days takes two of the rows that are read, so a full answer may hold fewer sessions.
        complete = len(self.sessions) < MOST_SESSIONS / 2
        counts = [(s.successes, s.successes + s.failures) for s in self.sessions]
        return with_sessions(self.successes, self.n, counts, complete=complete)

    @property
    def side(self) -> drops.Side:
        return self.sitting.side

    @cached_property
    def contracts(self) -> list[ContractCount]:
        if not self.n_unfiltered:
            return []
        return sides.contract_counts(self._connection, self._project_id, self.scope, self.window)

    @cached_property
    def failed(self) -> list[FailedRow]:
        if not self.failures:
            return []
        return sides.failed_episodes(
            self._connection,
            self._project_id,
            self.scope,
            self.window,
            self.wanted,
            MOST_FAILED[self.scope.domain],
        )

    @cached_property
    def failure_counts(self) -> list[FailureCount]:
        if not self.failures:
            return []
        found = sides.failure_counts(self._connection, self._project_id, self.scope, self.window)
        return [count for count in found if self.wanted.matches(count.cell)]

    @cached_property
    def metrics(self) -> Values:
        return self._values("metric")

    @cached_property
    def signals(self) -> Values:
        return self._values("signal")

    def _values(self, kind: Literal["metric", "signal"]) -> Values:
        if not self.n:
            return {}
        if self.wanted.is_open:
            return sides.value_rollups(self._connection, self._project_id, self.scope, self.window, kind)
        return sides.sampled_values(
            self._connection, self._project_id, self.scope, self.window, kind, self.wanted, MOST_SAMPLED
        )
