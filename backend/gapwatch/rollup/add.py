"""Episodes into the stored rollups."""

from __future__ import annotations

from typing import Any

from gapwatch.rollup.pooling import pool_new, pool_stored
from gapwatch.store.core.database import Connection
from gapwatch.store.fold import cells, rollups
from gapwatch.tally.aggregate import Episodes
from gapwatch.tally.sums import Measured
from gapwatch.tally.tiers import count_rows, value_rows
from gapwatch.tally.values import NamedValues, add_values, pack_values, unpack_values

# Rows of moments and sketches that are in memory together.
VALUES_AT_ONCE = 1000


def add_episodes(connection: Connection, project_id: int, episodes: Episodes) -> None:
    """Every table in one fixed order. The project is locked by the caller."""
    sums = episodes.counted()
    pool_new(connection, project_id, sums)
    tables = count_rows(sums)
    numbers = cells.intern_cells(connection, project_id, {key[6] for key in tables["rollup_cells"]})
    said = cells.intern_signatures(connection, project_id, {key[7] for key in tables["rollup_failures"]})

    def add(table: str) -> rollups.Added:
        found = tables[table].items()
        if table == "rollup_cells":
            rows = [(*key[:6], numbers[key[6]], *counts) for key, counts in found]
        elif table == "rollup_failures":
            rows = [(*key[:6], numbers[key[6]], said[key[7]], *counts) for key, counts in found]
        else:
            rows = [(*key, *counts) for key, counts in found]
        return rollups.add_counts(connection, project_id, table, rows)

    with rollups.without_waiting(connection):
        counts, in_cells = add("rollup_counts"), add("rollup_cells")
        rollups.hand_over(connection)
        # Postgres adds the cells while we are measuring; what is sent now would only wait at its door.
        values = episodes.measured()
        rest = [
            add(table) for table in ("rollup_places", "rollup_failures", "rollup_sessions", "rollup_contracts")
        ]
        _add_values(connection, project_id, values)
        new_cells = in_cells.settle()
        for each in (counts, *rest):
            each.settle()
    for policy_id, task_id in sorted(new_cells):
        pool_stored(connection, project_id, policy_id, task_id)


def _add_values(connection: Connection, project_id: int, values: Measured) -> None:
    rows: dict[tuple[Any, ...], NamedValues] = {}
    for more in value_rows(values):
        rows |= more
        if len(rows) >= VALUES_AT_ONCE:
            _add_value_rows(connection, project_id, rows)
            rows = {}
    _add_value_rows(connection, project_id, rows)


def _add_value_rows(connection: Connection, project_id: int, rows: dict[tuple[Any, ...], NamedValues]) -> None:
    stored = rollups.stored_values(connection, project_id, list(rows))
    written, emptied = [], []
    for key, values in rows.items():
        if key in stored:
            add_values(values, unpack_values(stored[key]))
        body = pack_values(values)
        if body is None:
            emptied.append(key)
        else:
            written.append((*key, body))
    rollups.put_values(connection, project_id, written)
    rollups.drop_values(connection, project_id, [key for key in emptied if key in stored])
