"""What episodes say about an incident: success before its change and now, robot by robot, and the series itself.

Everything is bounded by a number of episodes next to the change or now, so that an old incident of a busy
deployment costs what a fresh one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.alerting.series_column import series_column

# `now` is the newest episodes of a fixed number, which covers whatever the rate does; `before` is the past next to
# the change.
NEWEST, BEFORE = 100, 300
MOST_OF_ROBOTS = 3000
MOST_FAILURES = 50_000
MOST_ARRIVALS = 20_000
_NEVER = datetime.max.replace(tzinfo=UTC)

_DECIDED = "e.outcome IN ('success', 'failure')"
_SIDE = f"""
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE x.good) AS k, count(*) AS n, max(x.started_at) AS newest FROM (
        SELECT e.outcome = 'success' AS good, e.started_at FROM episodes e
        WHERE e.project_id = :p AND e.deployment_id = w.deployment_id AND e.domain = 'real' AND {_DECIDED}
          AND {{window}} ORDER BY e.started_at DESC LIMIT {{most}}) x
) {{name}} ON true
"""  # noqa: S608
_NOW_AND_BEFORE = text(
    "SELECT w.incident, fresh.k AS k, fresh.n AS n, fresh.newest, past.k AS k_before, past.n AS n_before"  # noqa: S608
    " FROM unnest(CAST(:incidents AS int[]), CAST(:deployments AS int[]), CAST(:times AS timestamptz[]),"
    " CAST(:ends AS timestamptz[])) AS w (incident, deployment_id, at, over)"
    + _SIDE.format(window="e.started_at >= w.at AND e.started_at < w.over", most=NEWEST, name="fresh")
    + _SIDE.format(window="e.started_at < w.at", most=BEFORE, name="past")
)
_RECENT = text("""
SELECT source_id AS id, bucket_at AS at, sum(successes)::bigint AS k, sum(successes + failures)::bigint AS n
FROM rollup_counts
WHERE project_id = :p AND domain = 'real' AND source_id = ANY(:deployments) AND tier = 'day'
  AND bucket_at >= :since
