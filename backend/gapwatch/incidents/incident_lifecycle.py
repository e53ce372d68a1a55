"""An incident from its first alert to its last: opened, joined, closed, and told to who knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from gapwatch.store.alerting import alert_transitions, incidents, outbox
from gapwatch.store.alerting.incidents import OpenIncident
from gapwatch.store.core.database import Connection
from gapwatch.watching.alert_changes import OpenAlert
from gapwatch.watching.notify_policy import is_over, worst


def join_incident(
    connection: Connection, project_id: int, deployment_id: int, alerts: Sequence[OpenAlert]
) -> OpenIncident:
    """Put alerts into the open incident of their deployment, which may be new and is as severe as they are."""
    severity = worst([alert.severity for alert in alerts])
    incident = incidents.open_incident(connection, project_id, deployment_id)
    if incident is None:
        incident = incidents.add_incident(connection, project_id, deployment_id, severity)
    elif incident.severity != severity:
        incidents.set_severity(connection, project_id, incident.id, severity)
        incident = replace(incident, severity=severity)
    joining = [alert.id for alert in alerts if alert.incident_id is None]
    if joining:
        incidents.assign_alerts(connection, project_id, incident.id, joining)
        incidents.note_change(connection, project_id, incident.id)
    return incident


def close_if_over(connection: Connection, project_id: int, deployment_id: int, facts: Mapping[str, Any]) -> None:
    """Resolve the incident of a deployment if it is over; `facts` say by whom."""
    incident = incidents.open_incident(connection, project_id, deployment_id)
    if incident is None:
        return
    alerts = alert_transitions.open_alerts(connection, project_id, deployment_id)
    remaining = [alert for alert in alerts if alert.incident_id == incident.id]
    if not is_over([alert.severity for alert in remaining], incident.notified_severity):
        return
    incidents.assign_alerts(connection, project_id, None, [alert.id for alert in remaining])
    incidents.mark_resolved(connection, project_id, incident.id)
    tell_informed(connection, project_id, incident.id, "resolve", facts)


def tell_informed(
    connection: Connection,
    project_id: int,
    incident_id: int,
    action: Literal["acknowledge", "resolve"],
    facts: Mapping[str, Any],
) -> None:
    """Tell what became of an incident to every channel that was, or is about to be, told of it."""
    content = incidents.incident_content(connection, project_id, incident_id)
    content |= {name: value for name, value in facts.items() if value is not None}
    for channel_id in outbox.informed_channels(connection, project_id, incident_id):
        outbox.enqueue(connection, project_id, channel_id, action, content, incident_id=incident_id)
