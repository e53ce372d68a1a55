"""Counts of many sources at once: totals where nothing is filtered, else by cell."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.store.core.database import Connection
from gapwatch.store.read import sides
from gapwatch.store.read.sides import (
    CellCount,
    CellFilter,
    Scope,
    Total,
    Window,
)

ALL_TIME = Window(None, None)
Tally = Total | CellCount


def tallies(
    connection: Connection, project_id: int, scope: Scope, window: Window, wanted: CellFilter
) -> Sequence[Tally]:
    """Totals are few rows; they know no cells."""
    if wanted.is_open:
        return sides.each_totals(connection, project_id, [(scope, window)])[0]
    return sides.cell_counts(connection, project_id, scope, window)


def matching(counts: Sequence[Tally], wanted: CellFilter) -> Sequence[Tally]:
    if wanted.is_open:
        return counts
    return [count for count in counts if count.cell is None or wanted.matches(count.cell)]