GROUP BY 1, 2 HAVING sum(successes + failures) > 0 ORDER BY 1, 2
""")


@dataclass(frozen=True)
class BeforeAndNow:
    """Successes of the newest episodes since the change, and of those next before it."""

    successes: int
    n: int
    before_successes: int
    before_n: int
    newest: datetime | None


def before_and_now(
    connection: Connection, project_id: int, incidents: Sequence[Mapping[str, Any]]
) -> dict[int, BeforeAndNow]:
    """By incident; of one that is over, `now` is when it ended. Two looks into an index each, in one query."""
    rows = connection.execute(
        _NOW_AND_BEFORE,
        {
            "p": project_id,
            "incidents": [incident["id"] for incident in incidents],
            "deployments": [incident["deployment_id"] for incident in incidents],
            "times": [incident["changed_at"] for incident in incidents],
            "ends": [incident["resolved_at"] or _NEVER for incident in incidents],
        },
    )
    return {row.incident: BeforeAndNow(row.k, row.n, row.k_before, row.n_before, row.newest) for row in rows}


def recent_days(
    connection: Connection, project_id: int, deployments: Sequence[int], since: datetime
) -> dict[int, list[tuple[datetime, int, int]]]:
    """Return the day, successes and n of every day of some deployments."""
    days: dict[int, list[tuple[datetime, int, int]]] = {}
    parameters = {"p": project_id, "deployments": list(deployments), "since": since}
    for row in connection.execute(_RECENT, parameters):
        days.setdefault(row.id, []).append((row.at, row.k, row.n))
    return days


@dataclass(frozen=True)
class RobotBeforeAndNow:
    robot: str
    before_successes: int
    before_n: int
    successes: int
    n: int


def robots_around(
    connection: Connection, project_id: int, deployment_id: int, at: datetime
) -> list[RobotBeforeAndNow]:
    """Count the successes of each robot next before a change and of the newest episodes since."""
    rows = connection.execute(
        text(f"""
        SELECT r.name, count(*) FILTER (WHERE x.past AND x.good) AS k_before,
               count(*) FILTER (WHERE x.past) AS n_before, count(*) FILTER (WHERE x.good AND NOT x.past) AS k,
               count(*) FILTER (WHERE NOT x.past) AS n
        FROM (
            (SELECT e.robot_id, e.outcome = 'success' AS good, true AS past FROM episodes e
             WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain = 'real' AND {_DECIDED}
               AND e.started_at < :at AND e.started_at >= :oldest ORDER BY e.started_at DESC LIMIT :most)
            UNION ALL
            (SELECT e.robot_id, e.outcome = 'success', false FROM episodes e
             WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain = 'real' AND {_DECIDED}
               AND e.started_at >= :at ORDER BY e.started_at DESC LIMIT :most)
        ) x JOIN robots r ON r.project_id = :p AND r.id = x.robot_id
        GROUP BY r.name ORDER BY r.name
        """),  # noqa: S608
        {
            "p": project_id,
            "d": deployment_id,
            "at": at,
            "oldest": at - timedelta(days=90),
            "most": MOST_OF_ROBOTS,
        },
    )
    return [RobotBeforeAndNow(row.name, row.k_before, row.n_before, row.k, row.n) for row in rows]


def arrivals_by_hour(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    robot: str | None,
    since: datetime,
    until: datetime,
) -> dict[datetime, int]:
    """Count the episodes of a deployment, or of the newest of one of its robots, by the hour they began in."""
    of_deployment = """
        SELECT bucket_at, sum(successes + failures + aborted + abandoned)::bigint FROM rollup_counts
        WHERE project_id = :p AND domain IN ('real', 'shadow') AND source_id = :d AND tier = 'hour'
          AND bucket_at >= :since AND bucket_at < :until GROUP BY 1"""
    of_robot = """
        SELECT date_trunc('hour', x.started_at, 'UTC'), count(*) FROM (
            SELECT e.started_at, e.robot_id FROM episodes e
            WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain IN ('real', 'shadow')
              AND e.started_at >= :since AND e.started_at < :until
            ORDER BY e.started_at DESC LIMIT :most) x
        JOIN robots r ON r.project_id = :p AND r.id = x.robot_id AND r.name = :robot GROUP BY 1"""
    rows = connection.execute(
        text(of_deployment if robot is None else of_robot),
        {
            "p": project_id,
            "d": deployment_id,
            "robot": robot,
            "since": since,
            "until": until,
            "most": MOST_ARRIVALS,
        },
    )
    return {row[0]: int(row[1]) for row in rows}


def failures_since(connection: Connection, project_id: int, deployment_id: int, at: datetime) -> int:
    """Count failures since a change, up to fifty thousand of them."""
    return int(
        connection.execute(
            text("""
            SELECT count(*) FROM (
                SELECT 1 FROM episodes e WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain = 'real'
                  AND e.outcome = 'failure' AND e.started_at >= :at LIMIT :most) x
            """),
            {"p": project_id, "d": deployment_id, "at": at, "most": MOST_FAILURES},
        ).scalar_one()
    )


# When an episode started, and its number in each series that was asked for.
SeriesRow = tuple[datetime, tuple[float | None, ...]]


def series_around(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    series: Sequence[str],
    at: datetime,
    most: int,
    newest: int = 0,
) -> list[SeriesRow]:
    """Return so many episodes next before a time and next after it, and the newest ones, with their numbers.

    Oldest first. Between the second and the third there may be others that are left out.
    """
    columns: list[str] = []
    parameters: dict[str, str] = {}
    for place, name in enumerate(series):
        column, named = series_column(name, f"name_{place}")
        columns.append(f"{column} AS v{place}")
        parameters |= named
    chosen = ", ".join(columns)
    rows = connection.execute(
        text(f"""
        WITH past AS (
            SELECT e.* FROM episodes e WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain = 'real'
              AND e.started_at < :at ORDER BY e.started_at DESC LIMIT :most
        ), next AS (
            SELECT e.* FROM episodes e WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain = 'real'
              AND e.started_at >= :at ORDER BY e.started_at LIMIT :most
        ), newest AS (
            SELECT e.* FROM episodes e WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain = 'real'
              AND e.started_at > (SELECT max(started_at) FROM next) ORDER BY e.started_at DESC LIMIT :newest
        ), near AS (TABLE past UNION ALL TABLE next UNION ALL TABLE newest)
        SELECT e.started_at, {chosen} FROM near e
        LEFT JOIN robots r ON r.project_id = :p AND r.id = e.robot_id
        LEFT JOIN name_sets sn ON sn.project_id = :p AND sn.id = e.signal_names_id
        LEFT JOIN name_sets mn ON mn.project_id = :p AND mn.id = e.metric_names_id
        ORDER BY e.started_at, e.id
        """),  # noqa: S608
        {"p": project_id, "d": deployment_id, "at": at, "most": most, "newest": newest, **parameters},
    )
    return [(row[0], tuple(row[1:])) for row in rows]
