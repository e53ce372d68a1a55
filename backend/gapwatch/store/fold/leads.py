"""The leading category of every deployment, kept beside its present, for lists of many.

A lead is due again once its deployment's present was made anew, at most every five seconds; and at most every
twenty when anything else of its project changed: sim episodes, the vocabulary, a baseline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

_DUE = """
WITH versions AS (
    SELECT j.id, concat(coalesce(c.folds, 0), '.',
        coalesce((SELECT max(a.id) FROM audit_entries a WHERE a.project_id = j.id), 0)) AS version
    FROM projects j LEFT JOIN project_changes c ON c.project_id = j.id
)
SELECT p.project_id, p.deployment_id, d.slug, v.version, now() AS asked_at, p.led_at
FROM presents p
JOIN versions v ON v.id = p.project_id
JOIN deployments d ON d.project_id = p.project_id AND d.id = p.deployment_id
WHERE p.since IS NOT NULL AND (p.led_at IS NULL
    OR (p.led_at < p.computed_at AND p.led_at < now() - interval '5 seconds')
    OR (p.lead_version IS DISTINCT FROM v.version AND p.led_at < now() - interval '20 seconds'))
"""
_NEXT = text(f"""
SELECT project_id, deployment_id, slug, version, asked_at FROM (
    SELECT due.*, row_number() OVER (PARTITION BY project_id ORDER BY led_at NULLS FIRST, deployment_id) AS place
    FROM ({_DUE}) due) due
ORDER BY place, led_at NULLS FIRST, project_id LIMIT :most
""")  # noqa: S608 - nothing of a request is in it
_IS_DUE = text(f"SELECT EXISTS ({_DUE})")
_PUT = text("""
UPDATE presents SET lead = CAST(:lead AS jsonb), lead_version = :version, led_at = now(),
    sim_effect = :sim_effect, real_effect = :real_effect
WHERE project_id = :p AND deployment_id = :d
""")


class DueLead(NamedTuple):
    """`version`: of the project's numbers and settings that the lead will be made from, or newer."""

    project_id: int
    deployment_id: int
    slug: str
    version: str
    asked_at: datetime


def are_due(connection: Connection) -> bool:
    return bool(connection.execute(_IS_DUE).scalar_one())


def due_leads(connection: Connection, most: int) -> list[DueLead]:
    """Those that wait longest of each project, projects in turn: a large fleet keeps no other waiting."""
    return [DueLead(*row) for row in connection.execute(_NEXT, {"most": most}).all()]


def put_lead(
    connection: Connection,
    due: DueLead,
    lead: Mapping[str, Any] | None,
    effects: tuple[float | None, float | None] = (None, None),
) -> None:
    """`effects`: how many episodes of sim and of real are worth one."""
    connection.execute(
        _PUT,
        {
            "lead": None if lead is None else json.dumps(lead),
            "version": due.version,
            "sim_effect": effects[0],
            "real_effect": effects[1],
            "p": due.project_id,
            "d": due.deployment_id,
        },
    )


def stored_leads(connection: Connection, project_id: int) -> dict[int, dict[str, Any]]:
    rows = connection.execute(
        text("SELECT deployment_id, lead FROM presents WHERE project_id = :p AND lead IS NOT NULL"),
        {"p": project_id},
    )
    return {row.deployment_id: row.lead for row in rows}
