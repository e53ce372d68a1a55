"""SQL of the rollups: adding sums to what is stored.

Keys come without the project, buckets as seconds since 1970.
"""

from __future__ import annotations

import select
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from psycopg import Cursor, sql
from sqlalchemy import Connection

from gapwatch.store.core.array_text import array_text
from gapwatch.store.core.driver import driver_connection, driver_cursor, named_cursor
from gapwatch.tally.tiers import ValueKey

Keys = tuple[tuple[str, str], ...]
SCOPE: Keys = (("domain", "text"), ("policy_id", "int"), ("task_id", "int"), ("source_id", "int"))
BUCKET: Keys = (("tier", "text"), ("bucket_at", "bigint"))
OUTCOMES = ("successes", "failures", "aborted", "abandoned")
# Every table of plain counts: its key after the project, and what is added.
TABLES: Mapping[str, tuple[Keys, tuple[str, ...]]] = {
    "rollup_counts": ((*SCOPE, *BUCKET), OUTCOMES),
    "rollup_cells": ((*SCOPE, *BUCKET, ("cell_id", "int")), OUTCOMES),
    "rollup_places": ((*SCOPE, ("bucket_at", "bigint"), ("robot_id", "int"), ("site_id", "int")), OUTCOMES),
    "rollup_failures": ((*SCOPE, *BUCKET, ("cell_id", "int"), ("signature_id", "int")), ("failures",)),
    "rollup_sessions": ((*SCOPE, ("bucket_at", "bigint"), ("session", "text")), ("successes", "failures")),
    "rollup_contracts": ((*SCOPE, *BUCKET, ("contract_id", "int")), ("episodes",)),
}
VALUE_KEY: Keys = (*SCOPE, ("kind", "text"), ("outcome", "text"), *BUCKET)


FlatRow = tuple[str | int | bytes | None, ...]


class _Changed(NamedTuple):
    """A policy and task of which a row is new, or became nothing."""

    policy_id: int
    task_id: int
    fresh: bool
    empty: bool


class _StoredValue(NamedTuple):
    domain: str
    policy_id: int
    task_id: int
    source_id: int
    kind: str
    outcome: str
    tier: str
    bucket_at: int
    body: bytes


class Added:
    """Counts on their way into a table."""

    def __init__(
        self, connection: Connection, project_id: int, table: str, cursor: Cursor[_Changed], columns: list[str]
    ) -> None:
        self._connection, self._project_id, self._table = connection, project_id, table
        self._cursor, self._columns = cursor, columns

    def settle(self) -> set[tuple[int, int]]:
        """The policies and tasks for which a row is new. What became nothing is deleted."""
        with self._cursor as cursor:
            changed = cursor.fetchall()
        keys, added = TABLES[self._table]
        # Also by adding: a deletion may be folded before the episode it takes back.
        if any(row.empty for row in changed):
            columns = self._columns[: len(keys)]
            _delete(self._connection, self._project_id, self._table, keys, columns, _empty(self._table, added))
        return {(row.policy_id, row.task_id) for row in changed if row.fresh}


def without_waiting(connection: Connection) -> AbstractContextManager[Any]:
    """Within this, a statement is sent and its answer waited for only when it is read."""
    return driver_connection(connection).pipeline()


def hand_over(connection: Connection) -> None:
    """Let Postgres have all of what was sent, and begin with it; a long statement goes out in pieces.

    What it answers meanwhile is taken in: a server that cannot write does not read either.
    """
    pgconn = driver_connection(connection).pgconn
    ready = select.poll()
    ready.register(pgconn.socket, select.POLLIN | select.POLLOUT)
    while pgconn.flush():
        if any(event & select.POLLIN for _, event in ready.poll()):
            pgconn.consume_input()


