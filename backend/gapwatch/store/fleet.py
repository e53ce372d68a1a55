"""What the fleet page reads beside the answers: the words of failures, recent days, and names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text


def deployment_slugs(connection: Connection, project_id: int) -> list[str]:
    rows = connection.execute(
        text("SELECT slug FROM deployments WHERE project_id = :p ORDER BY slug LIMIT 1000"), {"p": project_id}
    )
    return [row.slug for row in rows]


@dataclass(frozen=True)
class FailureWords:
    """How often a deployment (real) or a baseline (sim) fails with these words."""

    domain: str
    source_id: int
    policy_id: int
    task_id: int
    phase: str | None
    labels: list[str]
    category: str | None
    failures: int


# Whole months, or whole days for a window: a fleet is looked over, not measured to the minute.
_WORDS = text("""
SELECT f.domain, f.source_id, f.policy_id, f.task_id, s.phase, s.labels, s.category, sum(f.failures)::int
FROM rollup_failures f JOIN signatures s ON s.project_id = f.project_id AND s.id = f.signature_id
WHERE f.project_id = :p AND f.tier = :tier AND f.bucket_at >= coalesce(CAST(:since AS timestamptz), '-infinity')
GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum(f.failures) > 0
""")
_DAYS = text("""
SELECT source_id, date_bin('3 days', bucket_at, CAST(:since AS timestamptz)) AS at, sum(successes)::int,
       sum(successes + failures)::int
FROM rollup_counts
WHERE project_id = :p AND domain = 'real' AND tier = 'day' AND bucket_at >= :since
GROUP BY 1, 2 HAVING sum(successes + failures) > 0 ORDER BY 1, 2
""")


def failure_words(connection: Connection, project_id: int, since: datetime | None) -> list[FailureWords]:
    tier = "month" if since is None else "day"
    rows = connection.execute(_WORDS, {"p": project_id, "tier": tier, "since": since})
    return [FailureWords(*row) for row in rows]


def recent_success(
    connection: Connection, project_id: int, since: datetime
) -> dict[int, list[tuple[datetime, int, int]]]:
    """Deployment → (start, successes, n) of every three days since a moment."""
    found: dict[int, list[tuple[datetime, int, int]]] = {}
    for row in connection.execute(_DAYS, {"p": project_id, "since": since}):
        found.setdefault(row[0], []).append((row[1], row[2], row[3]))
    return found


def counted_since(connection: Connection, project_id: int, since: datetime) -> dict[str, int]:
    """How many episodes of either side the last hours brought."""
    rows = connection.execute(
        text("""
        SELECT domain, sum(successes + failures + aborted + abandoned)::bigint FROM rollup_counts
        WHERE project_id = :p AND tier = 'hour' AND bucket_at >= :since GROUP BY 1
        """),
        {"p": project_id, "since": since},
    )
    return {"sim": 0, "real": 0} | {row[0]: int(row[1]) for row in rows}


def newest_episodes(connection: Connection, project_id: int) -> dict[int, datetime]:
    """When the newest episode of each deployment started: one look into an index for each."""
    rows = connection.execute(
        text("""
        SELECT d.id, (SELECT max(e.started_at) FROM episodes e
                      WHERE e.project_id = d.project_id AND e.deployment_id = d.id) AS newest
        FROM deployments d WHERE d.project_id = :p
        """),
        {"p": project_id},
    )
    return {row.id: row.newest for row in rows if row.newest is not None}


def newest_episode(connection: Connection, project_id: int, deployment_id: int) -> datetime | None:
    found: datetime | None = connection.execute(
        text("SELECT max(started_at) FROM episodes WHERE project_id = :p AND deployment_id = :d"),
        {"p": project_id, "d": deployment_id},
    ).scalar()
    return found
