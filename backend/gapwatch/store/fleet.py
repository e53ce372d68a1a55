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
    simulator: str | None
    simulator_version: str | None
    failures: int


# Whole months, or whole days for a window: a fleet is looked over, not measured to the minute.
_WORDS = text("""
SELECT f.domain, f.source_id, f.policy_id, f.task_id, s.phase, s.labels, s.category, m.name, m.version,
       sum(f.failures)::int
FROM rollup_failures f JOIN signatures s ON s.project_id = f.project_id AND s.id = f.signature_id
LEFT JOIN simulators m ON f.domain = 'sim' AND m.project_id = f.project_id AND m.id = f.source_id
WHERE f.project_id = :p AND f.tier = :tier AND f.bucket_at >= coalesce(CAST(:since AS timestamptz), '-infinity')
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 HAVING sum(f.failures) > 0
""")
# Three small things about the whole fleet in one exchange: recent days, the last hours, and the newest episodes,
# which are one look into an index for each deployment.
_GLANCE = text("""
SELECT 'recent' AS what, source_id AS id, date_bin('3 days', bucket_at, CAST(:month AS timestamptz)) AS at,
       sum(successes)::bigint AS k, sum(successes + failures)::bigint AS n
FROM rollup_counts
WHERE project_id = :p AND domain = 'real' AND tier = 'day' AND bucket_at >= :month
GROUP BY 1, 2, 3 HAVING sum(successes + failures) > 0
UNION ALL
SELECT domain, 0, NULL, 0, sum(successes + failures + aborted + abandoned)::bigint
FROM rollup_counts WHERE project_id = :p AND tier = 'hour' AND bucket_at >= :day GROUP BY 1
UNION ALL
SELECT 'newest', d.id, (SELECT max(e.started_at) FROM episodes e
                        WHERE e.project_id = d.project_id AND e.deployment_id = d.id), 0, 0
FROM deployments d WHERE d.project_id = :p
ORDER BY 1, 2, 3
""")


@dataclass(frozen=True)
class Glance:
    """`recent`: deployment → (start, successes, n) of every three days; `last_day`: episodes of either side."""

    recent: dict[int, list[tuple[datetime, int, int]]]
    newest: dict[int, datetime]
    last_day: dict[str, int]


def failure_words(connection: Connection, project_id: int, since: datetime | None) -> list[FailureWords]:
    tier = "month" if since is None else "day"
    rows = connection.execute(_WORDS, {"p": project_id, "tier": tier, "since": since})
    return [FailureWords(*row) for row in rows]


def glance(connection: Connection, project_id: int, month: datetime, day: datetime) -> Glance:
    found = Glance({}, {}, {"sim": 0, "real": 0})
    for row in connection.execute(_GLANCE, {"p": project_id, "month": month, "day": day}):
        if row.what == "recent":
            found.recent.setdefault(row.id, []).append((row.at, row.k, row.n))
        elif row.what != "newest":
            found.last_day[row.what] = row.n
        elif row.at is not None:
            found.newest[row.id] = row.at
    return found
