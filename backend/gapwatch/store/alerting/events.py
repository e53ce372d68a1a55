"""SQL of events: dated facts that may explain a change, and those that episodes themselves tell of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit, changes
from gapwatch.store.core.event_scope import concerns
from gapwatch.watching.changes import LOOK_BACK, SLACK, ChangeSpan, Happened

EVENT_KINDS = ("release", "calibration", "simulator", "site", "mitigation", "other")
MOST_EVENTS = 40


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
    awaited: str | None = None,
    fix: Mapping[str, Any] | None = None,
) -> int:
    """Store an event of a deployment, or of the whole project, and who told of it; return its number.

    `awaited` is the name of a deployment that has no episodes yet.
    """
    number = int(
        connection.execute(
            text("""
            INSERT INTO events (project_id, kind, at, title, deployment_id, details, awaited, fix)
            VALUES (:p, :kind, :at, :title, :d, CAST(:details AS jsonb), :awaited, CAST(:fix AS jsonb))
            RETURNING id
            """),
            {
                "p": project_id,
                "kind": kind,
                "at": at,
                "title": title,
                "d": deployment_id,
                "details": json.dumps(dict(details or {})),
                "awaited": awaited,
                "fix": None if fix is None else json.dumps(dict(fix)),
            },
        ).scalar_one()
    )
    made = {
        "kind": kind,
        "title": title,
        "at": at.isoformat(),
        "deployment_id": deployment_id,
        "details": dict(details or {}),
        **({} if awaited is None else {"awaited": awaited}),
        **({} if fix is None else {"fix": dict(fix)}),
    }
    audit(connection, project_id, actor, "event.recorded", f"event/{number}", changes=changes({}, made))
    return number


def date_mitigations(connection: Connection, project_id: int) -> None:
    """Let mitigations have been told of when they happened: for a history that is loaded afterwards."""
    connection.execute(
        text("UPDATE events SET created_at = least(created_at, at) WHERE project_id = :p AND kind = 'mitigation'"),
        {"p": project_id},
    )


def delete_event(
    connection: Connection, project_id: int, number: int, actor: str, *, deployment_id: int | None = None
) -> bool:
    """Take an event back; with `deployment_id` only one that its page shows. False if there is none."""
    row = connection.execute(
        text("""
        DELETE FROM events e WHERE project_id = :p AND id = :id
          AND (CAST(:d AS int) IS NULL OR deployment_id = :d OR deployment_id IS NULL AND (awaited IS NULL
               OR awaited = (SELECT slug FROM deployments WHERE project_id = :p AND id = :d)))
        RETURNING kind, at::text AS at, title, deployment_id, details, fix
        """),
        {"p": project_id, "id": number, "d": deployment_id},
    ).one_or_none()
    if row is None:
        return False
    audit(connection, project_id, actor, "event.deleted", f"event/{number}", **row._asdict())
    return True


def events_page(
    connection: Connection, project_id: int, *, deployment: str | None, before_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """Newest first."""
    rows = connection.execute(
        text("""
        SELECT e.id, e.kind, e.at, e.title, coalesce(d.slug, e.awaited) AS deployment, e.details, e.created_at,
               e.fix
        FROM events e LEFT JOIN deployments d ON d.project_id = e.project_id AND d.id = e.deployment_id
        WHERE e.project_id = :p AND (CAST(:slug AS text) IS NULL OR coalesce(d.slug, e.awaited) = :slug)
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
        text(f"""
        SELECT e.kind, e.at, e.title, e.details,
               CASE WHEN e.deployment_id IS NOT NULL OR e.awaited IS NOT NULL THEN d.slug END AS deployment
        FROM events e JOIN deployments d ON d.project_id = :p AND d.id = :d
        WHERE e.project_id = :p AND e.at BETWEEN :from AND least(:to, now() + interval '1 day')
          AND {concerns(":d", "d.slug")}
        ORDER BY e.at DESC LIMIT 200
        """),  # noqa: S608 - the condition is a constant of ours
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
