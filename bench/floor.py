"""The floor: the same rows into the same table by COPY, with nothing in between.

The rows come from the table itself, after our service stored them once, so the floor shares no code with it.
Like the service it leaves `received_at` and the order of arrival to the database, commits every 500 rows and
waits for the disk.
"""

from __future__ import annotations

import pickle
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from bench.records import BATCH
from bench.senders import Sent

# Made by the database for each row.
MADE_BY_DATABASE = ("seq", "received_at")


def columns_of(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Names and types of the columns that COPY fills."""
    columns = connection.execute(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = 'episodes'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    return [(name, kind) for name, kind in columns if name not in MADE_BY_DATABASE]


def write_rows(url: str, project_id: int, path: Path) -> Path:
    """The stored rows of a project, ordered by id: in batches of COPY bytes, and as Python values."""
    with psycopg.connect(url, autocommit=True) as connection:
        columns = columns_of(connection)
        names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
        count = connection.execute("SELECT count(*) FROM episodes WHERE project_id = %s", [project_id]).fetchone()
        packed, rows = [], []
        for start in range(0, count[0] if count else 0, BATCH):
            query = sql.SQL("SELECT {} FROM episodes WHERE project_id = {} ORDER BY id LIMIT {} OFFSET {}").format(
                names, project_id, BATCH, start
            )
            with connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(query)) as copy:
                packed.append(b"".join(bytes(part) for part in copy))
            rows.append([_plain(row) for row in connection.execute(query, binary=True)])
    path.write_bytes(pickle.dumps((columns, packed, rows)))
    return path


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(Jsonb(value) if isinstance(value, dict) else value for value in row)


@lru_cache(maxsize=1)
def _read_rows(path: Path) -> tuple[list[tuple[str, str]], list[bytes], list[list[tuple[Any, ...]]]]:
    columns, packed, rows = pickle.loads(path.read_bytes())
    return columns, packed, rows


def copy_rows(url: str, path: Path, *, adapted: bool, part: int = 0, parts: int = 1, begin: float = 0.0) -> Sent:
    """One connection. `adapted`: psycopg's write_row, as its users call it; else the bytes as they are.

    With several parts, each waits until `begin`.
    """
    columns, packed, rows = _read_rows(path)
    statement = sql.SQL("COPY episodes ({}) FROM STDIN (FORMAT binary)").format(
        sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
    )
    types = [kind for _, kind in columns]
    indices = range(part, len(packed), parts)
    with psycopg.connect(url, options="-c synchronous_commit=on") as connection:
        time.sleep(max(0.0, begin - time.monotonic()))
        started = time.monotonic()
        for index in indices:
            with connection.cursor().copy(statement) as copy:
                if adapted:
                    copy.set_types(types)
                    for row in rows[index]:
                        copy.write_row(row)
                else:
                    copy.write(packed[index])
            connection.commit()
        ended = time.monotonic()
    return Sent(sum(len(rows[index]) for index in indices), started, ended)
