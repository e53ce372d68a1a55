"""psycopg's own connection and cursors under SQLAlchemy's, for pipelines, binary results and rows by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import psycopg
from psycopg.rows import no_result
from sqlalchemy import Connection

RowT = TypeVar("RowT", bound=NamedTuple)


def driver_connection(connection: Connection) -> psycopg.Connection[Any]:
    return cast(psycopg.Connection[Any], connection.connection.driver_connection)


def driver_cursor(connection: Connection) -> psycopg.Cursor[Any]:
    """Return a binary cursor: arrays and bytes arrive as Postgres sends them."""
    return driver_connection(connection).cursor(binary=True)


def named_cursor(connection: Connection, row: type[RowT], name: str | None = None) -> psycopg.Cursor[RowT]:
    """Return a binary cursor whose rows are of the class. With a name, Postgres keeps the result and sends parts.

    The columns of the query must have the names of the fields, in their order; a query that does not is refused.
    """

    def row_factory(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], RowT]:
        result = cursor.pgresult
        if result is None or not result.nfields:
            return no_result
        columns = tuple((result.fname(index) or b"").decode() for index in range(result.nfields))
        if columns != row._fields:
            raise TypeError(f"the query's columns {columns} are not the fields of {row}: {row._fields}")
        # What `row._make` does, without a Python frame for each row: 0.1 instead of 0.4 µs.
        return cast("Callable[[Sequence[Any]], RowT]", partial(tuple.__new__, row))

    driver = driver_connection(connection)
    if name is None:
        return driver.cursor(binary=True, row_factory=row_factory)
    return cast("psycopg.Cursor[RowT]", driver.cursor(name=name, binary=True, row_factory=row_factory))
