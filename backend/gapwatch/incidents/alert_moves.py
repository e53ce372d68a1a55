"""Inputs to alerts: each moves an alert, or opens one, and leaves a line of history."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from gapwatch.store.alerting import alert_transitions
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Connection
from gapwatch.watching import alert_changes
from gapwatch.watching.alert_changes import OpenAlert
from gapwatch.watching.detector_run import StoredDetector
from gapwatch.watching.rules import Rule
from gapwatch.watching.states import Input
from gapwatch.watching.worsening import standing_now

SERVICE = "gapwatch"


def apply_input(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    rule: Rule,
    series: str,
    alert_input: Input,
    evidence: Mapping[str, Any],
) -> None:
    """Move the alert of a series, or open one. The caller settles the incident afterwards."""
    comment = evidence.get("note")
    alert = alert_transitions.open_alert(connection, project_id, deployment_id, rule.name, series)
    if alert is not None:
        move_alert(connection, project_id, alert, alert_input, SERVICE, comment, evidence)
        return
    state = alert_changes.opening_state(alert_input)
    if state is None:
        return
    resolved_at = alert_transitions.last_resolved_at(connection, project_id, deployment_id, rule.name, series)
    alert_id = alert_transitions.add_alert(
        connection,
        project_id,
        deployment_id,
        rule,
        series,
        state=state,
        evidence=evidence,
        regressed=alert_changes.has_regressed(resolved_at, now(connection)),
    )
    alert_transitions.write_history(
        connection,
        project_id,
        alert_id,
        from_state=None,
        to_state=state,
        alert_input=alert_input,
        actor=SERVICE,
        comment=comment,
    )


def move_alert(
    connection: Connection,
    project_id: int,
    alert: OpenAlert,
    alert_input: Input,
    actor: str,
    comment: str | None,
    evidence: Mapping[str, Any] | None = None,
) -> bool:
    """Give an alert an input; whether channels have to be told."""
    change = alert_changes.change_alert(
        alert, alert_input, actor=actor, comment=comment, now=now(connection), evidence=evidence
    )
    if change is None:
        return False
    alert_transitions.update_alert(connection, project_id, alert.id, change)
    alert_transitions.write_history(
        connection,
        project_id,
        alert.id,
        from_state=alert.state,
        to_state=change.state,
        alert_input=alert_input,
        actor=actor,
        comment=comment,
    )
    return change.is_told


def raise_severity(
    connection: Connection, project_id: int, alert: OpenAlert, severity: str, evidence: Mapping[str, Any]
) -> None:
    """Make an open alert more severe, with the evidence of today. The caller settles the incident afterwards."""
    alert_transitions.set_severity(connection, project_id, alert.id, severity, evidence)
    alert_transitions.write_history(
        connection,
        project_id,
        alert.id,
        from_state=alert.state,
        to_state=alert.state,
        alert_input="breach",
        actor=SERVICE,
        comment=f"{alert.severity} became {severity}",
    )


def note_data(
    connection: Connection, project_id: int, deployment_id: int, alert_input: Literal["data_stopped", "data_again"]
) -> None:
    """The data of a deployment stopped or came again: its open alerts learn so."""
    alerts = alert_transitions.open_alerts(connection, project_id, deployment_id)
    for alert in alert_changes.without_data(alerts):
        move_alert(connection, project_id, alert, alert_input, SERVICE, None)


def end_alerts_of_missing_rules(
    connection: Connection, project_id: int, deployment_id: int, rules: Collection[str]
) -> None:
    alerts = alert_transitions.open_alerts(connection, project_id, deployment_id)
    for alert in alert_changes.of_missing_rules(alerts, rules):
        move_alert(connection, project_id, alert, "recovery", SERVICE, "the rule is not in force any more")


def note_standing(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    states: Mapping[tuple[str, str], StoredDetector],
) -> None:
    """Note how open alerts stand today, by their detectors."""
    for alert in alert_transitions.open_alerts(connection, project_id, deployment_id):
        stored = states.get((alert.rule, alert.series))
        now = None if stored is None else standing_now(stored.state, alert.evidence)
        if now is not None:
            alert_transitions.note_now(connection, project_id, alert.id, now.facts, worse=now.is_worse)
