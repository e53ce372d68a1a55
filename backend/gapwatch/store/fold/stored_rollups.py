"""Every stored row of a rollup table, with contents in place of numbers: what `gapwatch verify` compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from psycopg import sql
from psycopg.rows import namedtuple_row
from sqlalchemy import Connection, text

from gapwatch.store.core.driver import driver_connection
from gapwatch.store.fold.rollups import TABLES, VALUE_KEY
from gapwatch.tally.sums import CellContent, EpisodeGroup, Signature
from gapwatch.tally.tiers import BucketKey, ValueKey


def all_rows(connection: Connection, project_id: int, table: str) -> dict[Any, Any]:
    """Return the counts of each row, or its bytes, by the keys of `tally.tiers`."""
    keys, added = (VALUE_KEY, ("body",)) if table == "rollup_values" else TABLES[table]
    columns = sql.SQL(", ").join(
        sql.SQL("extract(epoch FROM bucket_at)::bigint AS bucket_at")
        if name == "bucket_at"
        else sql.Identifier(name)
        for name in (*(name for name, _ in keys), *added)
    )
    query = sql.SQL("SELECT {} FROM {} WHERE project_id = %s").format(columns, sql.Identifier(table))
    key_of = _keys(connection, project_id, table)
    with driver_connection(connection).cursor(binary=True, row_factory=namedtuple_row) as cursor:
        rows: Iterable[Any] = cursor.execute(query, (project_id,))
        if table == "rollup_values":
            return {key_of(row): row.body for row in rows}
        return {key_of(row): [getattr(row, name) for name in added] for row in rows}


def _keys(connection: Connection, project_id: int, table: str) -> Callable[[Any], Any]:
    """Return what makes the key of a row."""
    cells = _cells(connection, project_id) if table in {"rollup_cells", "rollup_failures"} else {}
    signatures = _signatures(connection, project_id) if table == "rollup_failures" else {}
    keys: dict[str, Callable[[Any], Any]] = {
        "rollup_counts": _bucket,
        "rollup_cells": lambda row: (_bucket(row), cells[row.cell_id]),
        "rollup_places": lambda row: (_scope(row), row.bucket_at, row.robot_id, row.site_id),
        "rollup_failures": lambda row: (_bucket(row), cells[row.cell_id], signatures[row.signature_id]),
        "rollup_sessions": lambda row: (_scope(row), row.bucket_at, row.session),
        "rollup_contracts": lambda row: (_bucket(row), row.contract_id),
        "rollup_values": lambda row: ValueKey(*_scope(row), row.kind, row.outcome, row.tier, row.bucket_at),
    }
    return keys[table]


def _scope(row: Any) -> EpisodeGroup:
    return EpisodeGroup(row.domain, row.policy_id, row.task_id, row.source_id)


def _bucket(row: Any) -> BucketKey:
    return BucketKey(row.domain, row.policy_id, row.task_id, row.source_id, row.tier, row.bucket_at)


def _cells(connection: Connection, project_id: int) -> dict[int, CellContent]:
    rows = connection.execute(
        text("SELECT id, robot_id, site_id, stage, levels FROM cells WHERE project_id = :p"), {"p": project_id}
    )
    return {
        row.id: CellContent(row.robot_id, row.site_id, row.stage, tuple(sorted(row.levels.items())))
        for row in rows
    }


def _signatures(connection: Connection, project_id: int) -> dict[int, Signature]:
    rows = connection.execute(
        text("SELECT id, phase, labels, category FROM signatures WHERE project_id = :p"), {"p": project_id}
    )
    return {row.id: Signature(row.phase, tuple(row.labels), row.category) for row in rows}
