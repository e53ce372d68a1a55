"""Reading alerts, incidents and deliveries, for the API and the pages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, text

from gapwatch.store.alerting.outbox import LINE_KEY

_ALERTS = """
SELECT a.id, a.rule, a.kind, d.slug AS deployment, s.name AS site, d.stage, a.series, a.state, a.severity,
       a.evidence, a.opened_at, a.state_since, a.resolved_at, a.acknowledged_at, a.acknowledged_by, a.dry_run,
       a.regressed, a.escalating, a.changed_at, a.deployment_id, a.incident_id AS incident
FROM alerts a JOIN deployments d ON d.project_id = a.project_id AND d.id = a.deployment_id
LEFT JOIN sites s ON s.project_id = d.project_id AND s.id = d.site_id
WHERE a.project_id = :p
"""

# Whether the delivery `d` is the line of the import that the incident came with, and names its deployment.
_IN_A_LINE = f"""
(d.incident_id IS NULL AND d.reason = 'import' AND EXISTS (
    SELECT 1 FROM incidents i JOIN projects p ON p.id = i.project_id
    JOIN deployments s ON s.project_id = i.project_id AND s.id = i.deployment_id
    WHERE i.project_id = d.project_id AND i.id = :incident AND d.dedup_key = {LINE_KEY.format("i.backfill_id")}
      AND (i.resolved_at IS NULL OR i.resolved_at >= d.created_at)
      AND (d.content #> '{{import,changed}}' ? s.slug
           OR d.content #> '{{import,from_the_first_day}}' ? s.slug)))
"""  # noqa: S608


def alerts_page(
    connection: Connection,
    project_id: int,
    *,
    states: list[str],
    deployment: str | None,
    severity: str | None,
    incident: int | None,
    before_id: int | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Return alerts, newest first; no states means all of them."""
    rows = connection.execute(
        text(
            f"{_ALERTS} AND (:any_state OR a.state = ANY(:states))"
            " AND (CAST(:deployment AS text) IS NULL OR d.slug = :deployment)"
            " AND (CAST(:severity AS text) IS NULL OR a.severity = :severity)"
            " AND (CAST(:incident AS int) IS NULL OR a.incident_id = :incident)"
            " AND (CAST(:before AS int) IS NULL OR a.id < :before) ORDER BY a.id DESC LIMIT :limit"
        ),
        {
            "p": project_id,
            "any_state": not states,
            "states": states,
            "deployment": deployment,
            "severity": severity,
            "incident": incident,
            "before": before_id,
            "limit": limit,
        },
    ).mappings()
    return [_alert(row) for row in rows]


def find_alert(connection: Connection, project_id: int, alert_id: int) -> dict[str, Any] | None:
    """Return an alert with its history, its incident and its deliveries."""
    place = {"p": project_id, "id": alert_id}
    row = connection.execute(text(f"{_ALERTS} AND a.id = :id"), place).mappings().first()
    if row is None:
        return None
    history = connection.execute(
        text("""
        SELECT at, from_state, to_state, input, actor, comment FROM alert_transitions
        WHERE project_id = :p AND alert_id = :id ORDER BY id
        """),
        place,
    ).mappings()
    alert = _alert(row)
    incident_id = alert["incident"]
    alert["history"] = [dict(transition) for transition in history]
    alert["incident"] = None if incident_id is None else _incident(connection, project_id, incident_id)
    alert["deliveries"] = (
        []
        if incident_id is None
        else deliveries_page(
            connection, project_id, incident=incident_id, channel=None, state=None, before_id=None, limit=100
        )
    )
    return alert


def _alert(row: RowMapping) -> dict[str, Any]:
    """Evidence that is no object tells nothing."""
    return {**row, "evidence": row["evidence"] if isinstance(row["evidence"], dict) else {}}


def _incident(connection: Connection, project_id: int, incident_id: int) -> dict[str, Any]:
    row = connection.execute(
        text("""
        SELECT id, state, severity, opened_at, paged_at, page_at, acknowledged_at, acknowledged_by, resolved_at,
               content
        FROM incidents WHERE project_id = :p AND id = :i
        """),
        {"p": project_id, "i": incident_id},
    ).mappings()
    return dict(row.one())


def deliveries_page(
    connection: Connection,
    project_id: int,
    *,
    incident: int | None,
    channel: int | None,
    state: str | None,
    before_id: int | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Return deliveries, newest first, each with all its attempts.

    Of an incident, also the one line about an import that named its deployment while it was open.
    """
    rows = connection.execute(
        text(f"""
        SELECT d.id, d.incident_id AS incident, d.channel_id AS channel, c.name AS channel_name,
               c.kind AS channel_kind, d.action, d.reason, d.state, d.dedup_key,
               d.content ->> 'headline' AS headline, d.created_at, d.due_at, d.sent_at, d.attempts,
               coalesce((SELECT jsonb_agg(jsonb_build_object('at', t.at, 'status', t.status, 'outcome', t.outcome,
                                                             'answer', t.answer, 'took_ms', t.took_ms)
                                          ORDER BY t.id)
                         FROM delivery_attempts t WHERE t.project_id = d.project_id AND t.delivery_id = d.id),
                        '[]') AS log
        FROM deliveries d JOIN channels c ON c.project_id = d.project_id AND c.id = d.channel_id
        WHERE d.project_id = :p
          AND (CAST(:incident AS int) IS NULL OR d.incident_id = :incident OR {_IN_A_LINE})
          AND (CAST(:channel AS int) IS NULL OR d.channel_id = :channel)
          AND (CAST(:state AS text) IS NULL OR d.state = :state)
          AND (CAST(:before AS int) IS NULL OR d.id < :before)
        ORDER BY d.id DESC LIMIT :limit
        """),  # noqa: S608
        {
            "p": project_id,
            "incident": incident,
            "channel": channel,
            "state": state,
            "before": before_id,
            "limit": limit,
        },
    ).mappings()
    return [dict(row) for row in rows]


def attempt_of(connection: Connection, project_id: int, delivery_id: int) -> dict[str, Any] | None:
    """Return the first attempt at a delivery, None before it was made."""
    row = (
        connection.execute(
            text("""
            SELECT at, status, outcome, answer, took_ms FROM delivery_attempts
            WHERE project_id = :p AND delivery_id = :id ORDER BY id LIMIT 1
            """),
            {"p": project_id, "id": delivery_id},
        )
        .mappings()
        .first()
    )
    return None if row is None else dict(row)


def deployment_ids(connection: Connection, project_id: int) -> dict[int, str]:
    rows = connection.execute(
        text("SELECT id, slug FROM deployments WHERE project_id = :p ORDER BY slug"), {"p": project_id}
    )
    return {row.id: row.slug for row in rows}
