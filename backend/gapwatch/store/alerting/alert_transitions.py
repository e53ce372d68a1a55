"""Rows of alerts and of their history.

Whoever changes alerts of a deployment holds its lock (`watch_queue.lock_deployment`), so that changes never
interleave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.alerting.watch_queue import lock_deployment
from gapwatch.watching.alert_changes import AlertChange, OpenAlert, changed_at
from gapwatch.watching.rules import Rule

_ALERT = """
SELECT id, rule, kind, series, state, severity, evidence, before_no_data, incident_id, deployment_id, dry_run,
       opened_at, state_since, resolved_at, acknowledged_at, acknowledged_by, regressed, escalating
FROM alerts WHERE project_id = :p
"""


def open_alerts(connection: Connection, project_id: int, deployment_id: int) -> list[OpenAlert]:
    rows = connection.execute(
        text(f"{_ALERT} AND deployment_id = :d AND state <> 'resolved' ORDER BY id"),
        {"p": project_id, "d": deployment_id},
    ).mappings()
    return [OpenAlert(**row) for row in rows]


def open_alerts_of_kind(connection: Connection, project_id: int, kind: str) -> list[OpenAlert]:
    rows = connection.execute(
        text(f"{_ALERT} AND kind = :kind AND state <> 'resolved' ORDER BY id"), {"p": project_id, "kind": kind}
    ).mappings()
    return [OpenAlert(**row) for row in rows]


def open_alert(
    connection: Connection, project_id: int, deployment_id: int, rule: str, series: str
) -> OpenAlert | None:
    row = (
        connection.execute(
            text(f"{_ALERT} AND deployment_id = :d AND rule = :rule AND series = :series AND state <> 'resolved'"),
            {"p": project_id, "d": deployment_id, "rule": rule, "series": series},
        )
        .mappings()
        .first()
    )
    return None if row is None else OpenAlert(**row)


def lock_alert(connection: Connection, project_id: int, alert_id: int) -> OpenAlert | None:
    """Lock an alert against everybody else and return it, resolved or not; None if there is none."""
    key = {"p": project_id, "id": alert_id}
    deployment_id = connection.execute(
        text("SELECT deployment_id FROM alerts WHERE project_id = :p AND id = :id"), key
    ).scalar()
    if deployment_id is None:
        return None
    lock_deployment(connection, project_id, deployment_id)
    return OpenAlert(**connection.execute(text(f"{_ALERT} AND id = :id"), key).mappings().one())


def last_resolved_at(
    connection: Connection, project_id: int, deployment_id: int, rule: str, series: str
) -> datetime | None:
    return connection.execute(
        text("""
        SELECT max(resolved_at) FROM alerts
        WHERE project_id = :p AND deployment_id = :d AND rule = :rule AND series = :series
        """),
        {"p": project_id, "d": deployment_id, "rule": rule, "series": series},
    ).scalar()


def add_alert(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    rule: Rule,
    series: str,
    *,
    state: str,
    evidence: Mapping[str, Any],
    regressed: bool,
) -> int:
    return int(
        connection.execute(
            text("""
            INSERT INTO alerts (project_id, deployment_id, rule, kind, series, state, severity, evidence, dry_run,
                                regressed, changed_at)
            VALUES (:p, :d, :rule, :kind, :series, :state, :severity, CAST(:evidence AS jsonb), :dry_run,
                    :regressed, :changed_at)
            RETURNING id
            """),
            {
                "p": project_id,
                "d": deployment_id,
                "rule": rule.name,
                "kind": rule.kind,
                "series": series,
                "state": state,
                "severity": rule.severity,
                "evidence": json.dumps(evidence),
                "dry_run": rule.dry_run,
                "regressed": regressed,
                "changed_at": changed_at(evidence),
            },
        ).scalar_one()
    )


def update_alert(connection: Connection, project_id: int, alert_id: int, change: AlertChange) -> None:
    connection.execute(
        text("""
        UPDATE alerts SET state = :state, before_no_data = :before_no_data, evidence = CAST(:evidence AS jsonb),
            state_since = :state_since, resolved_at = :resolved_at, acknowledged_at = :acknowledged_at,
            acknowledged_by = :acknowledged_by,
            changed_at = CASE WHEN evidence @> CAST(:evidence AS jsonb) THEN changed_at
                ELSE coalesce(:changed_at, changed_at) END
        WHERE project_id = :p AND id = :id
        """),
        {
            "p": project_id,
            "id": alert_id,
            "state": change.state,
            "before_no_data": change.before_no_data,
            "evidence": json.dumps(change.evidence),
            "state_since": change.state_since,
            "resolved_at": change.resolved_at,
            "acknowledged_at": change.acknowledged_at,
            "acknowledged_by": change.acknowledged_by,
            "changed_at": changed_at(change.evidence),
        },
    )


def set_severity(
    connection: Connection, project_id: int, alert_id: int, severity: str, evidence: Mapping[str, Any]
) -> None:
    connection.execute(
        text("""
        UPDATE alerts SET severity = :severity, evidence = CAST(:evidence AS jsonb)
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": alert_id, "severity": severity, "evidence": json.dumps(evidence)},
    )


def note_now(
    connection: Connection, project_id: int, alert_id: int, now: Mapping[str, Any], *, worse: bool
) -> None:
    """Note how an open alert stands today; `worse` stays once it was true."""
    connection.execute(
        text("""
        UPDATE alerts SET evidence = evidence || jsonb_build_object('now', CAST(:now AS jsonb)),
            escalating = escalating OR :worse
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": alert_id, "now": json.dumps(now), "worse": worse},
    )


def write_history(
    connection: Connection,
    project_id: int,
    alert_id: int,
    *,
    from_state: str | None,
    to_state: str,
    alert_input: str,
    actor: str,
    comment: str | None,
) -> None:
    connection.execute(
        text("""
        INSERT INTO alert_transitions (project_id, alert_id, from_state, to_state, input, actor, comment)
        VALUES (:p, :id, :from_state, :to_state, :input, :actor, :comment)
        """),
        {
            "p": project_id,
            "id": alert_id,
            "from_state": from_state,
            "to_state": to_state,
            "input": alert_input,
            "actor": actor,
            "comment": comment,
        },
    )