def add_counts(connection: Connection, project_id: int, table: str, rows: Sequence[FlatRow]) -> Added:
    """Add to a table of counts; rows are (*key, *added)."""
    keys, added = TABLES[table]
    everything: Keys = (*keys, *((name, "bigint") for name in added))
    columns = _columns(everything, sorted(rows))
    statement = sql.SQL(
        "WITH done AS (INSERT INTO {table} AS r (project_id, {names}) SELECT %s, {values} FROM {rows}"
        " ON CONFLICT (project_id, {key}) DO UPDATE SET {updates}"
        " RETURNING policy_id, task_id, xmax = 0 AS fresh, {empty} AS empty)"
        " SELECT DISTINCT policy_id, task_id, fresh, empty FROM done WHERE fresh OR empty"
    ).format(
        table=sql.Identifier(table),
        names=_names(everything),
        values=_values(everything),
        rows=_unnested(everything),
        key=_names(keys),
        updates=sql.SQL(", ").join(
            sql.SQL("{0} = r.{0} + excluded.{0}").format(sql.Identifier(name)) for name in added
        ),
        empty=_empty("r", added),
    )
    cursor = named_cursor(connection, _Changed)
    cursor.execute(statement, (project_id, *columns))
    return Added(connection, project_id, table, cursor, columns)


def stored_values(connection: Connection, project_id: int, keys: Sequence[ValueKey]) -> dict[ValueKey, bytes]:
    """The bodies of `rollup_values` with these keys."""
    if not keys:
        return {}
    statement = sql.SQL(
        "SELECT {names}, body FROM rollup_values r JOIN {rows} USING ({others})"
        " WHERE r.project_id = %s AND r.bucket_at = to_timestamp(u.bucket_at)"
    ).format(
        names=sql.SQL(", ").join(sql.SQL("u.{}").format(sql.Identifier(name)) for name, _ in VALUE_KEY),
        rows=_unnested(VALUE_KEY),
        others=_names(tuple(key for key in VALUE_KEY if key[0] != "bucket_at")),
    )
    with named_cursor(connection, _StoredValue) as cursor:
        cursor.execute(statement, (*_columns(VALUE_KEY, keys), project_id))
        return {
            ValueKey(
                row.domain,
                row.policy_id,
                row.task_id,
                row.source_id,
                row.kind,
                row.outcome,
                row.tier,
                row.bucket_at,
            ): row.body
            for row in cursor.fetchall()
        }


def put_values(connection: Connection, project_id: int, rows: Sequence[FlatRow]) -> None:
    """Write whole rows (*key, body)."""
    if not rows:
        return
    everything: Keys = (*VALUE_KEY, ("body", "bytea"))
    statement = sql.SQL(
        "INSERT INTO rollup_values (project_id, {names}) SELECT %s, {values} FROM {rows}"
        " ON CONFLICT (project_id, {key}) DO UPDATE SET body = excluded.body"
    ).format(
        names=_names(everything), values=_values(everything), rows=_unnested(everything), key=_names(VALUE_KEY)
    )
    with driver_cursor(connection) as cursor:
        cursor.execute(statement, (project_id, *_columns(everything, sorted(rows))))


def drop_values(connection: Connection, project_id: int, keys: Sequence[ValueKey]) -> None:
    if keys:
        _delete(connection, project_id, "rollup_values", VALUE_KEY, _columns(VALUE_KEY, keys), sql.SQL("true"))


def _delete(
    connection: Connection,
    project_id: int,
    table: str,
    keys: Keys,
    columns: list[str],
    where: sql.Composable,
) -> None:
    statement = sql.SQL(
        "DELETE FROM {table} WHERE project_id = %s AND ({names}) IN (SELECT {values} FROM {rows}) AND {where}"
    ).format(
        table=sql.Identifier(table), names=_names(keys), values=_values(keys), rows=_unnested(keys), where=where
    )
    with driver_cursor(connection) as cursor:
        cursor.execute(statement, (project_id, *columns))


def _empty(table: str, added: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(" AND ").join(sql.SQL("{} = 0").format(sql.Identifier(table, name)) for name in added)


def _columns(keys: Keys, rows: Sequence[FlatRow]) -> list[str]:
    columns = zip(*rows, strict=True) if rows else [()] * len(keys)
    return [array_text(column, kind) for (_, kind), column in zip(keys, columns, strict=True)]


def _names(keys: Keys) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name, _ in keys)


def _values(keys: Keys) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("to_timestamp(bucket_at)") if name == "bucket_at" else sql.Identifier(name) for name, _ in keys
    )


def _unnested(keys: Keys) -> sql.Composed:
    """Rows from one array a column: few parameters however many rows."""
    casts = sql.SQL(", ").join(sql.SQL("%s::") + sql.SQL(kind) + sql.SQL("[]") for _, kind in keys)
    return sql.SQL("unnest({casts}) AS u ({names})").format(casts=casts, names=_names(keys))
