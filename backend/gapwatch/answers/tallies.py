"""Counts of many sources at once: totals where everything is asked, else exact to window and cell."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.store import sides
from gapwatch.store.database import Connection
from gapwatch.store.fleet import Total, totals
from gapwatch.store.sides import CellCount, CellFilter, Scope, Window

ALL_TIME = Window(None, None)
Tally = Total | CellCount


def tallies(
    connection: Connection, project_id: int, scope: Scope, window: Window, wanted: CellFilter
) -> Sequence[Tally]:
    """Totals are few rows; they know no cells, and a window may begin within a month."""
    if window == ALL_TIME and wanted.is_open:
        return totals(connection, project_id, scope)
    return sides.cell_counts(connection, project_id, scope, window)


def matching(counts: Sequence[Tally], wanted: CellFilter) -> list[Tally]:
    return [count for count in counts if count.cell is None or wanted.matches(count.cell)]
