"""What a person answers to "Was this silence normal?", and what it teaches."""

from __future__ import annotations

from datetime import datetime

from gapwatch.errors import Conflict
from gapwatch.incidents.alert_actions import comment_on
from gapwatch.incidents.alert_moves import move_alert
from gapwatch.incidents.incident_lifecycle import close_if_over
from gapwatch.store.alerting import alert_transitions, incidents, presence
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Connection
from gapwatch.watching.alert_changes import OpenAlert
from gapwatch.watching.rhythm import SAME_GAP_S
from gapwatch.watching.silence import ALL_ROBOTS, SenderPresence


def answer_silence(
    connection: Connection, project_id: int, alert_id: int, actor: str, comment: str | None, *, normal: bool
) -> bool:
    """Learn from an answer; False if there is no such alert.

    A normal silence ends its alert, and one like it, at that time of the week and so long, alerts no more. One
    that was not normal stays open and teaches nothing.
    """
    alert = alert_transitions.lock_alert(connection, project_id, alert_id)
    if alert is None:
        return False
    if alert.kind != "no_data":
        raise Conflict("Only a silence can be normal. This alert is about what was sent, not about what was not.")
    sender = _sender(connection, project_id, alert)
    if sender is not None:
        _teach(connection, project_id, alert, sender, normal=normal)
    said = "normal" if normal else "not normal"
    words = said if comment is None else f"{said}: {comment}"
    if not normal or alert.state == "resolved":
        return comment_on(connection, project_id, alert_id, actor, words)
    move_alert(connection, project_id, alert, "resolve", actor, words)
    if alert.incident_id is not None:
        close_if_over(connection, project_id, alert.deployment_id, {"resolved_by": actor, "comment": words})
    return True


def answer_silences_of(
    connection: Connection, project_id: int, incident_id: int, actor: str, comment: str | None, *, normal: bool
) -> bool:
    """The same for every open silence of an incident; False if there is no such incident."""
    incident = incidents.lock_incident(connection, project_id, incident_id)
    if incident is None:
        return False
    silences = [
        alert
        for alert in alert_transitions.open_alerts(connection, project_id, incident.deployment_id)
        if alert.incident_id == incident_id and alert.kind == "no_data"
    ]
    if not silences:
        raise Conflict("No silence of this incident is open; answer on the page of the alert that is over.")
    for alert in silences:
        answer_silence(connection, project_id, alert.id, actor, comment, normal=normal)
    return True


def _sender(connection: Connection, project_id: int, alert: OpenAlert) -> SenderPresence | None:
    if alert.series == ALL_ROBOTS:
        return presence.deployment(connection, project_id, alert.deployment_id)
    name = alert.series.removeprefix("robot:")
    return presence.robots_named(connection, project_id, [name]).get(name)


def _teach(
    connection: Connection, project_id: int, alert: OpenAlert, sender: SenderPresence, *, normal: bool
) -> None:
    heard_at = alert.evidence.get("heard_at")
    if heard_at is None:
        return
    start = datetime.fromisoformat(heard_at).timestamp()
    if abs(sender.rhythm.heard_at - start) <= SAME_GAP_S:
        # It lasts. What it was is learned once it is over, with its whole length.
        sender.silence = "normal" if normal else "fault"
    elif normal:
        end = alert.resolved_at or now(connection)
        sender.rhythm.teach_normal(start, end.timestamp())
    else:
        sender.rhythm.forget_gap(start)
    presence.save(connection, project_id, [sender])
