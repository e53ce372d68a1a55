"""Whether something on a project's pages may have changed. Every open page asks every few seconds: it is cheap."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

# Each is one look into an index.
_STATE = text("""
SELECT coalesce((SELECT folds FROM project_changes WHERE project_id = :p), 0) AS folds,
       coalesce((SELECT max(id) FROM audit_entries WHERE project_id = :p), 0) AS audited,
       coalesce((SELECT max(id) FROM alert_transitions WHERE project_id = :p), 0) AS moved,
       coalesce((SELECT max(id) FROM rejected_records WHERE project_id = :p), 0) AS rejected,
       coalesce((SELECT max(id) FROM incident_history WHERE project_id = :p), 0) AS acted,
       (SELECT options FROM projects WHERE id = :p) AS options,
       (SELECT count(*) FROM incidents WHERE project_id = :p AND state <> 'resolved') AS open,
       (SELECT count(*) FROM incidents WHERE project_id = :p AND state <> 'resolved' AND owner IS NULL) AS unowned
""")
_COUNT = text("""
INSERT INTO project_changes AS c (project_id, folds) SELECT unnest(CAST(:projects AS int[])), 1
ON CONFLICT (project_id) DO UPDATE SET folds = c.folds + 1
""")


@dataclass(frozen=True)
class ProjectState:
    """`unowned_incidents` are those of the open ones that nobody takes care of."""

    version: str
    open_incidents: int
    unowned_incidents: int
    options: dict[str, Any]


def project_state(connection: Connection, project_id: int) -> ProjectState:
    row = connection.execute(_STATE, {"p": project_id}).one()
    version = f"{row.folds}.{row.audited}.{row.moved}.{row.rejected}.{row.acted}"
    return ProjectState(version, row.open, row.unowned, row.options)


def count_folds(connection: Connection, project_ids: Collection[int]) -> None:
    """Called last in the transaction that changes the numbers, in one order, because it locks a row a project."""
    connection.execute(_COUNT, {"projects": sorted(project_ids)})
