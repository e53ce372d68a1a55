"""SQL of baselines: which simulator a deployment is pinned to, and which it could be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit
from gapwatch.store.fold.presents import refresh_presents


@dataclass(frozen=True)
class SimulatorChoice:
    id: int
    name: str
    version: str
    episodes: int


@dataclass(frozen=True)
class BaselineRow:
    deployment_id: int
    deployment: str
    about: str
    pinned_id: int | None
    pinned_by: str | None
    pinned_at: datetime | None
    choices: tuple[SimulatorChoice, ...]


_DEPLOYMENTS = text("""
SELECT d.id, d.slug, p.name || ' ' || p.version || ' · ' || t.name AS about, d.policy_id, d.task_id,
       b.simulator_id, b.pinned_by, b.pinned_at
FROM deployments d
JOIN policies p ON p.project_id = d.project_id AND p.id = d.policy_id
JOIN tasks t ON t.project_id = d.project_id AND t.id = d.task_id
LEFT JOIN baselines b ON b.project_id = d.project_id AND b.deployment_id = d.id
WHERE d.project_id = :p AND d.slug > :after ORDER BY d.slug LIMIT :limit
""")
_SIMULATED = text("""
SELECT c.policy_id, c.task_id, s.id, s.name, s.version,
       sum(c.successes + c.failures + c.aborted + c.abandoned)::bigint AS episodes
FROM rollup_counts c JOIN simulators s ON s.project_id = c.project_id AND s.id = c.source_id
WHERE c.project_id = :p AND c.domain = 'sim' AND c.tier = 'month'
GROUP BY 1, 2, 3, 4, 5 ORDER BY episodes DESC, s.name, s.version
""")


def baselines(connection: Connection, project_id: int, after: str, limit: int) -> list[BaselineRow]:
    """Deployments by name, those behind `after`, each with the simulators that it could be compared with."""
    choices: dict[tuple[int, int], list[SimulatorChoice]] = {}
    for row in connection.execute(_SIMULATED, {"p": project_id}):
        choice = SimulatorChoice(row.id, row.name, row.version, row.episodes)
        choices.setdefault((row.policy_id, row.task_id), []).append(choice)
    return [
        BaselineRow(
            row.id,
            row.slug,
            row.about,
            row.simulator_id,
            row.pinned_by,
            row.pinned_at,
            tuple(choices.get((row.policy_id, row.task_id), ())),
        )
        for row in connection.execute(_DEPLOYMENTS, {"p": project_id, "after": after, "limit": limit})
    ]


def pin_baseline(
    connection: Connection, project_id: int, deployment_id: int, simulator_id: int | None, actor: str
) -> bool:
    """Pin a deployment to a simulator, or with None let it follow the largest. False if either is not there."""
    parameters = {"p": project_id, "d": deployment_id, "s": simulator_id, "actor": actor}
    known = connection.execute(
        text("""
        SELECT 1 FROM deployments d WHERE d.project_id = :p AND d.id = :d AND (CAST(:s AS int) IS NULL OR EXISTS
            (SELECT 1 FROM simulators s WHERE s.project_id = :p AND s.id = CAST(:s AS int)))
        """),
        parameters,
    ).first()
    if known is None:
        return False
    connection.execute(text("DELETE FROM baselines WHERE project_id = :p AND deployment_id = :d"), parameters)
    if simulator_id is not None:
        connection.execute(
            text(
                "INSERT INTO baselines (project_id, deployment_id, simulator_id, pinned_by) "
                "VALUES (:p, :d, :s, :actor)"
            ),
            parameters,
        )
    refresh_presents(connection, project_id, [deployment_id])
    audit(
        connection, project_id, actor, "baseline.pinned", f"deployment/{deployment_id}", simulator_id=simulator_id
    )
    return True
