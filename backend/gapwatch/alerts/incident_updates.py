"""From open alerts to one incident a deployment, and from an incident to one notification."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gapwatch.alerts.deployment_labels import DeploymentLabels, labels_of
from gapwatch.alerts.incident_facts import gather
from gapwatch.store.alerting import (
    alert_settings,
    alert_transitions,
    incidents,
    outbox,
    watch_queue,
)
from gapwatch.store.alerting.alert_transitions import OpenAlert
from gapwatch.store.core.database import Connection
from gapwatch.watching.notification import build
from gapwatch.watching.notify_policy import notification_for, worst
from gapwatch.watching.routing import plan
from gapwatch.watching.rules import Rule

FLAP_MINUTES = 10.0


def settle(connection: Connection, place: DeploymentLabels, rules: Sequence[Rule], link_base: str) -> None:
    """Bring the incident of a deployment in line with its alerts, and tell people if they must know now.

    Called at the end of everything that may have moved alerts, in its transaction, and again when a
    notification that was held back may go out.
    """
    project_id, deployment_id = place.project_id, place.deployment_id
    incidents.close_if_over(connection, project_id, deployment_id, {"resolved_by": alert_transitions.SERVICE})
    shown = [one for one in alert_transitions.open_alerts(connection, project_id, deployment_id) if _counts(one)]
    if not shown:
        return
    severity = worst([one.severity for one in shown])
    incident = incidents.join_incident(connection, project_id, deployment_id, shown, severity)
    by_name = {rule.name: rule for rule in rules}
    heard = [one for one in shown if not _is_silenced(connection, place, one)]
    now = watch_queue.now(connection)
    if not heard:
        # Looked at again when the silence may be over.
        _hold(connection, incident, now, project_id)
        return
    notification = notification_for(
        worst([one.severity for one in heard]),
        notified_severity=incident.notified_severity,
        last_notified_at=incidents.last_notified_at(connection, project_id, deployment_id),
        now=now,
        flap_minutes=_flap_minutes(heard, by_name),
    )
    if notification.at is None or notification.at > now:
        incidents.postpone_notification(connection, project_id, incident.id, notification.at)
        return
    _notify(connection, place, incident, heard, by_name, now, link_base)


def settle_one(connection: Connection, project_id: int, deployment_id: int, link_base: str) -> None:
    """Settle an incident whose notification was held back until now."""
    watch_queue.lock_deployment(connection, deployment_id)
    rules = alert_settings.rules(connection, project_id)
    settle(connection, labels_of(connection, project_id, deployment_id), rules, link_base)


def _notify(
    connection: Connection,
    place: DeploymentLabels,
    incident: incidents.Incident,
    alerts: list[OpenAlert],
    by_name: dict[str, Rule],
    now: datetime,
    link_base: str,
) -> None:
    severity = worst([one.severity for one in alerts])
    targets = alert_settings.targets(connection, place.project_id)
    only = sorted({channel for one in alerts for channel in _named(one, by_name)})
    planned = plan(targets, severity=severity, words=place.words, only=only, now=now)
    if not planned:
        # Nobody wants to know this; who joins later decides anew.
        incidents.postpone_notification(connection, place.project_id, incident.id, None)
        return
    content = {
        **build(gather(connection, place, alerts, f"{link_base}/alerts/{alerts[0].id}", now)),
        "incident": incident.id,
        "opened_at": incident.opened_at.isoformat().replace("+00:00", "Z"),
    }
    incidents.mark_notified(connection, place.project_id, incident, content)
    outbox.enqueue_notification(connection, place.project_id, incident.id, planned, content)


def _counts(alert: OpenAlert) -> bool:
    return alert.state != "pending" and not alert.dry_run


def _is_silenced(connection: Connection, place: DeploymentLabels, alert: OpenAlert) -> bool:
    words = {**place.words, "rule": alert.rule, "severity": alert.severity}
    return alert_settings.silencing(connection, place.project_id, words)


def _hold(connection: Connection, incident: incidents.Incident, now: datetime, project_id: int) -> None:
    ends = alert_settings.silence_ends(connection, project_id)
    if incident.notified_at is None:
        incidents.postpone_notification(connection, project_id, incident.id, ends or now)


def _flap_minutes(alerts: list[OpenAlert], by_name: dict[str, Rule]) -> float:
    known = [by_name[one.rule].params.flap_minutes for one in alerts if one.rule in by_name]
    return max(known, default=FLAP_MINUTES)


def _named(alert: OpenAlert, by_name: dict[str, Rule]) -> tuple[int, ...]:
    rule = by_name.get(alert.rule)
    return () if rule is None else rule.channels
