"""What the fleet page reads beside the answers: the words of failures, recent days, and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from gapwatch.store.read.directory import Deployment
from gapwatch.tally.sums import Signature


def deployment_slugs(connection: Connection, project_id: int) -> list[str]:
    rows = connection.execute(
        text("SELECT slug FROM deployments WHERE project_id = :p ORDER BY slug LIMIT 1000"), {"p": project_id}
    )
    return [row.slug for row in rows]


# real, sim in the window or "sim of all time"; deployment or simulator; policy; task.
WordKey = tuple[str, int, int, int]


@dataclass(frozen=True)
class FailureWords:
    """How often deployments (real) and their baselines (sim) fail with which words.

    `signatures`: what was said, by number. `simulators`: their numbers by name and version. `counts`: whose,
    signature, failures. With a window the words of all sim episodes come too, for baselines without any in it.
    """

    signatures: dict[int, Signature]
    simulators: dict[tuple[str | None, str | None], int]
    counts: list[tuple[WordKey, int, int]]


# Whole months, or whole days for a window: a fleet is looked over, not measured to the minute.
_WORDS = text("""
WITH places AS (
    SELECT * FROM unnest(CAST(:sources AS int[]), CAST(:policies AS int[]), CAST(:tasks AS int[]))
        AS place (source_id, policy_id, task_id)
), found AS (
    SELECT 'real' AS domain, f.* FROM places JOIN LATERAL (
        SELECT source_id, policy_id, task_id, signature_id, failures FROM rollup_failures r
        WHERE r.project_id = :p AND r.domain = 'real' AND r.policy_id = places.policy_id
          AND r.task_id = places.task_id AND r.source_id = places.source_id AND r.tier = :tier
          AND r.bucket_at >= coalesce(CAST(:since AS timestamptz), '-infinity')
    ) AS f ON true
    UNION ALL
    SELECT 'sim', f.* FROM (SELECT DISTINCT policy_id, task_id FROM places) AS runs JOIN LATERAL (
        SELECT source_id, policy_id, task_id, signature_id, failures FROM rollup_failures r
        WHERE r.project_id = :p AND r.domain = 'sim' AND r.policy_id = runs.policy_id AND r.task_id = runs.task_id
          AND r.tier = :tier AND r.bucket_at >= coalesce(CAST(:since AS timestamptz), '-infinity')
    ) AS f ON true
    UNION ALL
    SELECT 'sim of all time', f.* FROM (SELECT DISTINCT policy_id, task_id FROM places) AS runs JOIN LATERAL (
        SELECT source_id, policy_id, task_id, signature_id, failures FROM rollup_failures r
        WHERE r.project_id = :p AND r.domain = 'sim' AND r.policy_id = runs.policy_id AND r.task_id = runs.task_id
          AND r.tier = 'month' AND CAST(:since AS timestamptz) IS NOT NULL
    ) AS f ON true
)
SELECT domain AS what, source_id, policy_id, task_id, signature_id, sum(failures)::int AS failures, NULL AS phase,
       NULL AS labels, NULL AS category
FROM found GROUP BY 1, 2, 3, 4, 5 HAVING sum(failures) > 0
UNION ALL
SELECT 'signature', 0, 0, 0, id, 0, phase, labels, category FROM signatures
WHERE project_id = :p AND id IN (SELECT signature_id FROM found)
UNION ALL
SELECT 'simulator', id, 0, 0, 0, 0, NULL, ARRAY[name, version], NULL FROM simulators WHERE project_id = :p
""")
# Two small things in one exchange: recent days of some deployments, one by one, and the last hours of all.
# Neither grows with the years that are stored.
_GLANCE = text("""
SELECT 'recent' AS what, source_id AS id, date_bin('3 days', bucket_at, CAST(:month AS timestamptz)) AS at,
       sum(successes)::bigint AS k, sum(successes + failures)::bigint AS n
FROM rollup_counts
WHERE project_id = :p AND domain = 'real' AND source_id = ANY(:shown) AND tier = 'day' AND bucket_at >= :month
GROUP BY 1, 2, 3 HAVING sum(successes + failures) > 0
UNION ALL
SELECT domain, 0, NULL, 0, sum(successes + failures + aborted + abandoned)::bigint FROM rollup_counts
WHERE project_id = :p AND tier = 'hour' AND bucket_at >= :day GROUP BY domain
ORDER BY 1, 2, 3
""")


@dataclass(frozen=True)
class Glance:
    """`recent`: deployment → (start, successes, n) of every three days; `last_day`: episodes of either side."""

    recent: dict[int, list[tuple[datetime, int, int]]]
    last_day: dict[str, int]


def failure_words(
    connection: Connection, project_id: int, deployments: Sequence[Deployment], since: datetime | None
) -> FailureWords:
    parameters = {
        "p": project_id,
        "tier": "month" if since is None else "day",
        "since": since,
        "sources": [deployment.id for deployment in deployments],
        "policies": [deployment.policy_id for deployment in deployments],
        "tasks": [deployment.task_id for deployment in deployments],
    }
    words = FailureWords({}, {}, [])
    for row in connection.execute(_WORDS, parameters).all():
        if row.what == "signature":
            labels = tuple(sorted(set(row.labels or ())))
            words.signatures[row.signature_id] = Signature(row.phase, labels, row.category)
        elif row.what == "simulator":
            name, version = row.labels
            words.simulators[name, version] = row.source_id
        else:
            key = (row.what, row.source_id, row.policy_id, row.task_id)
            words.counts.append((key, row.signature_id, row.failures))
    return words


def glance(connection: Connection, project_id: int, shown: list[int], month: datetime, day: datetime) -> Glance:
    glimpsed = Glance({}, {"sim": 0, "real": 0})
    parameters = {"p": project_id, "shown": shown, "month": month, "day": day}
    for row in connection.execute(_GLANCE, parameters).all():
        if row.what == "recent":
            glimpsed.recent.setdefault(row.id, []).append((row.at, row.k, row.n))
        else:
            glimpsed.last_day[row.what] = row.n
    return glimpsed
