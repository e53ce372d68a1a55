"""After an import: one line a project tells what is wrong now, to those who would have been told of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from gapwatch.alerts.deployment_labels import DeploymentLabels, labels_of
from gapwatch.store.alerting import alert_settings, alert_transitions, incidents, outbox, rewatches, watch_queue
from gapwatch.store.alerting.rewatches import Backfill, BackfillIncident
from gapwatch.store.core.database import Connection, Database
from gapwatch.watching.alert_changes import OpenAlert, changed_at
from gapwatch.watching.import_line import WrongNow, line_content, line_severity
from gapwatch.watching.notification import dates_by
from gapwatch.watching.phrases import AlertReason
from gapwatch.watching.routing import ChannelTarget, plan
from gapwatch.watching.rules import Rule

# An import is over when nothing came for so long; one that goes on in pieces has a line an hour at most.
QUIET_S = 30.0
AT_MOST_EVERY_S = 3600.0


def tell_backfills(database: Database, link_base: str) -> None:
    """Tell of imports that are over, and end what was told when all of it is over."""
    finished = database.run(lambda connection: rewatches.finished_backfills(connection, QUIET_S, AT_MOST_EVERY_S))
    for backfill in finished:
        database.run(_tell(backfill, link_base))
    database.run(_end_lines)


def _tell(backfill: Backfill, link_base: str) -> Callable[[Connection], None]:
    def tell(connection: Connection) -> None:
        project_id = backfill.project_id
        rules = {rule.name: rule for rule in alert_settings.rules(connection, project_id)}
        targets = alert_settings.targets(connection, project_id)
        now = watch_queue.now(connection)
        lines: dict[int, list[WrongNow]] = {}
        due: dict[int, datetime] = {}
        opened = rewatches.incidents_of_backfill(connection, backfill)
        for incident in opened:
            labels = labels_of(connection, project_id, incident.deployment_id)
            alerts = _audible(connection, labels, incident)
            if not alerts:
                continue
            wrong = _wrong_now(labels, incident, alerts)
            for channel_id, due_at, is_enough in _channels(labels, wrong, alerts, rules, targets, now):
                lines.setdefault(channel_id, []).append(wrong)
                if is_enough:
                    due[channel_id] = max(due.get(channel_id, due_at), due_at)
        if not rewatches.close_backfill(connection, backfill, is_told=bool(due)):
            return
        for channel_id, due_at in sorted(due.items()):
            content = line_content(backfill.episodes, lines[channel_id], f"{link_base}/alerts")
            key = outbox.line_key(connection, project_id, backfill.id)
            outbox.enqueue(
                connection, project_id, channel_id, "trigger", content, due_at=due_at, reason="import", key=key
            )
        incidents.mark_told_by_line(connection, project_id, [incident.id for incident in opened])

    return tell


def _audible(connection: Connection, labels: DeploymentLabels, incident: BackfillIncident) -> list[OpenAlert]:
    alerts = alert_transitions.open_alerts(connection, labels.project_id, labels.deployment_id)
    return [
        alert
        for alert in alerts
        if alert.incident_id == incident.id
        and not alert_settings.silencing(
            connection, labels.project_id, {**labels.words, "rule": alert.rule, "severity": alert.severity}
        )
    ]


def _wrong_now(labels: DeploymentLabels, incident: BackfillIncident, alerts: list[OpenAlert]) -> WrongNow:
    reasons = [
        AlertReason(alert.rule, alert.kind, alert.severity, alert.series, alert.evidence, alert.opened_at)
        for alert in alerts
    ]
    dated = [alert for alert in alerts if changed_at(alert.evidence) is not None]
    # As pages and messages date it.
    leading = max(dated, key=lambda one: (*dates_by(one.kind, one.series, one.severity), -one.id), default=None)
    since = None if leading is None else changed_at(leading.evidence)
    return WrongNow(labels.slug, since or incident.changed_at, incident.is_from_start, reasons)


def _channels(
    labels: DeploymentLabels,
    wrong: WrongNow,
    alerts: list[OpenAlert],
    rules: dict[str, Rule],
    targets: list[ChannelTarget],
    now: datetime,
) -> list[tuple[int, datetime, bool]]:
    """Channels whose line may name a deployment, and whether it is reason enough for a line there.

    Nobody is woken later because nobody answered: an import is no emergency.
    """
    at_once = [target for target in targets if target.routing.escalate_after_minutes is None]
    only = sorted({channel for alert in alerts if alert.rule in rules for channel in rules[alert.rule].channels})
    enough = {
        planned.channel_id
        for planned in plan(at_once, severity=line_severity(wrong), words=labels.words, only=[], now=now)
    }
    named = plan(at_once, severity="warning", words=labels.words, only=only, now=now)
    return [(planned.channel_id, planned.due_at, planned.channel_id in enough) for planned in named]


def _end_lines(connection: Connection) -> None:
    """A line whose incidents are all over ends wherever it arrived, so that it stands open nowhere."""
    for project_id, backfill_id in rewatches.finish_lines(connection):
        outbox.end_line(connection, project_id, outbox.line_key(connection, project_id, backfill_id))
