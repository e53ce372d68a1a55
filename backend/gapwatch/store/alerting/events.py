"""SQL of events: dated facts that may explain a change, and those that episodes themselves tell of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit, changes
from gapwatch.watching.changes import LOOK_BACK, SLACK, ChangeSpan, Happened

EVENT_KINDS = ("release", "calibration", "simulator", "site", "mitigation", "other")
MOST_EVENTS = 40


@dataclass(frozen=True)
class EventRow:
    id: int
    kind: str
    at: datetime
    title: str
    details: dict[str, Any]


def record_event(
    connection: Connection,
    project_id: int,
    *,
    kind: str,
    at: datetime,
    title: str,
    deployment_id: int | None,
    actor: str,
    details: Mapping[str, Any] | None = None,
) -> int:
    """Store an event of a deployment, or of the whole project, and who told of it; return its number."""
    number = int(
        connection.execute(
            text("""
            INSERT INTO events (project_id, kind, at, title, deployment_id, details)
            VALUES (:p, :kind, :at, :title, :d, CAST(:details AS jsonb)) RETURNING id
            """),
            {
                "p": project_id,
                "kind": kind,
                "at": at,
                "title": title,
                "d": deployment_id,
                "details": json.dumps(dict(details or {})),
            },
        ).scalar_one()
    )
    made = {
        "kind": kind,
        "title": title,
        "at": at.isoformat(),
        "deployment_id": deployment_id,
        "details": dict(details or {}),
    }
    audit(connection, project_id, actor, "event.recorded", f"event/{number}", changes=changes({}, made))
    return number


def delete_event(
    connection: Connection, project_id: int, number: int, actor: str, *, deployment_id: int | None = None
) -> bool:
    """Take an event back; with `deployment_id` only one that its page shows. False if there is none."""
    row = connection.execute(
        text("""
        DELETE FROM events WHERE project_id = :p AND id = :id
          AND (CAST(:d AS int) IS NULL OR deployment_id = :d OR deployment_id IS NULL)
        RETURNING kind, at::text AS at, title, deployment_id, details
        """),
        {"p": project_id, "id": number, "d": deployment_id},
    ).one_or_none()
    if row is None:
        return False
    audit(connection, project_id, actor, "event.deleted", f"event/{number}", **row._asdict())
    return True


def events_of(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    since: datetime | None,
    until: datetime | None,
) -> list[EventRow]:
    """Those of the deployment and of the whole project in a window: the newest, oldest first."""
    rows = connection.execute(
        text("""
        SELECT id, kind, at, title, details FROM events
        WHERE project_id = :p AND (deployment_id = :d OR deployment_id IS NULL)
          AND at >= coalesce(CAST(:since AS timestamptz), '-infinity')
          AND at < coalesce(CAST(:until AS timestamptz), 'infinity')
        ORDER BY at DESC, id DESC LIMIT :most
        """),
        {"p": project_id, "d": deployment_id, "since": since, "until": until, "most": MOST_EVENTS},
    )
    return [EventRow(*row) for row in rows][::-1]


def events_page(
    connection: Connection, project_id: int, *, deployment: str | None, before_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """Newest first."""
    rows = connection.execute(
        text("""
        SELECT e.id, e.kind, e.at, e.title, d.slug AS deployment, e.details, e.created_at FROM events e
        LEFT JOIN deployments d ON d.project_id = e.project_id AND d.id = e.deployment_id
        WHERE e.project_id = :p AND (CAST(:slug AS text) IS NULL OR d.slug = :slug)
          AND (CAST(:before AS int) IS NULL OR e.id < :before)
        ORDER BY e.id DESC LIMIT :limit
        """),
        {"p": project_id, "slug": deployment, "before": before_id, "limit": limit},
    ).mappings()
    return [dict(row) for row in rows]


def events_near(connection: Connection, project_id: int, deployment_id: int, change: ChangeSpan) -> list[Happened]:
    """What people and pipelines told of around a change, and the versions that episodes show for the first
    time.
    """
    window = {
        "p": project_id,
        "d": deployment_id,
        "from": change.earliest - LOOK_BACK,
        "to": change.latest + SLACK,
    }
    recorded = connection.execute(
        text("""
        SELECT e.kind, e.at, e.title, d.slug AS deployment, e.details FROM events e
        LEFT JOIN deployments d ON d.project_id = e.project_id AND d.id = e.deployment_id
        WHERE e.project_id = :p AND e.at BETWEEN :from AND least(:to, now() + interval '1 day')
        ORDER BY e.at DESC LIMIT 200
        """),
        window,
    )
    events = [
        Happened(
            row.kind,
            row.at,
            row.title,
            row.deployment,
            _word(row.details.get("site")),
            tuple(word for word in row.details.get("robots") or () if isinstance(word, str)),
        )
        for row in recorded
    ]
    return events + _releases(connection, window)


def _releases(connection: Connection, window: dict[str, Any]) -> list[Happened]:
    """Policy versions whose first hour at the deployment lies in the window and that follow another one."""
    rows = connection.execute(
        text("""
        SELECT p.name, p.version, s.first_at, d.slug FROM (
            SELECT policy_id, min(bucket_at) AS first_at, min(min(bucket_at)) OVER () AS oldest FROM rollup_counts
            WHERE project_id = :p AND domain = 'real' AND source_id = :d AND tier = 'hour' GROUP BY policy_id) s
        JOIN policies p ON p.project_id = :p AND p.id = s.policy_id
        JOIN deployments d ON d.project_id = :p AND d.id = :d
        WHERE s.first_at BETWEEN :from AND :to AND s.first_at > s.oldest
        """),
        window,
    )
    return [Happened("release", row.first_at, f"{row.name} {row.version} first seen", row.slug) for row in rows]


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
