"""Episodes into the stored rollups."""

from __future__ import annotations

from gapwatch.rollup.pooling import pool_new, pool_stored
from gapwatch.store.core.database import Connection
from gapwatch.store.fold import cells, rollups
from gapwatch.tally.aggregate import Episodes
from gapwatch.tally.sums import Measured
from gapwatch.tally.tiers import ValueKey, count_rows, value_rows
from gapwatch.tally.values import NamedValues, add_values, pack_values, unpack_values

# Rows of moments and sketches that are in memory together.
VALUES_AT_ONCE = 1000


def add_episodes(connection: Connection, project_id: int, episodes: Episodes) -> None:
    """Every table in one fixed order. The project is locked by the caller."""
    sums = episodes.counted()
    pool_new(connection, project_id, sums)
    rows = count_rows(sums)
    numbers = cells.intern_cells(connection, project_id, {cell for _, cell in rows.cells})
    signatures = cells.intern_signatures(connection, project_id, {signature for _, _, signature in rows.failures})

    def add(table: str, flat: list[rollups.FlatRow]) -> rollups.Added:
        return rollups.add_counts(connection, project_id, table, flat)

    with rollups.without_waiting(connection):
        in_counts = add("rollup_counts", [(*key, *counts) for key, counts in rows.counts.items()])
        in_cells = add(
            "rollup_cells", [(*bucket, numbers[cell], *counts) for (bucket, cell), counts in rows.cells.items()]
        )
        rollups.hand_over(connection)
        # Postgres adds the cells while we are measuring; what is sent now would only wait at its door.
        values = episodes.measured()
        rest = [
            add(
                "rollup_places",
                [
                    (*scope, day, robot_id, site_id, *counts)
                    for (scope, day, robot_id, site_id), counts in rows.places.items()
                ],
            ),
            add(
                "rollup_failures",
                [
                    (*bucket, numbers[cell], signatures[signature], *counts)
                    for (bucket, cell, signature), counts in rows.failures.items()
                ],
            ),
            add(
                "rollup_sessions",
                [(*scope, day, session, *counts) for (scope, day, session), counts in rows.sessions.items()],
            ),
            add(
                "rollup_contracts",
                [(*bucket, contract_id, *counts) for (bucket, contract_id), counts in rows.contracts.items()],
            ),
        ]
        _add_values(connection, project_id, values)
        new_cells = in_cells.settle()
        for added in (in_counts, *rest):
            added.settle()
    for policy_id, task_id in sorted(new_cells):
        pool_stored(connection, project_id, policy_id, task_id)


def _add_values(connection: Connection, project_id: int, values: Measured) -> None:
    rows: dict[ValueKey, NamedValues] = {}
    for more in value_rows(values):
        rows |= more
        if len(rows) >= VALUES_AT_ONCE:
            _add_value_rows(connection, project_id, rows)
            rows = {}
    _add_value_rows(connection, project_id, rows)


def _add_value_rows(connection: Connection, project_id: int, rows: dict[ValueKey, NamedValues]) -> None:
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
