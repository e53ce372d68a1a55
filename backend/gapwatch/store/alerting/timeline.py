"""SQL of dated facts that may explain a change, as a deployment's page reads and records them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit

EVENT_KINDS = ("release", "calibration", "simulator", "site", "mitigation", "other")
MOST_EVENTS = 40


@dataclass(frozen=True)
class EventRow:
    id: int
    kind: str
    at: datetime
    title: str
    details: dict[str, Any]


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


def record_event(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    *,
    kind: str,
    at: datetime,
    title: str,
    actor: str,
) -> None:
    number = connection.execute(
        text("""
        INSERT INTO events (project_id, kind, at, title, deployment_id) VALUES (:p, :kind, :at, :title, :d)
        RETURNING id
        """),
        {"p": project_id, "kind": kind, "at": at, "title": title, "d": deployment_id},
    ).scalar_one()
    audit(connection, project_id, actor, "event.recorded", f"event/{number}", kind=kind, title=title)
