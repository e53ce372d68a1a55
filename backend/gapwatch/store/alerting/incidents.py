"""Incidents: what is wrong with a deployment, whatever number of alerts tell of it, and whether people know."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.alerting.alert_transitions import OpenAlert, open_alerts
from gapwatch.store.alerting.outbox import enqueue_to_informed


@dataclass(frozen=True)
class Incident:
    id: int
    deployment_id: int
    state: str
    severity: str
    opened_at: datetime
    notified_at: datetime | None
    notified_severity: str | None
    notify_at: datetime | None
    acknowledged_at: datetime | None
    content: dict[str, Any]


def open_incident(connection: Connection, project_id: int, deployment_id: int) -> Incident | None:
    row = connection.execute(
        text("""
        SELECT id, deployment_id, state, severity, opened_at, paged_at AS notified_at,
               paged_severity AS notified_severity, page_at AS notify_at, acknowledged_at, content
        FROM incidents WHERE project_id = :p AND deployment_id = :d AND state <> 'resolved'
        """),
        {"p": project_id, "d": deployment_id},
    ).first()
    return None if row is None else Incident(*row)


def join_incident(
    connection: Connection, project_id: int, deployment_id: int, alerts: Sequence[OpenAlert], severity: str
) -> Incident:
    """The open incident of a deployment, made if there is none, with these alerts in it and of this severity."""
    incident = open_incident(connection, project_id, deployment_id)
    place = {"p": project_id, "d": deployment_id, "severity": severity}
    if incident is None:
        statement = """
        INSERT INTO incidents (project_id, deployment_id, state, severity) VALUES (:p, :d, 'firing', :severity)
        """
        connection.execute(text(statement), place)
    elif incident.severity != severity:
        statement = """ UPDATE incidents SET severity = :severity WHERE project_id = :p AND deployment_id = :d
        AND state <> 'resolved'
        """
        connection.execute(text(statement), place)
    incident = open_incident(connection, project_id, deployment_id)
    assert incident is not None  # noqa: S101 - narrows the type
    joining = [alert.id for alert in alerts if alert.incident_id is None]
    if joining:
        connection.execute(
            text("UPDATE alerts SET incident_id = :i WHERE project_id = :p AND id = ANY(:ids)"),
            {"i": incident.id, "p": project_id, "ids": joining},
        )
    return incident


def close_if_over(connection: Connection, project_id: int, deployment_id: int, told: Mapping[str, Any]) -> bool:
    """Resolve the incident of a deployment when none of its alerts is open; whether it was.

    Something that is merely worth knowing does not keep open what people were told of as a warning.
    """
    incident = open_incident(connection, project_id, deployment_id)
    if incident is None:
        return False
    left = [one for one in open_alerts(connection, project_id, deployment_id) if one.incident_id == incident.id]
    if any(one.severity != "info" or incident.notified_severity in {None, "info"} for one in left):
        return False
    connection.execute(
        text("UPDATE alerts SET incident_id = NULL WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": [one.id for one in left]},
    )
    connection.execute(
        text("""
        UPDATE incidents SET state = 'resolved', resolved_at = now(), page_at = NULL
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": incident.id},
    )
    enqueue_to_informed(connection, project_id, incident.id, "resolve", told)
    return True


def last_notified_at(connection: Connection, project_id: int, deployment_id: int) -> datetime | None:
    statement = text("SELECT max(paged_at) FROM incidents WHERE project_id = :p AND deployment_id = :d")
    return connection.execute(statement, {"p": project_id, "d": deployment_id}).scalar()


def postpone_notification(connection: Connection, project_id: int, incident_id: int, at: datetime | None) -> None:
    connection.execute(
        text("UPDATE incidents SET page_at = :at WHERE project_id = :p AND id = :id"),
        {"at": at, "p": project_id, "id": incident_id},
    )


def mark_notified(connection: Connection, project_id: int, incident: Incident, content: Mapping[str, Any]) -> None:
    """People are being told; what is more severe than what somebody took on has to be taken on again."""
    connection.execute(
        text("""
        UPDATE incidents SET paged_at = now(), paged_severity = severity, page_at = NULL, state = 'firing',
            acknowledged_at = NULL, acknowledged_by = NULL, content = CAST(:content AS jsonb)
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": incident.id, "content": json.dumps(content)},
    )


def incidents_to_notify(connection: Connection) -> list[tuple[int, int]]:
    """Project and deployment of open incidents whose time to be told has come."""
    rows = connection.execute(
        text("SELECT project_id, deployment_id FROM incidents WHERE state <> 'resolved' AND page_at <= now()")
    )
    return [(row.project_id, row.deployment_id) for row in rows]
