"""Reading incidents, for the API and the pages: each with its deployment and a line about every alert of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from gapwatch.store.core.tenancy import enter_project
from gapwatch.watching.notification import dates_by

NOBODY = "nobody"
# What each state that can be asked for means in the table.
STATES = {
    "open": ["firing", "acknowledged"],
    "firing": ["firing"],
    "acknowledged": ["acknowledged"],
    "resolved": ["resolved"],
    "all": [],
}
# Deliveries and lines of history that one incident shows.
MOST_LINES = 500
_TIMES = ("opened_at", "changed_at", "resolved_at")

_INCIDENTS = """
SELECT i.id, d.slug AS deployment, i.deployment_id, s.name AS site, d.stage, i.state, i.severity, i.owner,
       i.opened_at, i.changed_at, i.paged_at, i.page_at, i.acknowledged_at,
       i.acknowledged_by, i.resolved_at,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
               'id', a.id, 'rule', a.rule, 'kind', a.kind, 'series', a.series, 'state', a.state,
               'severity', a.severity, 'evidence', a.evidence, 'opened_at', a.opened_at,
               'changed_at', a.changed_at, 'resolved_at', a.resolved_at, 'regressed', a.regressed,
               'escalating', a.escalating) ORDER BY a.id)
           FROM alerts a WHERE a.project_id = i.project_id AND a.incident_id = i.id), '[]') AS alerts
FROM incidents i JOIN deployments d ON d.project_id = i.project_id AND d.id = i.deployment_id
LEFT JOIN sites s ON s.project_id = d.project_id AND s.id = d.site_id
WHERE i.project_id = :p
"""
# Open ones the worst first; the keyset of a list that is paged is the id.
_FILTERED = """
 AND (:any_state OR i.state = ANY(:states))
 AND (CAST(:deployment AS text) IS NULL OR d.slug = :deployment)
 AND (CAST(:severity AS text) IS NULL OR i.severity = :severity)
 AND (CAST(:owner AS text) IS NULL OR i.owner IS NOT DISTINCT FROM nullif(:owner, :nobody))
 AND (CAST(:before AS int) IS NULL OR i.id < :before)
"""


def incidents_page(
    connection: Connection,
    project_id: int,
    *,
    states: list[str],
    deployment: str | None,
    severity: str | None,
    owner: str | None,
    before_id: int | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Return incidents, newest first; no states means all of them. The owner `nobody` stands for none."""
    rows = connection.execute(
        text(f"{_INCIDENTS} {_FILTERED} ORDER BY i.id DESC LIMIT :limit"),
        {
            "p": project_id,
            "any_state": not states,
            "states": states,
            "deployment": deployment,
            "severity": severity,
            "owner": owner,
            "nobody": NOBODY,
            "before": before_id,
            "limit": limit,
        },
    ).mappings()
    return [_incident(row) for row in rows]


def find_incident(connection: Connection, project_id: int, incident_id: int) -> dict[str, Any] | None:
    """Return an incident with what people were told of it and its history."""
    row = (
        connection.execute(text(f"{_INCIDENTS} AND i.id = :id"), {"p": project_id, "id": incident_id})
        .mappings()
        .first()
    )
    if row is None:
        return None
    content = connection.execute(
        text("SELECT content FROM incidents WHERE project_id = :p AND id = :id"),
        {"p": project_id, "id": incident_id},
    ).scalar_one()
    return _incident(row) | {"content": content, "history": _history(connection, project_id, incident_id)}


def _incident(row: RowMapping) -> dict[str, Any]:
    """It changed when its leading alert says so, so that pages, messages and the API name one moment."""
    alerts = [_alert(alert) for alert in row["alerts"]]
    leading = dating_alert(alerts)
    known = None if leading is None else changed_at(leading)
    return {**row, "alerts": alerts, "changed_at": known or row["changed_at"] or row["opened_at"]}


def dating_alert(alerts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The alert whose change is the incident's; None if no alert knows when it changed."""
    dated = [alert for alert in alerts if changed_at(alert) is not None]
    return max(dated, key=_dates_by, default=None)


def _dates_by(alert: Mapping[str, Any]) -> tuple[Any, ...]:
    return *dates_by(alert["kind"], alert["series"], alert["severity"]), -alert["id"]


def changed_at(alert: Mapping[str, Any]) -> datetime | None:
    """When the series of an alert changed, by its detector; None where nothing readable says so."""
    point = alert["evidence"].get("change_point")
    at = point.get("at") if isinstance(point, Mapping) else None
    try:
        found = datetime.fromisoformat(at) if isinstance(at, str) else alert["changed_at"]
    except ValueError:
        return None
    return found if found is None or found.tzinfo is not None else None


def _alert(alert: dict[str, Any]) -> dict[str, Any]:
    """With times as times: they come as words inside JSON. Evidence that is no object tells nothing."""
    times = {name: alert[name] and datetime.fromisoformat(alert[name]) for name in _TIMES}
    evidence = alert["evidence"] if isinstance(alert["evidence"], dict) else {}
    return {**alert, **times, "evidence": evidence}


def _history(connection: Connection, project_id: int, incident_id: int) -> list[dict[str, Any]]:
    """What people did with the incident and what happened to its alerts, oldest first."""
    rows = connection.execute(
        text("""
        SELECT * FROM (
            SELECT h.at, h.actor, h.action, h.comment, NULL::int AS alert, NULL AS rule, NULL AS series,
                   NULL AS from_state, NULL AS to_state, h.id AS line, 0 AS source
            FROM incident_history h WHERE h.project_id = :p AND h.incident_id = :id
            UNION ALL
            SELECT t.at, t.actor, t.input, t.comment, a.id, a.rule, a.series, t.from_state, t.to_state, t.id, 1
            FROM alerts a JOIN alert_transitions t ON t.project_id = a.project_id AND t.alert_id = a.id
            WHERE a.project_id = :p AND a.incident_id = :id
            ORDER BY at DESC, source, line DESC LIMIT :most) newest
        ORDER BY at, source DESC, line
        """),
        {"p": project_id, "id": incident_id, "most": MOST_LINES},
    ).mappings()
    return [{name: row[name] for name in row if name not in {"line", "source"}} for row in rows]


def has_incident(connection: Connection, project_id: int, incident_id: int) -> bool:
    """Whether another project of the same person has this incident; the transaction stays in that project."""
    enter_project(connection, project_id)
    return bool(
        connection.execute(
            text("SELECT EXISTS (SELECT 1 FROM incidents WHERE project_id = :p AND id = :id)"),
            {"p": project_id, "id": incident_id},
        ).scalar_one()
    )
