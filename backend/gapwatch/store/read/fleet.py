"""What the fleet page reads beside the answers: recent days, and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.store.core.driver import driver_connection
from gapwatch.store.read.selection import CellFilter


def deployment_slugs(connection: Connection, project_id: int) -> list[str]:
    rows = connection.execute(
        text("SELECT slug FROM deployments WHERE project_id = :p ORDER BY slug LIMIT 1000"), {"p": project_id}
    )
    return [row.slug for row in rows]


# Two small things in one exchange: recent days of some deployments, one by one, and the last hours of all.
# Neither grows with the years that are stored.
_GLANCE = text("""
SELECT 'recent' AS what, source_id AS id, date_bin('3 days', bucket_at, CAST(:month AS timestamptz)) AS at,
       sum(successes)::bigint AS k, sum(successes + failures)::bigint AS n
FROM rollup_counts
WHERE project_id = :p AND domain = 'real' AND source_id = ANY(:shown) AND tier = 'day' AND bucket_at >= :month
GROUP BY 1, 2, 3 HAVING sum(successes + failures) > 0
UNION ALL
SELECT CASE domain WHEN 'sim' THEN 'sim' ELSE 'real' END, 0, NULL, 0,
       sum(successes + failures + aborted + abandoned)::bigint
FROM rollup_counts WHERE project_id = :p AND tier = 'hour' AND bucket_at >= :day GROUP BY 1
ORDER BY 1, 2, 3
""")


@dataclass(frozen=True)
class Glance:
    """`recent`: deployment → (start, successes, n) of every three days; `last_day`: episodes of either side."""

    recent: dict[int, list[tuple[datetime, int, int]]]
    last_day: dict[str, int]


def counts_of_presents(
    connection: Connection, project_id: int, deployment_ids: Sequence[int], wanted: CellFilter
) -> dict[int, tuple[int, int, int, int]]:
    """Successes, failures, aborted and abandoned attempts that match a filter in each deployment's regime."""
    clauses, parameters = wanted.clauses()
    statement = sql.SQL(
        "SELECT p.deployment_id, count(*) FILTER (WHERE e.outcome = 'success'),"  # noqa: S608 - text of ours
        " count(*) FILTER (WHERE e.outcome = 'failure'), count(*) FILTER (WHERE e.outcome = 'aborted'),"
        " count(*) FILTER (WHERE e.outcome = 'abandoned')"
        " FROM presents p JOIN deployments d ON d.project_id = p.project_id AND d.id = p.deployment_id"
        " JOIN episodes e ON e.project_id = p.project_id AND e.deployment_id = p.deployment_id"
        " AND e.domain = 'real' AND e.started_at >= p.since AND e.policy_id = d.policy_id"
        f" AND e.task_id = d.task_id WHERE p.project_id = %(p)s AND p.deployment_id = ANY(%(ids)s){clauses}"
        " GROUP BY 1"
    )
    with driver_connection(connection).cursor() as cursor:
        rows = cursor.execute(statement, {"p": project_id, "ids": list(deployment_ids), **parameters}).fetchall()
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in rows}


@dataclass(frozen=True)
class PlaceNames:
    """What the real episodes of one deployment name in a window."""

    sites: frozenset[str]
    robots: frozenset[str]
    policies: frozenset[str]


NO_NAMES = PlaceNames(frozenset(), frozenset(), frozenset())
# Whole days: who looks over a fleet looks for a name, not for a minute.
_NAMES = """
WITH named AS (
    SELECT DISTINCT r.source_id, r.policy_id, r.robot_id, r.site_id FROM rollup_places r{presents}
    WHERE r.project_id = :p AND r.domain IN ('real', 'shadow') AND {when}
)
SELECT n.source_id, array_agg(DISTINCT s.name) AS sites, array_agg(DISTINCT b.name) AS robots,
       array_agg(DISTINCT v.name) AS policies
FROM named n JOIN policies v ON v.project_id = :p AND v.id = n.policy_id
LEFT JOIN sites s ON s.project_id = :p AND s.id = n.site_id
LEFT JOIN robots b ON b.project_id = :p AND b.id = n.robot_id
GROUP BY 1
"""
_NAMES_SINCE = text(
    _NAMES.format(
        presents="",
        when="r.bucket_at >= date_trunc('day', coalesce(CAST(:since AS timestamptz), '-infinity'), 'UTC')",
    )
)
_NAMES_OF_PRESENTS = text(
    _NAMES.format(
        presents=" JOIN presents w ON w.project_id = r.project_id AND w.deployment_id = r.source_id",
        when="r.bucket_at >="
        " date_trunc('day', CASE WHEN :of_version THEN w.version_since ELSE w.since END, 'UTC')",
    )
)


def place_names(
    connection: Connection, project_id: int, window: str | None, since: datetime | None
) -> dict[int, PlaceNames]:
    """The names of every deployment, in a window by name (`now`, `version`) or since a time."""
    if window in ("now", "version"):
        rows = connection.execute(_NAMES_OF_PRESENTS, {"p": project_id, "of_version": window == "version"})
    else:
        rows = connection.execute(_NAMES_SINCE, {"p": project_id, "since": since})
    return {
        row.source_id: PlaceNames(*(frozenset(name for name in names if name is not None) for names in row[1:]))
        for row in rows.all()
    }


def glance(connection: Connection, project_id: int, shown: list[int], month: datetime, day: datetime) -> Glance:
    glimpsed = Glance({}, {"sim": 0, "real": 0})
    parameters = {"p": project_id, "shown": shown, "month": month, "day": day}
    for row in connection.execute(_GLANCE, parameters).all():
        if row.what == "recent":
            glimpsed.recent.setdefault(row.id, []).append((row.at, row.k, row.n))
        else:
            glimpsed.last_day[row.what] = row.n
    return glimpsed
