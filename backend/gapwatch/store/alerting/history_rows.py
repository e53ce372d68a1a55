"""Alerts and incidents of history, written in their own time. Whoever calls holds the lock of the deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.watching.history import AlertSpan, IncidentSpan, KnownAlert

SERVICE = "gapwatch"
HISTORY_ENDS = "history ends here"

# Whether people were told of the incident `i` by itself, touched it, or it has a reason that is not of history.
_KEPT_INCIDENT = """
(NOT i.from_history OR i.owner IS NOT NULL OR i.acknowledged_at IS NOT NULL
 OR EXISTS (SELECT 1 FROM incident_history h WHERE h.project_id = i.project_id AND h.incident_id = i.id)
 OR EXISTS (SELECT 1 FROM deliveries d WHERE d.project_id = i.project_id AND d.incident_id = i.id)
 OR EXISTS (SELECT 1 FROM alerts k WHERE k.project_id = i.project_id AND k.incident_id = i.id
            AND (NOT k.from_history OR EXISTS (
                SELECT 1 FROM alert_transitions t
                WHERE t.project_id = k.project_id AND t.alert_id = k.id AND t.actor <> 'gapwatch'))))
"""


def known_alerts(
    connection: Connection, project_id: int, deployment_id: int, rules: Sequence[str], since: datetime
) -> list[KnownAlert]:
    """Alerts of these rules since a time, by the episodes' own time where it is known."""
    rows = connection.execute(
        text(f"""
        SELECT * FROM (
            SELECT a.id, a.rule, a.series, a.state, a.resolved_at,
                   coalesce((a.evidence #>> '{{decided_by,at}}')::timestamptz, a.opened_at) AS began_at,
                   (NOT a.from_history OR a.acknowledged_at IS NOT NULL
                    OR EXISTS (SELECT 1 FROM alert_transitions t WHERE t.project_id = a.project_id
                               AND t.alert_id = a.id AND t.actor <> 'gapwatch')
                    OR EXISTS (SELECT 1 FROM incidents i WHERE i.project_id = a.project_id
                               AND i.id = a.incident_id AND {_KEPT_INCIDENT})) AS is_kept
            FROM alerts a WHERE a.project_id = :p AND a.deployment_id = :d AND a.rule = ANY(:rules)) x
        WHERE began_at >= :since OR state <> 'resolved' ORDER BY id
        """),  # noqa: S608
        {"p": project_id, "d": deployment_id, "rules": list(rules), "since": since},
    ).mappings()
    return [KnownAlert(**row) for row in rows]


def delete_alerts(connection: Connection, project_id: int, alert_ids: list[int]) -> None:
    """Delete alerts that nobody saw and that the whole of history does not show."""
    key = {"p": project_id, "ids": alert_ids}
    connection.execute(text("DELETE FROM alert_transitions WHERE project_id = :p AND alert_id = ANY(:ids)"), key)
    connection.execute(text("DELETE FROM alerts WHERE project_id = :p AND id = ANY(:ids)"), key)


def add_alert_span(connection: Connection, project_id: int, deployment_id: int, span: AlertSpan) -> int:
    alert_id = int(
        connection.execute(
            text("""
            INSERT INTO alerts (project_id, deployment_id, rule, kind, series, state, severity, evidence, dry_run,
                                regressed, opened_at, state_since, resolved_at, changed_at, from_history)
            VALUES (:p, :d, :rule, :kind, :series, :state, :severity, CAST(:evidence AS jsonb), :dry_run,
                    :regressed, :opened_at, :state_since, :resolved_at, :changed_at, true)
            RETURNING id
            """),
            {"p": project_id, "d": deployment_id, **_columns(span)},
        ).scalar_one()
    )
    _write_transitions(connection, project_id, alert_id, span)
    return alert_id


