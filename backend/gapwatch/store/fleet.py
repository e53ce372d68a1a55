"""Reading the fleet: every deployment of a project with the counts of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class DeploymentRow:
    slug: str
    policy: str
    version: str
    task: str
    site: str | None
    stage: str | None
    real_successes: int
    real_n: int
    sim_successes: int
    sim_n: int
    newest: datetime | None


# The month tier holds everything once; success and failure are what a rate is made of.
FLEET = text("""
WITH counts AS (
    SELECT domain, source_id, policy_id, task_id, sum(successes) AS successes,
           sum(successes + failures) AS n
    FROM rollup_counts WHERE project_id = :project_id AND tier = 'month'
    GROUP BY 1, 2, 3, 4
)
SELECT d.slug, p.name AS policy, p.version, t.name AS task, s.name AS site, d.stage,
       coalesce(real.successes, 0)::int AS real_successes, coalesce(real.n, 0)::int AS real_n,
       coalesce(sim.successes, 0)::int AS sim_successes, coalesce(sim.n, 0)::int AS sim_n,
       (SELECT max(e.started_at) FROM episodes e
        WHERE e.project_id = d.project_id AND e.deployment_id = d.id) AS newest
FROM deployments d
JOIN policies p ON p.project_id = d.project_id AND p.id = d.policy_id
JOIN tasks t ON t.project_id = d.project_id AND t.id = d.task_id
LEFT JOIN sites s ON s.project_id = d.project_id AND s.id = d.site_id
LEFT JOIN (SELECT source_id, sum(successes) AS successes, sum(n) AS n FROM counts
           WHERE domain = 'real' GROUP BY 1) real ON real.source_id = d.id
LEFT JOIN (SELECT policy_id, task_id, sum(successes) AS successes, sum(n) AS n FROM counts
           WHERE domain = 'sim' GROUP BY 1, 2) sim
       ON sim.policy_id = d.policy_id AND sim.task_id = d.task_id
WHERE d.project_id = :project_id
ORDER BY d.slug
""")


def deployments(connection: Connection, project_id: int) -> list[DeploymentRow]:
    rows = connection.execute(FLEET, {"project_id": project_id}).mappings()
    return [DeploymentRow(**row) for row in rows]


def deployment_slugs(connection: Connection, project_id: int) -> list[str]:
    rows = connection.execute(
        text("SELECT slug FROM deployments WHERE project_id = :p ORDER BY slug LIMIT 1000"), {"p": project_id}
    )
    return [row.slug for row in rows]
