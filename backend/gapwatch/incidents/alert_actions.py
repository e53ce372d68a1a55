"""What people do to alerts: acknowledge, resolve, comment, silence. Each is False if there is no such alert."""

from __future__ import annotations

from datetime import timedelta

from gapwatch.incidents.alert_moves import move_alert
from gapwatch.incidents.incident_lifecycle import close_if_over, tell_informed
from gapwatch.store.alerting import alert_transitions, detectors, incidents
from gapwatch.store.alerting.alert_settings import add_silence
from gapwatch.store.alerting.watch_queue import deployment_words, now
from gapwatch.store.core.database import Connection
from gapwatch.watching.alert_changes import acknowledged_with
from gapwatch.watching.matchers import Match


def acknowledge(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str | None) -> bool:
    """Take on an alert with its whole incident, and tell every channel that knows of it."""
    alert = alert_transitions.lock_alert(connection, project_id, alert_id)
    if alert is None:
        return False
    open_alerts = alert_transitions.open_alerts(connection, project_id, alert.deployment_id)
    is_told = [
        move_alert(connection, project_id, other, "acknowledge", actor, comment if other.id == alert_id else None)
        for other in acknowledged_with(alert, open_alerts)
    ]
    if any(is_told) and alert.incident_id is not None:
        incidents.mark_acknowledged(connection, project_id, alert.incident_id, actor)
        facts = {"acknowledged_by": actor, "comment": comment}
        tell_informed(connection, project_id, alert.incident_id, "acknowledge", facts)
    return True


def resolve(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str | None) -> bool:
    """Call an alert over. Its detector begins anew, and tells if it is not."""
    alert = alert_transitions.lock_alert(connection, project_id, alert_id)
    if alert is None:
        return False
    if alert.state != "resolved":
        move_alert(connection, project_id, alert, "resolve", actor, comment)
        detectors.restart(connection, project_id, alert.deployment_id, alert.rule, alert.series)
        if alert.incident_id is not None:
            close_if_over(connection, project_id, alert.deployment_id, {"resolved_by": actor, "comment": comment})
    return True


def comment_on(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str) -> bool:
    alert = alert_transitions.lock_alert(connection, project_id, alert_id)
    if alert is None:
        return False
    alert_transitions.write_history(
        connection,
        project_id,
        alert_id,
        from_state=alert.state,
        to_state=alert.state,
        alert_input="comment",
        actor=actor,
        comment=comment,
    )
    return True


def silence_alert(
    connection: Connection, project_id: int, alert_id: int, actor: str, reason: str, lasting: timedelta
) -> bool:
    """Silence the rule of an alert for its deployment; it is still recorded."""
    alert = alert_transitions.lock_alert(connection, project_id, alert_id)
    if alert is None:
        return False
    at = now(connection)
    slug = deployment_words(connection, project_id, alert.deployment_id)["slug"]
    match = Match(deployment=[str(slug)], rule=[alert.rule])
    add_silence(
        connection, project_id, match=match, owner=actor, reason=reason, starts_at=at, ends_at=at + lasting
    )
    return comment_on(connection, project_id, alert_id, actor, f"silenced: {reason}")
