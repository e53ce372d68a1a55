"""The one database of an embedded cluster."""

from __future__ import annotations

import psycopg
from psycopg import sql


def make_database(url: str, name: str) -> bool:
    """Return whether Postgres answers. Create the database on the very first start."""
    try:
        with psycopg.connect(url, dbname="postgres", connect_timeout=2, autocommit=True) as connection:
            cursor = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
            if cursor.fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.OperationalError:
        return False
    return True
