"""psycopg's own connection and cursor under SQLAlchemy's, for pipelines and binary results."""

from __future__ import annotations

from typing import Any, cast

import psycopg
from sqlalchemy import Connection


def driver_connection(connection: Connection) -> psycopg.Connection[Any]:
    return cast(psycopg.Connection[Any], connection.connection.driver_connection)


def driver_cursor(connection: Connection) -> psycopg.Cursor[Any]:
    """Return a binary cursor: arrays and bytes arrive as Postgres sends them."""
    return driver_connection(connection).cursor(binary=True)
