"""What people do to alerts: take them on, call them over, remark on them, silence them. For API and pages alike.

Each is one step of the caller's transaction: the moves, their history, and what channels have to be told.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, text

from gapwatch.store.alerting import detectors
from gapwatch.store.alerting.alert_settings import add_silence
from gapwatch.store.alerting.alert_transitions import (
    OPEN_ALERT,
    OpenAlert,
    move_alert,
    open_alerts,
    write_history,
)
from gapwatch.store.alerting.incidents import close_if_over
from gapwatch.store.alerting.outbox import enqueue_to_informed
from gapwatch.store.alerting.watch_queue import (
    deployment_words,
    lock_deployment,
    now,
)
from gapwatch.watching.matchers import Match


def find_open(connection: Connection, project_id: int, alert_id: int) -> OpenAlert | None:
    """An alert of this id, locked against everybody else; None if there is none. It may be resolved."""
    place = {"p": project_id, "id": alert_id}
    deployment_id = connection.execute(
        text("SELECT deployment_id FROM alerts WHERE project_id = :p AND id = :id"), place
    ).scalar()
    if deployment_id is None:
        return None
    lock_deployment(connection, deployment_id)
    return OpenAlert(*connection.execute(text(f"{OPEN_ALERT} AND id = :id"), place).one())


def acknowledge(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str | None) -> bool:
    """Somebody takes it on: the alert, its whole incident, and every channel that was told. False if absent."""
    alert = find_open(connection, project_id, alert_id)
    if alert is None:
        return False
    if alert.incident_id is None:
        move_alert(connection, project_id, alert, "acknowledge", actor, comment)
        return True
    moved = [
        move_alert(connection, project_id, one, "acknowledge", actor, comment if one.id == alert_id else None)
        for one in open_alerts(connection, project_id, alert.deployment_id)
        if one.incident_id == alert.incident_id and (one.state != "acknowledged" or one.id == alert_id)
    ]
    if any(moved):
        connection.execute(
            text("""
            UPDATE incidents SET state = 'acknowledged', acknowledged_at = now(), acknowledged_by = :actor
            WHERE project_id = :p AND id = :id AND state <> 'resolved'
            """),
            {"p": project_id, "id": alert.incident_id, "actor": actor},
        )
        told = {"acknowledged_by": actor, "comment": comment}
        enqueue_to_informed(connection, project_id, alert.incident_id, "acknowledge", told)
    return True


def resolve(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str | None) -> bool:
    """Somebody says it is over. Its detector begins anew, and tells if it is not. False if absent."""
    alert = find_open(connection, project_id, alert_id)
    if alert is None:
        return False
    if alert.state != "resolved":
        move_alert(connection, project_id, alert, "resolve", actor, comment)
        detectors.restart(connection, project_id, alert.deployment_id, alert.rule, alert.series)
        if alert.incident_id is not None:
            close_if_over(connection, project_id, alert.deployment_id, {"resolved_by": actor, "comment": comment})
    return True


def comment_on(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str) -> bool:
    """A remark in the history of an alert. False if absent."""
    alert = find_open(connection, project_id, alert_id)
    if alert is None:
        return False
    write_history(connection, project_id, alert_id, alert.state, alert.state, "comment", actor, comment)
    return True


def silence_alert(
    connection: Connection, project_id: int, alert_id: int, actor: str, reason: str, lasting: timedelta
) -> bool:
    """The rule of an alert is silent for its deployment for so long; it is still recorded. False if absent."""
    alert = find_open(connection, project_id, alert_id)
    if alert is None:
        return False
    at = now(connection)
    slug = deployment_words(connection, project_id, alert.deployment_id)["slug"]
    match = Match(deployment=[str(slug)], rule=[alert.rule])
    add_silence(
        connection, project_id, match=match, owner=actor, reason=reason, starts_at=at, ends_at=at + lasting
    )
    return comment_on(connection, project_id, alert_id, actor, f"silenced: {reason}")
