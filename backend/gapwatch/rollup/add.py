"""Sums into the stored rollups, and pooling a condition whose levels make too many cells."""

from __future__ import annotations

from typing import Any

from gapwatch.store import cells, rollups
from gapwatch.store.database import Connection
from gapwatch.tally.sums import Sums
from gapwatch.tally.tiers import count_rows, value_rows
from gapwatch.tally.values import NamedValues, add_values, pack_values, unpack_values

# A condition with more levels than this tells episodes apart instead of describing them; and a policy version with
# more cells in one task than this would be answered from as many rows as it has episodes.
MOST_LEVELS = 50
MOST_CELLS = 2000
# Rows of moments and sketches that are in memory together.
VALUES_AT_ONCE = 1000


def add_sums(connection: Connection, project_id: int, sums: Sums) -> None:
    """Every table in one fixed order. The project is locked by the caller."""
    tables = count_rows(sums)
    numbers = cells.intern_cells(connection, project_id, {key[6] for key in tables["rollup_cells"]})
    said = cells.intern_signatures(connection, project_id, {key[7] for key in tables["rollup_failures"]})
    new_cells: set[tuple[int, int]] = set()
    for table, found in tables.items():
        rows: list[tuple[Any, ...]] = []
        for key, counts in found.items():
            if table == "rollup_cells":
                rows.append((*key[:6], numbers[key[6]], *counts))
            elif table == "rollup_failures":
                rows.append((*key[:6], numbers[key[6]], said[key[7]], *counts))
            else:
                rows.append((*key, *counts))
        fresh = rollups.add_counts(connection, project_id, table, rows)
        if table == "rollup_cells":
            new_cells = fresh
    _add_values(connection, project_id, sums)
    for policy_id, task_id in sorted(new_cells):
        pool_conditions(connection, project_id, policy_id, task_id)


def pool_conditions(connection: Connection, project_id: int, policy_id: int, task_id: int) -> None:
    """Leave out of the cells what has too many levels; then, while there are too many cells, what has most."""
    while True:
        total, levels = cells.condition_levels(connection, project_id, policy_id, task_id)
        most = max(levels, key=lambda name: (levels[name], name), default=None)
        if most is None or (levels[most] <= MOST_LEVELS and total <= MOST_CELLS):
            return
        cells.pool_condition(connection, project_id, policy_id, task_id, most, levels[most])


def _add_values(connection: Connection, project_id: int, sums: Sums) -> None:
    rows: dict[tuple[Any, ...], NamedValues] = {}
    for more in value_rows(sums):
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
