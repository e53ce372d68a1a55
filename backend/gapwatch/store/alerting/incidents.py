"""Rows of incidents: what is wrong with a deployment, and when people were or will be told."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from gapwatch.store.alerting.watch_queue import lock_deployment


@dataclass(frozen=True)
class OpenIncident:
    id: int
    severity: str
    opened_at: datetime
    notified_at: datetime | None
    notified_severity: str | None
    acknowledged_by: str | None


_INCIDENT = (
    "id, severity, opened_at, paged_at AS notified_at, paged_severity AS notified_severity, acknowledged_by"
)


def open_incident(connection: Connection, project_id: int, deployment_id: int) -> OpenIncident | None:
    row = (
        connection.execute(
            text(f"""
            SELECT {_INCIDENT} FROM incidents
            WHERE project_id = :p AND deployment_id = :d AND state <> 'resolved'
            """),  # noqa: S608
            {"p": project_id, "d": deployment_id},
        )
        .mappings()
        .first()
    )
    return None if row is None else OpenIncident(**row)


def add_incident(connection: Connection, project_id: int, deployment_id: int, severity: str) -> OpenIncident:
    row = connection.execute(
        text(f"""
        INSERT INTO incidents (project_id, deployment_id, state, severity) VALUES (:p, :d, 'firing', :severity)
        RETURNING {_INCIDENT}
        """),  # noqa: S608
        {"p": project_id, "d": deployment_id, "severity": severity},
    ).mappings()
    return OpenIncident(**row.one())


def set_severity(connection: Connection, project_id: int, incident_id: int, severity: str) -> None:
    connection.execute(
        text("UPDATE incidents SET severity = :severity WHERE project_id = :p AND id = :id"),
        {"p": project_id, "id": incident_id, "severity": severity},
    )


def assign_alerts(connection: Connection, project_id: int, incident_id: int | None, alert_ids: list[int]) -> None:
    """Put alerts into an incident, or with None out of theirs."""
    connection.execute(
        text("UPDATE alerts SET incident_id = :i WHERE project_id = :p AND id = ANY(:ids)"),
        {"i": incident_id, "p": project_id, "ids": alert_ids},
    )


def note_change(connection: Connection, project_id: int, incident_id: int) -> None:
    """An incident is as old as the earliest change among its alerts, whenever it was found.

    A signal that moved before anything was lost is no reason to call the loss older.
    """
    connection.execute(
        text("""
        UPDATE incidents SET changed_at = (
            SELECT coalesce(min(coalesce(a.changed_at, a.opened_at)) FILTER (WHERE a.severity <> 'info'),
                            min(coalesce(a.changed_at, a.opened_at)))
            FROM alerts a
            WHERE a.project_id = :p AND a.incident_id = :id)
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": incident_id},
    )


