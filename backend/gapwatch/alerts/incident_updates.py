"""From open alerts to one incident a deployment, and from an incident to one notification."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gapwatch.alerts.deployment_labels import DeploymentLabels, labels_of
from gapwatch.alerts.incident_facts import gather
from gapwatch.incidents.alert_moves import SERVICE
from gapwatch.incidents.incident_lifecycle import close_if_over, join_incident
from gapwatch.store.alerting import alert_settings, alert_transitions, incidents, outbox, watch_queue
from gapwatch.store.alerting.incidents import OpenIncident
from gapwatch.store.core.database import Connection
from gapwatch.watching.alert_changes import OpenAlert
from gapwatch.watching.notification import build
from gapwatch.watching.notify_policy import notification_for, worst
from gapwatch.watching.routing import plan
from gapwatch.watching.rules import Rule

FLAP_MINUTES = 10.0


def settle(connection: Connection, labels: DeploymentLabels, rules: Sequence[Rule], link_base: str) -> None:
    """Bring the incident of a deployment in line with its alerts, and tell people if they must know now.

    Called at the end of everything that may have moved alerts, in its transaction, and again when a notification
    that was held back may go out.
    """
    project_id, deployment_id = labels.project_id, labels.deployment_id
    close_if_over(connection, project_id, deployment_id, {"resolved_by": SERVICE})
    open_alerts = alert_transitions.open_alerts(connection, project_id, deployment_id)
    alerts = [alert for alert in open_alerts if alert.is_in_incidents]
    if not alerts:
        return
    incident = join_incident(connection, project_id, deployment_id, alerts)
    by_name = {rule.name: rule for rule in rules}
    audible = [alert for alert in alerts if not _is_silenced(connection, labels, alert)]
    now = watch_queue.now(connection)
    if not audible:
        _hold(connection, incident, now, project_id)
        return
    notification = notification_for(
        worst([alert.severity for alert in audible]),
        notified_severity=incident.notified_severity,
        last_notified_at=incidents.last_notified_at(connection, project_id, deployment_id),
        now=now,
        flap_minutes=_flap_minutes(audible, by_name),
    )
    if notification.at is None or notification.at > now:
        incidents.postpone_notification(connection, project_id, incident.id, notification.at)
        return
    _notify(connection, labels, incident, audible, by_name, now, link_base)


def settle_one(connection: Connection, project_id: int, deployment_id: int, link_base: str) -> None:
    """Settle an incident whose notification was held back until now."""
    watch_queue.lock_deployment(connection, deployment_id)
    rules = alert_settings.rules(connection, project_id)
    settle(connection, labels_of(connection, project_id, deployment_id), rules, link_base)


def _notify(
    connection: Connection,
    labels: DeploymentLabels,
    incident: OpenIncident,
    alerts: list[OpenAlert],
    by_name: dict[str, Rule],
    now: datetime,
    link_base: str,
) -> None:
    severity = worst([alert.severity for alert in alerts])
    targets = alert_settings.targets(connection, labels.project_id)
    only = sorted({channel for alert in alerts for channel in _named_channels(alert, by_name)})
    planned = plan(targets, severity=severity, words=labels.words, only=only, now=now)
    if not planned:
        # Nobody wants to know this; who joins later decides anew.
        incidents.postpone_notification(connection, labels.project_id, incident.id, None)
        return
    content = {
        **build(gather(connection, labels, alerts, f"{link_base}/incidents/{incident.id}", now)),
        "incident": incident.id,
        "opened_at": incident.opened_at.isoformat().replace("+00:00", "Z"),
    }
    incidents.mark_notified(connection, labels.project_id, incident, content)
    for delivery in planned:
        outbox.enqueue(
            connection,
            labels.project_id,
            delivery.channel_id,
            "trigger",
            content,
            incident_id=incident.id,
            due_at=delivery.due_at,
            reason=delivery.reason,
        )


def _is_silenced(connection: Connection, labels: DeploymentLabels, alert: OpenAlert) -> bool:
    words = {**labels.words, "rule": alert.rule, "severity": alert.severity}
    return alert_settings.silencing(connection, labels.project_id, words)


def _hold(connection: Connection, incident: OpenIncident, now: datetime, project_id: int) -> None:
    """Look again when the silence may be over."""
    ends = alert_settings.silence_ends(connection, project_id)
    if incident.notified_at is None:
        incidents.postpone_notification(connection, project_id, incident.id, ends or now)


def _flap_minutes(alerts: list[OpenAlert], by_name: dict[str, Rule]) -> float:
    known = [by_name[alert.rule].params.flap_minutes for alert in alerts if alert.rule in by_name]
    return max(known, default=FLAP_MINUTES)


def _named_channels(alert: OpenAlert, by_name: dict[str, Rule]) -> tuple[int, ...]:
    rule = by_name.get(alert.rule)
    return () if rule is None else rule.channels
