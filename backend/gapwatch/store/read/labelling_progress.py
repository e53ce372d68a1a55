"""How many of a deployment's failures a person or the sender has given a category."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, text

# Labels are counted where they stand, so that a save is seen at once. Failures are counted by the rollups; a
# changed episode is taken out of them and put back in two steps, so what is on its way between them counts too.
_PROGRESS = text("""
SELECT d.slug, coalesce(labelled.n, 0) AS labelled,
       greatest(failed.n + coalesce(moving.n, 0), labelled.n) AS failures
FROM deployments d
JOIN (SELECT source_id, sum(failures)::bigint AS n FROM rollup_counts
      WHERE project_id = :p AND tier = 'month' AND domain = 'real' GROUP BY 1) AS failed ON failed.source_id = d.id
LEFT JOIN (SELECT deployment_id, count(*) AS n FROM episodes
           WHERE project_id = :p AND failure_category IS NOT NULL AND outcome = 'failure' AND domain = 'real'
           GROUP BY 1) AS labelled ON labelled.deployment_id = d.id
LEFT JOIN (SELECT e.deployment_id, sum(w.sign) AS n FROM work w
           JOIN episodes e ON e.project_id = w.project_id AND e.id = ANY(w.episode_ids)
           WHERE w.project_id = :p AND w.kind = 'fold' AND (w.sign = -1 OR w.revision > 1)
             AND e.outcome = 'failure' AND e.domain = 'real'
           GROUP BY 1) AS moving ON moving.deployment_id = d.id
WHERE d.project_id = :p AND (CAST(:slugs AS text[]) IS NULL OR d.slug = ANY(:slugs))
ORDER BY d.slug LIMIT 1000
""")


@dataclass(frozen=True)
class LabellingProgress:
    deployment: str
    labelled: int
    failures: int


def labelling_progress(
    connection: Connection, project_id: int, slugs: Collection[str] | None = None
) -> list[LabellingProgress]:
    """Of these deployments, or of all; one that never failed has nothing to label and is left out."""
    wanted = None if slugs is None else list(slugs)
    rows = connection.execute(_PROGRESS, {"p": project_id, "slugs": wanted})
    return [LabellingProgress(row.slug, row.labelled, row.failures) for row in rows if row.failures]


def deployments_of(connection: Connection, project_id: int, episode_ids: Collection[str]) -> list[str]:
    rows = connection.execute(
        text("""
        SELECT DISTINCT d.slug FROM episodes e
        JOIN deployments d ON d.project_id = e.project_id AND d.id = e.deployment_id
        WHERE e.project_id = :p AND e.id = ANY(:ids) AND e.outcome = 'failure' ORDER BY 1
        """),
        {"p": project_id, "ids": list(episode_ids)},
    )
    return [row.slug for row in rows]
