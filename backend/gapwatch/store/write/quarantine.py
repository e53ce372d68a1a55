"""The quarantine: list refused records, and keep them within bounds."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from cachetools import TTLCache
from sqlalchemy import Connection, text

# Of a project, and how much of one is taken in a minute by one process: what is refused may come by the gigabyte,
# and what is deleted takes its space until Postgres has cleaned up.
MOST_RECORDS = 1000
MOST_BYTES = 16 * 2**20
MOST_BYTES_A_MINUTE = 2 * 2**20
OLDEST_DAYS = 30
# What a row takes beside what was sent and what is wrong with it.
ROW_BYTES = 100


class QuarantineBudget:
    """How many bytes of refused records each project may still store in this minute."""

    def __init__(self) -> None:
        self._used: TTLCache[tuple[int, int], int] = TTLCache(100_000, 60.0)

    def take(self, project_id: int, size: int) -> bool:
        """Whether a row of so many bytes may be stored; if so, it is counted."""
        key = (project_id, int(time.monotonic() // 60))
        used = self._used.get(key, 0) + size
        if used > MOST_BYTES_A_MINUTE:
            return False
        self._used[key] = used
        return True


def rejected_page(
    connection: Connection, project_id: int, code: str | None, before_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """Return a page, newest first; the next one starts below the last id."""
    rows = connection.execute(
        text(
            """
            SELECT id, received_at, key_prefix, code, errors, record FROM rejected_records
            WHERE project_id = :p AND (CAST(:code AS text) IS NULL OR code = :code)
              AND (CAST(:before AS int) IS NULL OR id < :before)
            ORDER BY id DESC LIMIT :limit
            """
        ),
        {"p": project_id, "code": code, "before": before_id, "limit": limit},
    ).mappings()
    return [
        {
            "id": row["id"],
            "received_at": _time(row["received_at"]),
            "key_prefix": row["key_prefix"],
            "code": row["code"],
            "errors": row["errors"],
            "record": bytes(row["record"]).decode("utf-8", "replace"),
        }
        for row in rows
    ]


def trim_rejected(connection: Connection) -> None:
    """Delete what is too old, and of each project what is beyond its newest thousand or beyond its bytes."""
    connection.execute(
        text("DELETE FROM rejected_records WHERE received_at < now() - make_interval(days => :days)"),
        {"days": OLDEST_DAYS},
    )
    connection.execute(
        text(
            """
            DELETE FROM rejected_records r USING (
                SELECT project_id, id, row_number() OVER newest AS rank,
                       sum(octet_length(record) + pg_column_size(errors)) OVER newest AS bytes
                FROM rejected_records WINDOW newest AS (PARTITION BY project_id ORDER BY id DESC)) ranked
            WHERE r.project_id = ranked.project_id AND r.id = ranked.id
              AND (ranked.rank > :most OR ranked.bytes > :bytes)
            """
        ),
        {"most": MOST_RECORDS, "bytes": MOST_BYTES},
    )


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
