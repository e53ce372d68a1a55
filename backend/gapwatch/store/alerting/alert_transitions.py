"""Alerts: every move of one is a row of its history.

Whoever moves alerts of a deployment holds its lock (`watching.lock_deployment`), so moves never interleave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, text

from gapwatch.watching.rules import Rule
from gapwatch.watching.states import Input, State, move

# A series that opens again within this time after it was resolved has regressed.
REGRESSED_WITHIN = timedelta(days=7)
SERVICE = "gapwatch"


@dataclass(frozen=True)
class OpenAlert:
    id: int
    rule: str
    kind: str
    series: str
    state: State
    severity: str
    evidence: dict[str, Any]
    before_no_data: State | None
    incident_id: int | None
    deployment_id: int
    dry_run: bool
    opened_at: datetime
    regressed: bool
    escalating: bool


OPEN_ALERT = """
SELECT id, rule, kind, series, state, severity, evidence, before_no_data, incident_id, deployment_id, dry_run,
       opened_at, regressed, escalating
FROM alerts WHERE project_id = :p
"""


def open_alerts(connection: Connection, project_id: int, deployment_id: int) -> list[OpenAlert]:
    rows = connection.execute(
        text(f"{OPEN_ALERT} AND deployment_id = :d AND state <> 'resolved' ORDER BY id"),
        {"p": project_id, "d": deployment_id},
    )
    return [OpenAlert(*row) for row in rows]


def apply_input(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    rule: Rule,
    series: str,
    given: Input,
    evidence: Mapping[str, Any],
) -> None:
    """Move the alert of a series, or open one. The caller settles the incident afterwards."""
    current = _open_of(connection, project_id, deployment_id, rule.name, series)
    if current is not None:
        found = dict(evidence) if given in {"suspect", "breach"} and current.state == "pending" else None
        move_alert(connection, project_id, current, given, SERVICE, evidence.get("note"), found)
        return
    moved = move("ok", given)
    if moved.state == "ok":
        return
    alert_id = connection.execute(
        text(""" INSERT INTO alerts (project_id, deployment_id, rule, kind, series, state, severity, evidence,
        dry_run, regressed) SELECT :p, :d, :rule, :kind, :series, :state, :severity, CAST(:evidence AS jsonb),
        :dry_run, EXISTS (
            SELECT 1 FROM alerts WHERE project_id = :p AND deployment_id = :d AND rule = :rule AND series = :series
            AND resolved_at > now() - CAST(:within AS interval))
        RETURNING id
        """),
        {
            "p": project_id,
            "d": deployment_id,
            "rule": rule.name,
            "kind": rule.kind,
            "series": series,
            "state": moved.state,
            "severity": rule.severity,
            "evidence": json.dumps(evidence),
            "dry_run": rule.dry_run,
            "within": REGRESSED_WITHIN,
        },
    ).scalar_one()
    write_history(connection, project_id, alert_id, None, moved.state, given, SERVICE, evidence.get("note"))


def note_now(
    connection: Connection, project_id: int, alert: OpenAlert, now: Mapping[str, Any], *, worse: bool
) -> None:
    """How an open alert stands today, quietly; whether it has become worse than when it fired."""
    connection.execute(
        text("""
        UPDATE alerts SET evidence = evidence || jsonb_build_object('now', CAST(:now AS jsonb)),
            escalating = escalating OR :worse
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": alert.id, "now": json.dumps(now), "worse": worse},
    )


def stop_data(
    connection: Connection, project_id: int, deployment_id: int, given: Literal["data_stopped", "data_again"]
) -> None:
    """The data of a deployment stopped or came again: every open alert of it learns so, but for silence itself."""
    for alert in open_alerts(connection, project_id, deployment_id):
        if alert.kind != "no_data":
            move_alert(connection, project_id, alert, given, SERVICE, None)


def end_alerts_of_missing_rules(
    connection: Connection, project_id: int, deployment_id: int, names: set[str]
) -> None:
    """A rule that was removed or switched off has no open alert."""
    for alert in open_alerts(connection, project_id, deployment_id):
        if alert.rule not in names:
            move_alert(connection, project_id, alert, "recovery", SERVICE, "the rule is not in force any more")


def _open_of(
    connection: Connection, project_id: int, deployment_id: int, rule: str, series: str
) -> OpenAlert | None:
    row = connection.execute(
        text(f"{OPEN_ALERT} AND deployment_id = :d AND rule = :rule AND series = :series AND state <> 'resolved'"),
        {"p": project_id, "d": deployment_id, "rule": rule, "series": series},
    ).first()
    return None if row is None else OpenAlert(*row)


def move_alert(
    connection: Connection,
    project_id: int,
    alert: OpenAlert,
    given: Input,
    actor: str,
    comment: str | None,
    evidence: Mapping[str, Any] | None = None,
) -> bool:
    """One input to one alert, with its line of history; whether anything is worth telling."""
    moved = move(alert.state, given, alert.before_no_data)
    if moved.state == alert.state and moved.before == alert.before_no_data and comment is None:
        return False
    connection.execute(
        text("""
        UPDATE alerts SET state = :state, before_no_data = :before,
            evidence = coalesce(CAST(:evidence AS jsonb), evidence),
            state_since = CASE WHEN state = :state THEN state_since ELSE now() END,
            resolved_at = CASE WHEN :state = 'resolved' THEN now() END,
            acknowledged_at = CASE WHEN :given = 'acknowledge' THEN coalesce(acknowledged_at, now())
                                   ELSE acknowledged_at END,
            acknowledged_by = CASE WHEN :given = 'acknowledge' THEN coalesce(acknowledged_by, :actor)
                                   ELSE acknowledged_by END
        WHERE project_id = :p AND id = :id
        """),
        {
            "p": project_id,
            "id": alert.id,
            "state": moved.state,
            "before": moved.before,
            "evidence": None if evidence is None else json.dumps(evidence),
            "given": given,
            "actor": actor,
        },
    )
    write_history(connection, project_id, alert.id, alert.state, moved.state, given, actor, comment)
    return moved.notify is not None


def write_history(
    connection: Connection,
    project_id: int,
    alert_id: int,
    before: str | None,
    after: str,
    given: str,
    actor: str,
    comment: str | None,
) -> None:
    connection.execute(
        text("""
        INSERT INTO alert_transitions (project_id, alert_id, from_state, to_state, input, actor, comment)
        VALUES (:p, :id, :before, :after, :given, :actor, :comment)
        """),
        {
            "p": project_id,
            "id": alert_id,
            "before": before,
            "after": after,
            "given": given,
            "actor": actor,
            "comment": comment,
        },
    )
