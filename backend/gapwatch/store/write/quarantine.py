"""The quarantine: list refused records, and keep them within bounds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

# Per project. With at most 64 KiB a record this bounds the space.
MOST_RECORDS = 1000
OLDEST_DAYS = 30


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
    """Delete what is too old, and what is beyond the newest thousand of a project."""
    connection.execute(
        text("DELETE FROM rejected_records WHERE received_at < now() - make_interval(days => :days)"),
        {"days": OLDEST_DAYS},
    )
    connection.execute(
        text(
            """
            DELETE FROM rejected_records r USING (
                SELECT project_id, id, row_number() OVER (PARTITION BY project_id ORDER BY id DESC) AS rank
                FROM rejected_records) ranked
            WHERE r.project_id = ranked.project_id AND r.id = ranked.id AND ranked.rank > :most
            """
        ),
        {"most": MOST_RECORDS},
    )


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
