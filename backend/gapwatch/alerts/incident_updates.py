"""From open alerts to one incident a deployment, and from an incident to one notification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from gapwatch.alerts.deployment_labels import DeploymentLabels, labels_of
from gapwatch.alerts.incident_facts import IncidentNews, gather
from gapwatch.incidents.alert_moves import SERVICE
from gapwatch.incidents.incident_lifecycle import close_if_over, join_incident
from gapwatch.store.alerting import (
    alert_settings,
    alert_transitions,
    incidents,
    notified_reasons,
    outbox,
    watch_queue,
)
from gapwatch.store.alerting.incidents import OpenIncident
from gapwatch.store.core.database import Connection
from gapwatch.watching.alert_changes import OpenAlert, changed_at
from gapwatch.watching.notification import build
from gapwatch.watching.notify_policy import (
    OpenReason,
    ReasonDecision,
    Telling,
    knowledge_of,
    notification_for,
    standing_after,
    worst,
)
from gapwatch.watching.reason_kinds import ReasonKind, reason_kind
from gapwatch.watching.routing import PlannedDelivery, earliest, plan
from gapwatch.watching.rules import Rule

FLAP_MINUTES = 10.0


def settle(connection: Connection, labels: DeploymentLabels, rules: Sequence[Rule], link_base: str) -> None:
    """Bring the incident of a deployment in line with its alerts, and tell people what they must know now.

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
    tellings = _note_recoveries(connection, labels, incident, alerts)
    by_name = {rule.name: rule for rule in rules}
    audible = [alert for alert in alerts if not _is_silenced(connection, labels, alert)]
    now = watch_queue.now(connection)
    planned = _plan(connection, labels, _by_kind(audible), by_name, now)
    informed = outbox.informed_channels(connection, project_id, incident.id)
    reasons = {
        kind: _open_reason(of_kind, by_name, {delivery.channel_id for delivery in planned[kind]} <= set(informed))
        for kind, of_kind in _by_kind(audible).items()
    }
    decisions = notification_for(reasons, tellings, is_acknowledged=incident.acknowledged_by is not None, now=now)
    same = {kind: reasons[kind].severity for kind in decisions if decisions[kind].knowledge == "same"}
    # People know it by now: when the one recovers, the other is no news.
    notified_reasons.cover(connection, project_id, deployment_id, incident.id, same, incident.opened_at)
    wanted = {kind: decision for kind, decision in decisions.items() if decision.headline is not None}
    told = _told_now(wanted, planned, now)
    if told:
        headlines = {kind: str(wanted[kind].headline) for kind in told}
        deliveries = [delivery for kind in told for delivery in planned[kind]]
        _notify(connection, labels, incident, audible, tellings, headlines, deliveries, now, link_base)
    look_again = [wanted[kind].at for kind in wanted if kind not in told and wanted[kind].at > now]
    if _is_something_untold(alerts, audible, tellings):
        look_again.append(alert_settings.silence_ends(connection, project_id) or now)
    incidents.postpone_notification(connection, project_id, incident.id, min(look_again, default=None))


def settle_one(connection: Connection, project_id: int, deployment_id: int, link_base: str) -> None:
    """Settle an incident whose notification was held back until now."""
    watch_queue.lock_deployment(connection, project_id, deployment_id)
    rules = alert_settings.rules(connection, project_id)
    settle(connection, labels_of(connection, project_id, deployment_id), rules, link_base)


def _note_recoveries(
    connection: Connection, labels: DeploymentLabels, incident: OpenIncident, alerts: list[OpenAlert]
) -> list[Telling]:
    """Write down which kinds of reasons that people know of are over, or less severe; return what they know."""
    project_id = labels.project_id
    severities = {kind: worst([alert.severity for alert in of_kind]) for kind, of_kind in _by_kind(alerts).items()}
    tellings = notified_reasons.tellings(connection, project_id, labels.deployment_id, incident.id)
    has_changed = False
    for telling in tellings:
        if telling.is_over:
            continue
        standing = standing_after(telling, severities)
        if standing is None:
            notified_reasons.set_over(connection, project_id, incident.id, telling.kind)
        elif standing != telling.standing:
            notified_reasons.set_standing(connection, project_id, incident.id, telling.kind, standing)
        has_changed |= standing != telling.standing
    if not has_changed:
        return tellings
    return notified_reasons.tellings(connection, project_id, labels.deployment_id, incident.id)


