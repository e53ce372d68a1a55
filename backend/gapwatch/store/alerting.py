"""Alerts and incidents: every move is a row of history and, where people are told, rows of the outbox beside it.

Whoever moves alerts of a deployment holds its lock (`watching.lock_deployment`), so moves never interleave. What
people do here is called by the API and the pages alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, text

from gapwatch.store import detectors
from gapwatch.store.alert_settings import add_silence
from gapwatch.store.outbox import enqueue_to_informed
from gapwatch.store.watching import deployment_words, lock_deployment, now
from gapwatch.watching.match import Match
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


_OPEN = """
SELECT id, rule, kind, series, state, severity, evidence, before_no_data, incident_id, deployment_id, dry_run,
       opened_at, regressed, escalating
FROM alerts WHERE project_id = :p
"""


def open_alerts(connection: Connection, project_id: int, deployment_id: int) -> list[OpenAlert]:
    rows = connection.execute(
        text(f"{_OPEN} AND deployment_id = :d AND state <> 'resolved' ORDER BY id"),
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
        _move(connection, project_id, current, given, SERVICE, evidence.get("note"), found)
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
    _write_history(connection, project_id, alert_id, None, moved.state, given, SERVICE, evidence.get("note"))


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
            _move(connection, project_id, alert, given, SERVICE, None)


def end_alerts_of_missing_rules(
    connection: Connection, project_id: int, deployment_id: int, names: set[str]
) -> None:
    """A rule that was removed or switched off has no open alert."""
    for alert in open_alerts(connection, project_id, deployment_id):
        if alert.rule not in names:
            _move(connection, project_id, alert, "recovery", SERVICE, "the rule is not in force any more")


def find_open(connection: Connection, project_id: int, alert_id: int) -> OpenAlert | None:
    """An alert of this id, locked against everybody else; None if there is none. It may be resolved."""
    place = {"p": project_id, "id": alert_id}
    deployment_id = connection.execute(
        text("SELECT deployment_id FROM alerts WHERE project_id = :p AND id = :id"), place
    ).scalar()
    if deployment_id is None:
        return None
    lock_deployment(connection, deployment_id)
    return OpenAlert(*connection.execute(text(f"{_OPEN} AND id = :id"), place).one())


def acknowledge(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str | None) -> bool:
    """Somebody takes it on: the alert, its whole incident, and every channel that was told. False if absent."""
    alert = find_open(connection, project_id, alert_id)
    if alert is None:
        return False
    if alert.incident_id is None:
        _move(connection, project_id, alert, "acknowledge", actor, comment)
        return True
    moved = [
        _move(connection, project_id, one, "acknowledge", actor, comment if one.id == alert_id else None)
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
        _move(connection, project_id, alert, "resolve", actor, comment)
        detectors.restart(connection, project_id, alert.deployment_id, alert.rule, alert.series)
        if alert.incident_id is not None:
            close_if_over(connection, project_id, alert.deployment_id, {"resolved_by": actor, "comment": comment})
    return True


def comment_on(connection: Connection, project_id: int, alert_id: int, actor: str, comment: str) -> bool:
    """A remark in the history of an alert. False if absent."""
    alert = find_open(connection, project_id, alert_id)
    if alert is None:
        return False
    _write_history(connection, project_id, alert_id, alert.state, alert.state, "comment", actor, comment)
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


@dataclass(frozen=True)
class Incident:
    id: int
    deployment_id: int
    state: str
    severity: str
    opened_at: datetime
    paged_at: datetime | None
    paged_severity: str | None
    page_at: datetime | None
    acknowledged_at: datetime | None
    content: dict[str, Any]


def open_incident(connection: Connection, project_id: int, deployment_id: int) -> Incident | None:
    row = connection.execute(
        text(""" SELECT id, deployment_id, state, severity, opened_at, paged_at, paged_severity, page_at,
        acknowledged_at, content FROM incidents WHERE project_id = :p AND deployment_id = :d AND state <>
        'resolved'
        """),
        {"p": project_id, "d": deployment_id},
    ).first()
    return None if row is None else Incident(*row)


def join_incident(
    connection: Connection, project_id: int, deployment_id: int, alerts: Sequence[OpenAlert], severity: str
) -> Incident:
    """The open incident of a deployment, made if there is none, with these alerts in it and of this severity."""
    incident = open_incident(connection, project_id, deployment_id)
    place = {"p": project_id, "d": deployment_id, "severity": severity}
    if incident is None:
        statement = """
        INSERT INTO incidents (project_id, deployment_id, state, severity) VALUES (:p, :d, 'firing', :severity)
        """
        connection.execute(text(statement), place)
    elif incident.severity != severity:
        statement = """ UPDATE incidents SET severity = :severity WHERE project_id = :p AND deployment_id = :d
        AND state <> 'resolved'
        """
        connection.execute(text(statement), place)
    incident = open_incident(connection, project_id, deployment_id)
    assert incident is not None  # noqa: S101 - narrows the type
    joining = [alert.id for alert in alerts if alert.incident_id is None]
    if joining:
        connection.execute(
            text("UPDATE alerts SET incident_id = :i WHERE project_id = :p AND id = ANY(:ids)"),
            {"i": incident.id, "p": project_id, "ids": joining},
        )
    return incident


def close_if_over(connection: Connection, project_id: int, deployment_id: int, told: Mapping[str, Any]) -> bool:
    """Resolve the incident of a deployment when none of its alerts is open; whether it was.

    Something that is merely worth knowing does not keep open what people were told of as a warning.
    """
    incident = open_incident(connection, project_id, deployment_id)
    if incident is None:
        return False
    left = [one for one in open_alerts(connection, project_id, deployment_id) if one.incident_id == incident.id]
    if any(one.severity != "info" or incident.paged_severity in {None, "info"} for one in left):
        return False
    connection.execute(
        text("UPDATE alerts SET incident_id = NULL WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": [one.id for one in left]},
    )
    connection.execute(
        text("""
        UPDATE incidents SET state = 'resolved', resolved_at = now(), page_at = NULL
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": incident.id},
    )
    enqueue_to_informed(connection, project_id, incident.id, "resolve", told)
    return True