def mark_resolved(connection: Connection, project_id: int, incident_id: int) -> None:
    connection.execute(
        text("""
        UPDATE incidents SET state = 'resolved', resolved_at = now(), page_at = NULL
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": incident_id},
    )


def mark_acknowledged(connection: Connection, project_id: int, incident_id: int, actor: str) -> None:
    """Who takes on what nobody takes care of is its owner."""
    connection.execute(
        text("""
        UPDATE incidents SET state = 'acknowledged', acknowledged_at = now(), acknowledged_by = :actor,
            owner = coalesce(owner, :actor)
        WHERE project_id = :p AND id = :id AND state <> 'resolved'
        """),
        {"p": project_id, "id": incident_id, "actor": actor},
    )


def mark_notified(
    connection: Connection,
    project_id: int,
    incident_id: int,
    content: Mapping[str, Any],
    *,
    severity: str,
    kinds: Collection[str],
) -> None:
    """People are being told of these kinds of reasons; who took on the others has not taken on these."""
    connection.execute(
        text("""
        UPDATE incidents SET paged_at = now(), paged_severity = :severity, page_at = NULL, state = 'firing',
            acknowledged_at = NULL, acknowledged_by = NULL, content = CAST(:content AS jsonb),
            told_reasons = ARRAY(SELECT DISTINCT unnest(told_reasons || CAST(:kinds AS text[])) ORDER BY 1)
        WHERE project_id = :p AND id = :id
        """),
        {
            "p": project_id,
            "id": incident_id,
            "severity": severity,
            "content": json.dumps(content),
            "kinds": list(kinds),
        },
    )


def incident_content(connection: Connection, project_id: int, incident_id: int) -> dict[str, Any]:
    """What people were told of it."""
    statement = text("SELECT content FROM incidents WHERE project_id = :p AND id = :id")
    return dict(connection.execute(statement, {"p": project_id, "id": incident_id}).scalar_one())


def deployment_of(connection: Connection, project_id: int, incident_id: int) -> int:
    statement = text("SELECT deployment_id FROM incidents WHERE project_id = :p AND id = :id")
    return int(connection.execute(statement, {"p": project_id, "id": incident_id}).scalar_one())


@dataclass(frozen=True)
class LockedIncident:
    """An incident that a person acts on; it may be resolved already."""

    id: int
    deployment_id: int
    state: str
    owner: str | None


def lock_incident(connection: Connection, project_id: int, incident_id: int) -> LockedIncident | None:
    """Lock an incident with the alerts of its deployment against everybody else; None if there is none."""
    key = {"p": project_id, "id": incident_id}
    statement = text("SELECT id, deployment_id, state, owner FROM incidents WHERE project_id = :p AND id = :id")
    row = connection.execute(statement, key).mappings().first()
    if row is None:
        return None
    lock_deployment(connection, project_id, row["deployment_id"])
    return LockedIncident(**connection.execute(statement, key).mappings().one())


def set_owner(connection: Connection, project_id: int, incident_id: int, owner: str | None) -> None:
    connection.execute(
        text("UPDATE incidents SET owner = :owner WHERE project_id = :p AND id = :id"),
        {"p": project_id, "id": incident_id, "owner": owner},
    )


def write_history(
    connection: Connection, project_id: int, incident_id: int, *, actor: str, action: str, comment: str | None
) -> None:
    """Note what somebody did with an incident as a whole."""
    connection.execute(
        text("""
        INSERT INTO incident_history (project_id, incident_id, actor, action, comment)
        VALUES (:p, :id, :actor, :action, :comment)
        """),
        {"p": project_id, "id": incident_id, "actor": actor, "action": action, "comment": comment},
    )


class IncidentState(NamedTuple):
    state: str
    is_acknowledged: bool


def incident_state(connection: Connection, project_id: int, incident_id: int) -> IncidentState:
    row = connection.execute(
        text("""
        SELECT state, acknowledged_at IS NOT NULL AS is_acknowledged FROM incidents
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": incident_id},
    ).mappings()
    return IncidentState(**row.one())


def postpone_notification(connection: Connection, project_id: int, incident_id: int, at: datetime | None) -> None:
    connection.execute(
        text("UPDATE incidents SET page_at = :at WHERE project_id = :p AND id = :id"),
        {"at": at, "p": project_id, "id": incident_id},
    )


def reconsider_untold(connection: Connection, project_id: int) -> None:
    """Look again at what is open: somebody to tell of what nobody was told of may have been found."""
    _update_many(connection, project_id, "page_at = now()", "state <> 'resolved'")


def reconsider_postponed(connection: Connection, project_id: int) -> None:
    """Look again at what was held back; whether it is told is decided anew."""
    _update_many(connection, project_id, "page_at = now()", "state <> 'resolved' AND page_at > now()")


def mark_told_by_line(connection: Connection, project_id: int, incident_ids: Sequence[int]) -> None:
    """People are told of these incidents by the line of an import."""
    _update_many(
        connection, project_id, "paged_at = now()", "id = ANY(:ids) AND paged_at IS NULL", ids=incident_ids
    )


def _update_many(connection: Connection, project_id: int, change: str, where: str, **values: Any) -> None:
    """Change incidents of several deployments, locked in the order of these.

    A watch goes through its deployments in that order and keeps every row it has changed until it commits. Rows
    locked in the order in which they are stored would be a second order, and two orders are a deadlock.
    """
    connection.execute(
        text(f"""
        WITH locked AS (
            SELECT id FROM incidents WHERE project_id = :p AND {where} ORDER BY deployment_id, id FOR UPDATE
        )
        UPDATE incidents i SET {change} FROM locked WHERE i.project_id = :p AND i.id = locked.id
        """),  # noqa: S608 - text of ours
        {"p": project_id, **values},
    )


class IncidentPlace(NamedTuple):
    project_id: int
    deployment_id: int


def incidents_to_notify(connection: Connection) -> list[IncidentPlace]:
    """Open incidents whose time to be told has come."""
    rows = connection.execute(
        text("SELECT project_id, deployment_id FROM incidents WHERE state <> 'resolved' AND page_at <= now()")
    ).mappings()
    return [IncidentPlace(**row) for row in rows]
