"""Sums into the stored rollups, and pooling a condition whose levels make too many cells."""

from __future__ import annotations

from typing import Any

from gapwatch.store import cells, rollups
from gapwatch.store.database import Connection
from gapwatch.tally.sums import Sums, ValueSum
from gapwatch.tally.tiers import count_rows, value_rows

# A condition with more levels than this tells episodes apart instead of describing them; and a project with more
# cells than this would answer from as many rows as it has episodes.
MOST_LEVELS = 50
MOST_CELLS = 5000


def add_sums(connection: Connection, project_id: int, sums: Sums) -> None:
    """Every table in one fixed order. The project is locked by the caller."""
    tables = count_rows(sums)
    numbers, made = cells.intern_cells(connection, project_id, {key[6] for key in tables["rollup_cells"]})
    said = cells.intern_signatures(connection, project_id, {key[7] for key in tables["rollup_failures"]})
    for table, found in tables.items():
        rows: list[tuple[Any, ...]] = []
        for key, counts in found.items():
            if table == "rollup_cells":
                rows.append((*key[:6], numbers[key[6]], *counts))
            elif table == "rollup_failures":
                rows.append((*key[:6], numbers[key[6]], said[key[7]], *counts))
            else:
                rows.append((*key, *counts))
        rollups.add_counts(connection, project_id, table, rows)
    _add_values(connection, project_id, sums)
    if made:
        pool_conditions(connection, project_id)


def pool_conditions(connection: Connection, project_id: int) -> None:
    """Leave out of all cells what has too many levels; then, while there are too many cells, what has most."""
    while True:
        total, levels = cells.condition_levels(connection, project_id)
        most = max(levels, key=lambda name: (levels[name], name), default=None)
        if most is None or (levels[most] <= MOST_LEVELS and total <= MOST_CELLS):
            return
        cells.pool_condition(connection, project_id, most, levels[most])


def value_columns(value: ValueSum) -> tuple[Any, ...]:
    value.tidy()
    return (
        *(value.n, value.total, value.total_sq, value.zero),
        *(list(value.bins), list(value.bins.values()), list(value.negative), list(value.negative.values())),
    )


def value_of(columns: tuple[Any, ...]) -> ValueSum:
    n, total, total_sq, zero, bins, counts, negative, negative_counts = columns
    return ValueSum(
        n,
        int(total),
        int(total_sq),
        zero,
        dict(zip(bins, counts, strict=True)),
        dict(zip(negative, negative_counts, strict=True)),
    )


def _add_values(connection: Connection, project_id: int, sums: Sums) -> None:
    rows = value_rows(sums)
    stored = rollups.stored_values(connection, project_id, list(rows))
    written, emptied = [], []
    for key, value in rows.items():
        if key in stored:
            value.add(value_of(stored[key]))
        if value.is_empty:
            emptied.append(key)
        else:
            written.append((*key, *value_columns(value)))
    rollups.put_values(connection, project_id, written)
    rollups.drop_values(connection, project_id, [key for key in emptied if key in stored])