def _plan(
    connection: Connection,
    labels: DeploymentLabels,
    alerts: Mapping[ReasonKind, list[OpenAlert]],
    by_name: dict[str, Rule],
    now: datetime,
) -> dict[ReasonKind, list[PlannedDelivery]]:
    """Who is told of each kind of reason. Each alert finds its own way: the channels that one rule names are not
    those of another.
    """
    if not alerts:
        return {}
    targets = alert_settings.targets(connection, labels.project_id)
    return {
        kind: [
            delivery
            for alert in of_kind
            for delivery in plan(
                targets,
                severity=alert.severity,
                words=labels.words,
                only=_named_channels(alert, by_name),
                now=now,
            )
        ]
        for kind, of_kind in alerts.items()
    }


def _told_now(
    wanted: Mapping[ReasonKind, ReasonDecision],
    planned: Mapping[ReasonKind, list[PlannedDelivery]],
    now: datetime,
) -> list[ReasonKind]:
    """The kinds to tell of now: those whose time has come and that somebody wants to know, and with them those
    held back that would only go to the same channels.
    """
    due = [kind for kind, decision in wanted.items() if decision.at <= now and planned[kind]]
    reached = {delivery.channel_id for kind in due for delivery in planned[kind]}
    return [
        kind
        for kind in wanted
        if kind in due or (planned[kind] and {delivery.channel_id for delivery in planned[kind]} <= reached)
    ]


def _notify(
    connection: Connection,
    labels: DeploymentLabels,
    incident: OpenIncident,
    alerts: list[OpenAlert],
    tellings: Sequence[Telling],
    headlines: Mapping[ReasonKind, str],
    deliveries: Sequence[PlannedDelivery],
    now: datetime,
    link_base: str,
) -> None:
    known = sorted({telling.kind for telling in tellings if telling.is_of_this_incident})
    news = IncidentNews(headlines, known, incident.acknowledged_by)
    severities = {
        kind: worst([alert.severity for alert in of_kind])
        for kind, of_kind in _by_kind(alerts).items()
        if kind in headlines
    }
    number = notified_reasons.add_tellings(
        connection, labels.project_id, labels.deployment_id, incident.id, severities
    )
    content = {
        **build(gather(connection, labels, alerts, f"{link_base}/incidents/{incident.id}", now, news)),
        "incident": incident.id,
        "number": number,
        "opened_at": incident.opened_at.isoformat().replace("+00:00", "Z"),
    }
    standing = [telling.standing for telling in tellings if telling.is_of_this_incident and not telling.is_over]
    incidents.mark_notified(
        connection,
        labels.project_id,
        incident.id,
        content,
        severity=worst([*severities.values(), *standing]),
        kinds=list(headlines),
    )
    if incident.acknowledged_by is not None:
        # They belong to what was taken on; what is news escalates by itself.
        outbox.supersede_waiting(connection, labels.project_id, incident.id)
    for delivery in earliest(deliveries):
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


def _by_kind(alerts: Sequence[OpenAlert]) -> dict[ReasonKind, list[OpenAlert]]:
    found: dict[ReasonKind, list[OpenAlert]] = {}
    for alert in alerts:
        found.setdefault(reason_kind(alert.kind, alert.series), []).append(alert)
    return found


def _open_reason(alerts: Sequence[OpenAlert], by_name: dict[str, Rule], all_channels_informed: bool) -> OpenReason:
    known = [by_name[alert.rule].params.flap_minutes for alert in alerts if alert.rule in by_name]
    severity = worst([alert.severity for alert in alerts])
    fell_at = _fell_at(alerts) if all_channels_informed else None
    return OpenReason(severity, max(known, default=FLAP_MINUTES), fell_at)


def _fell_at(alerts: Sequence[OpenAlert]) -> datetime | None:
    """When success fell last, by alerts of one kind; None if one of a gate is about something else."""
    if any(alert.kind == "stage_gate" and alert.series.partition("@")[0] != "success" for alert in alerts):
        return None
    return max((at for alert in alerts if (at := changed_at(alert.evidence)) is not None), default=None)


def _is_silenced(connection: Connection, labels: DeploymentLabels, alert: OpenAlert) -> bool:
    words = {**labels.words, "rule": alert.rule, "severity": alert.severity}
    return alert_settings.silencing(connection, labels.project_id, words)


def _is_something_untold(
    alerts: Sequence[OpenAlert], audible: Sequence[OpenAlert], tellings: Sequence[Telling]
) -> bool:
    """Whether a silence holds back what people do not know."""
    silenced = [alert for alert in alerts if alert not in audible]
    return any(
        knowledge_of(kind, worst([alert.severity for alert in of_kind]), tellings) != "told"
        for kind, of_kind in _by_kind(silenced).items()
    )


def _named_channels(alert: OpenAlert, by_name: dict[str, Rule]) -> tuple[int, ...]:
    rule = by_name.get(alert.rule)
    return () if rule is None else rule.channels
