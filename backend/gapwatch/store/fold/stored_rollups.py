"""Every stored row of a rollup table, with contents in place of numbers: what `gapwatch verify` compares."""

from __future__ import annotations

from typing import Any

from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.store.core.driver import driver_cursor
from gapwatch.store.fold.rollups import TABLES, VALUE_KEY


def all_rows(connection: Connection, project_id: int, table: str) -> dict[tuple[Any, ...], Any]:
    keys, added = (VALUE_KEY, ("body",)) if table == "rollup_values" else TABLES[table]
    columns = sql.SQL(", ").join(
        sql.SQL("extract(epoch FROM bucket_at)::bigint") if name == "bucket_at" else sql.Identifier(name)
        for name in (*(name for name, _ in keys), *added)
    )
    query = sql.SQL("SELECT {} FROM {} WHERE project_id = %s").format(columns, sql.Identifier(table))
    cells = _cells(connection, project_id) if table in {"rollup_cells", "rollup_failures"} else {}
    said = _signatures(connection, project_id) if table == "rollup_failures" else {}
    found: dict[tuple[Any, ...], Any] = {}
    with driver_cursor(connection) as cursor:
        for row in cursor.execute(query, (project_id,)):
            key, values = list(row[: len(keys)]), row[len(keys) :]
            for place, (name, _) in enumerate(keys):
                if name == "cell_id":
                    key[place] = cells[key[place]]
                elif name == "signature_id":
                    key[place] = said[key[place]]
            found[tuple(key)] = values[0] if table == "rollup_values" else list(values)
    return found


def _cells(connection: Connection, project_id: int) -> dict[int, tuple[Any, ...]]:
    found = connection.execute(
        text("SELECT id, robot_id, site_id, stage, levels FROM cells WHERE project_id = :p"), {"p": project_id}
    )
    return {row.id: (row.robot_id, row.site_id, row.stage, tuple(sorted(row.levels.items()))) for row in found}


def _signatures(connection: Connection, project_id: int) -> dict[int, tuple[Any, ...]]:
    found = connection.execute(
        text("SELECT id, phase, labels, category FROM signatures WHERE project_id = :p"), {"p": project_id}
    )
    return {row.id: (row.phase, tuple(row.labels), row.category) for row in found}