def rewrite_alert(connection: Connection, project_id: int, alert_id: int, span: AlertSpan) -> None:
    connection.execute(
        text("""
        UPDATE alerts SET severity = :severity, evidence = CAST(:evidence AS jsonb), dry_run = :dry_run,
            regressed = :regressed, opened_at = :opened_at, state_since = :state_since, resolved_at = :resolved_at,
            changed_at = :changed_at, escalating = false,
            before_no_data = CASE WHEN state = 'no_data' AND :state = 'firing' THEN before_no_data END,
            state = CASE WHEN state = 'no_data' AND :state = 'firing' THEN state ELSE :state END
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": alert_id, **_columns(span)},
    )
    connection.execute(
        text("DELETE FROM alert_transitions WHERE project_id = :p AND alert_id = :id"),
        {"p": project_id, "id": alert_id},
    )
    _write_transitions(connection, project_id, alert_id, span)


def set_changed_at(connection: Connection, project_id: int, alert_id: int, at: datetime | None) -> None:
    connection.execute(
        text("UPDATE alerts SET changed_at = coalesce(:at, changed_at) WHERE project_id = :p AND id = :id"),
        {"p": project_id, "id": alert_id, "at": at},
    )


def _columns(span: AlertSpan) -> dict[str, Any]:
    since = span.resolved_at or span.fired_at or span.opened_at
    return {
        "rule": span.rule.name,
        "kind": span.rule.kind,
        "series": span.series,
        "state": span.state,
        "severity": span.rule.severity,
        "evidence": json.dumps(span.evidence),
        "dry_run": span.rule.dry_run,
        "regressed": span.regressed,
        "opened_at": span.opened_at,
        "state_since": since,
        "resolved_at": span.resolved_at,
        "changed_at": span.changed_at,
    }


def _write_transitions(connection: Connection, project_id: int, alert_id: int, span: AlertSpan) -> None:
    moves: list[tuple[datetime, str | None, str, str, str | None]] = []
    if span.fired_at != span.opened_at:
        moves.append((span.opened_at, None, "pending", "suspect", None))
    if span.fired_at is not None:
        moves.append((span.fired_at, "pending" if moves else None, "firing", "breach", None))
    if span.resolved_at is not None:
        comment = HISTORY_ENDS if span.is_cut else None
        moves.append((span.resolved_at, moves[-1][2], "resolved", "recovery", comment))
    connection.execute(
        text("""
        INSERT INTO alert_transitions (project_id, alert_id, at, from_state, to_state, input, actor, comment)
        VALUES (:p, :id, :at, :from_state, :to_state, :input, :actor, :comment)
        """),
        [
            {
                "p": project_id,
                "id": alert_id,
                "at": at,
                "from_state": from_state,
                "to_state": to_state,
                "input": alert_input,
                "actor": SERVICE,
                "comment": comment,
            }
            for at, from_state, to_state, alert_input, comment in moves
        ],
    )


@dataclass(frozen=True)
class KnownIncident:
    """A stored incident. `is_kept`: people were told of it or touched it."""

    id: int
    state: str
    opened_at: datetime
    resolved_at: datetime | None
    is_kept: bool

    @property
    def is_open(self) -> bool:
        return self.state != "resolved"


def known_incidents(connection: Connection, project_id: int, deployment_id: int) -> list[KnownIncident]:
    rows = connection.execute(
        text(f"""
        SELECT i.id, i.state, i.opened_at, i.resolved_at, {_KEPT_INCIDENT} AS is_kept FROM incidents i
        WHERE i.project_id = :p AND i.deployment_id = :d ORDER BY i.opened_at, i.id
        """),  # noqa: S608
        {"p": project_id, "d": deployment_id},
    ).mappings()
    return [KnownIncident(**row) for row in rows]


def assign_history(connection: Connection, project_id: int, incident_id: int | None, alert_ids: list[int]) -> None:
    connection.execute(
        text("UPDATE alerts SET incident_id = :i WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "i": incident_id, "ids": alert_ids},
    )


def delete_incidents(connection: Connection, project_id: int, incident_ids: list[int]) -> None:
    key = {"p": project_id, "ids": incident_ids}
    connection.execute(
        text("UPDATE alerts SET incident_id = NULL WHERE project_id = :p AND incident_id = ANY(:ids)"), key
    )
    connection.execute(text("DELETE FROM incidents WHERE project_id = :p AND id = ANY(:ids)"), key)


def write_incident(
    connection: Connection, project_id: int, deployment_id: int, incident_id: int | None, span: IncidentSpan
) -> int:
    """Insert an incident of history, or bring one up to date."""
    columns = {
        "p": project_id,
        "d": deployment_id,
        "state": "firing" if span.resolved_at is None else "resolved",
        "severity": span.severity,
        "opened_at": span.opened_at,
        "changed_at": span.changed_at,
        "resolved_at": span.resolved_at,
    }
    if incident_id is None:
        statement = """
        INSERT INTO incidents (project_id, deployment_id, state, severity, opened_at, changed_at, resolved_at,
                               from_history)
        VALUES (:p, :d, :state, :severity, :opened_at, :changed_at, :resolved_at, true) RETURNING id
        """
    else:
        columns["id"] = incident_id
        statement = """
        UPDATE incidents SET state = :state, severity = :severity, opened_at = :opened_at,
            changed_at = :changed_at, resolved_at = :resolved_at, page_at = NULL
        WHERE project_id = :p AND deployment_id = :d AND id = :id RETURNING id
        """
    return int(connection.execute(text(statement), columns).scalar_one())


def cover_incident(
    connection: Connection,
    project_id: int,
    incident_id: int,
    backfill_id: int,
    kinds: Sequence[str],
    facts: Mapping[str, Any],
) -> None:
    """Count an open incident as told: the line of its import tells of it, or has told."""
    connection.execute(
        text("""
        UPDATE incidents SET backfill_id = coalesce(backfill_id, :backfill), paged_severity = severity,
            page_at = NULL, content = content || CAST(:facts AS jsonb), told_reasons = CAST(:kinds AS text[])
        WHERE project_id = :p AND id = :id
        """),
        {
            "p": project_id,
            "id": incident_id,
            "backfill": backfill_id,
            "kinds": sorted(kinds),
            "facts": json.dumps(facts),
        },
    )


def date_acknowledgement(connection: Connection, project_id: int, incident_id: int, after: timedelta) -> None:
    """Let an incident of history be taken on so long after it opened, and its alerts not before they did."""
    key = {"p": project_id, "i": incident_id, "after": after}
    for statement in _DATED:
        connection.execute(text(statement), key)


_OWN = "least(now(), i.opened_at + CAST(:after AS interval))"
_OF_ALERT = "least(now(), greatest(a.opened_at, i.opened_at) + CAST(:after AS interval))"
_DATED = (
    f"""
    UPDATE alert_transitions t SET at = {_OF_ALERT} FROM alerts a
    JOIN incidents i ON i.project_id = a.project_id AND i.id = a.incident_id
    WHERE t.project_id = :p AND a.project_id = :p AND t.alert_id = a.id AND i.id = :i
      AND t.input = 'acknowledge'
    """,  # noqa: S608
    f"""
    UPDATE alerts a SET acknowledged_at = {_OF_ALERT}, state_since = {_OF_ALERT} FROM incidents i
    WHERE a.project_id = :p AND i.project_id = :p AND a.incident_id = i.id AND i.id = :i
      AND a.state = 'acknowledged'
    """,  # noqa: S608
    f"""
    UPDATE incident_history h SET at = {_OWN} FROM incidents i
    WHERE h.project_id = :p AND i.project_id = :p AND h.incident_id = i.id AND i.id = :i
      AND h.action = 'acknowledge'
    """,  # noqa: S608
    f"UPDATE incidents i SET acknowledged_at = {_OWN} WHERE i.project_id = :p AND i.id = :i",  # noqa: S608
)