def last_page_at(connection: Connection, project_id: int, deployment_id: int) -> datetime | None:
    statement = text("SELECT max(paged_at) FROM incidents WHERE project_id = :p AND deployment_id = :d")
    return connection.execute(statement, {"p": project_id, "d": deployment_id}).scalar()


def postpone_page(connection: Connection, project_id: int, incident_id: int, at: datetime | None) -> None:
    connection.execute(
        text("UPDATE incidents SET page_at = :at WHERE project_id = :p AND id = :id"),
        {"at": at, "p": project_id, "id": incident_id},
    )


def mark_paged(connection: Connection, project_id: int, incident: Incident, content: Mapping[str, Any]) -> None:
    """People are being told; what is more severe than what somebody took on has to be taken on again."""
    connection.execute(
        text("""
        UPDATE incidents SET paged_at = now(), paged_severity = severity, page_at = NULL, state = 'firing',
            acknowledged_at = NULL, acknowledged_by = NULL, content = CAST(:content AS jsonb)
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": incident.id, "content": json.dumps(content)},
    )


def incidents_to_page(connection: Connection) -> list[tuple[int, int]]:
    """Project and deployment of open incidents whose time to be told has come."""
    rows = connection.execute(
        text("SELECT project_id, deployment_id FROM incidents WHERE state <> 'resolved' AND page_at <= now()")
    )
    return [(row.project_id, row.deployment_id) for row in rows]


def _open_of(
    connection: Connection, project_id: int, deployment_id: int, rule: str, series: str
) -> OpenAlert | None:
    row = connection.execute(
        text(f"{_OPEN} AND deployment_id = :d AND rule = :rule AND series = :series AND state <> 'resolved'"),
        {"p": project_id, "d": deployment_id, "rule": rule, "series": series},
    ).first()
    return None if row is None else OpenAlert(*row)


def _move(
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
    _write_history(connection, project_id, alert.id, alert.state, moved.state, given, actor, comment)
    return moved.notify is not None


def _write_history(
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
