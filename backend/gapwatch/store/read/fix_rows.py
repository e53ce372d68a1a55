"""Rows that fixes are measured from: mitigations, when versions ran where, and outcomes by cell around a fix.

Everything is read for all fixes of a page at once, in one query a subject, from whole days of the rollups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.core.event_scope import concerns
from gapwatch.store.read.cell_names import CellRef, cells_named
from gapwatch.store.read.selection import Cell
from gapwatch.tally.sums import Signature


@dataclass(frozen=True)
class MitigationRow:
    """An event of kind mitigation; `deployment` is its slug, also of one without episodes yet (`deployment_id`
    None). Without a slug it is of the whole project.
    """

    id: int
    at: datetime
    title: str
    told_at: datetime
    deployment_id: int | None
    deployment: str | None
    policy: str | None
    robots: tuple[str, ...]
    fix: Mapping[str, Any]
    # What was kept of a fix whose days are over; None where it is to be measured.
    closure: Mapping[str, Any] | None = None


def mitigations(
    connection: Connection,
    project_id: int,
    *,
    deployment: str | None = None,
    before_id: int | None = None,
    number: int | None = None,
    limit: int,
) -> list[MitigationRow]:
    """Newest first; of one deployment also those of the whole project that concern it."""
    rows = connection.execute(
        text(f"""
        SELECT e.id, e.at, e.title, e.created_at, d.id AS deployment_id, coalesce(d.slug, e.awaited) AS deployment,
               p.name AS policy, e.details -> 'robots' AS robots, e.fix,
               e.closure
        FROM events e
        LEFT JOIN deployments d ON d.project_id = e.project_id AND (d.id = e.deployment_id OR d.slug = e.awaited)
        LEFT JOIN policies p ON p.project_id = d.project_id AND p.id = d.policy_id
        LEFT JOIN deployments o ON o.project_id = e.project_id AND o.slug = :slug
        WHERE e.project_id = :p AND e.kind = 'mitigation'
          AND e.at BETWEEN '2000-01-01' AND now() + interval '1 day'
          AND (CAST(:slug AS text) IS NULL OR e.awaited = :slug OR {concerns("o.id", "o.slug")})
          AND (CAST(:before AS int) IS NULL OR e.id < :before) AND (CAST(:id AS int) IS NULL OR e.id = :id)
        ORDER BY e.id DESC LIMIT :limit
        """),  # noqa: S608 - the condition is a constant of ours
        {"p": project_id, "slug": deployment, "before": before_id, "id": number, "limit": limit},
    ).all()
    return [
        MitigationRow(
            row.id,
            row.at,
            row.title,
            row.created_at,
            row.deployment_id,
            row.deployment,
            row.policy,
            tuple(name for name in row.robots or () if isinstance(name, str))
            if isinstance(row.robots, list)
            else (),
            row.fix or {},
            row.closure,
        )
        for row in rows
    ]


def projects_to_measure(connection: Connection) -> list[int]:
    """Projects with mitigations that were not measured for a day."""
    return list(
        connection.scalars(
            text("""
            SELECT DISTINCT project_id FROM events WHERE kind = 'mitigation'
              AND (measured_at IS NULL OR measured_at < now() - interval '1 day') ORDER BY 1
            """)
        )
    )


def keep_closure(connection: Connection, project_id: int, number: int, closure: Mapping[str, Any] | None) -> None:
    """Keep what a fix closed, or only that it was looked at."""
    connection.execute(
        text("""
        UPDATE events SET closure = CAST(:closure AS jsonb), measured_at = now()
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": number, "closure": None if closure is None else json.dumps(closure)},
    )


class VersionDays(NamedTuple):
    """From which day until which a version did a task at a deployment."""

    deployment_id: int
    deployment: str
    policy_id: int
    task_id: int
    policy: str
    version: str
    first_day: datetime
    last_day: datetime


def version_days(connection: Connection, project_id: int, policies: Sequence[str] | None) -> list[VersionDays]:
    """Of every deployment that now runs one of these policies, or of all."""
    statement = """
        SELECT d.id AS deployment_id, d.slug AS deployment, r.policy_id, r.task_id, p.name AS policy, p.version,
               min(r.bucket_at) AS first_day, max(r.bucket_at) AS last_day
        FROM deployments d JOIN policies now_ ON now_.project_id = d.project_id AND now_.id = d.policy_id
        JOIN rollup_counts r ON r.project_id = d.project_id AND r.domain = 'real' AND r.source_id = d.id
             AND r.tier = 'day' AND r.successes + r.failures > 0
        JOIN policies p ON p.project_id = d.project_id AND p.id = r.policy_id
        WHERE d.project_id = %(p)s AND (%(policies)s::text[] IS NULL OR now_.name = ANY(%(policies)s))
        GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 7, 3, 4
    """
    with named_cursor(connection, VersionDays) as cursor:
        wanted = None if policies is None else list(policies)
        return cursor.execute(sql.SQL(statement), {"p": project_id, "policies": wanted}).fetchall()


class DayRange(NamedTuple):
    """Days of one deployment, policy version and task; `number` is the caller's.

    `by_day` keeps the cells of each day apart.
    """

    number: int
    deployment_id: int
    policy_id: int
    task_id: int
    since: datetime
    until: datetime
    by_day: bool = False


class RangeCells(NamedTuple):
    number: int
    cell: Cell
    day: datetime | None
    successes: int
    failures: int


class RangePlaces(NamedTuple):
    number: int
    robot: str | None
    day: datetime
    successes: int
    failures: int


class RangeSessions(NamedTuple):
    number: int
    session: str
    successes: int
    failures: int


class RangeFailures(NamedTuple):
    number: int
    cell: Cell
    signature: Signature
    failures: int


@dataclass(frozen=True)
class FixOutcomes:
    """Everything around some fixes, by the numbers of the ranges."""

    cells: Sequence[RangeCells] = ()
    places: Sequence[RangePlaces] = ()
    sessions: Sequence[RangeSessions] = ()
    failures: Sequence[RangeFailures] = ()


class _FixCellRow(NamedTuple):
    number: int
    cell_id: int
    day: datetime | None
    successes: int
    failures: int


class _FixFailureRow(NamedTuple):
    number: int
    cell_id: int
    phase: str | None
    labels: list[str]
    category: str | None
    failures: int


_RANGES = """
unnest(%(numbers)s::int[], %(sources)s::int[], %(policies)s::int[], %(tasks)s::int[], %(since)s::timestamptz[],
       %(until)s::timestamptz[], %(by_day)s::boolean[]) AS w (number, source, policy, task, since, until, by_day)
"""
_WITHIN = """r.project_id = %(p)s AND r.domain = 'real' AND r.policy_id = w.policy AND r.task_id = w.task
     AND r.source_id = w.source AND r.bucket_at >= w.since AND r.bucket_at < w.until"""
_CELLS = f"""
SELECT w.number, r.cell_id, CASE WHEN w.by_day THEN r.bucket_at END AS day,
       sum(r.successes)::bigint AS successes, sum(r.failures)::bigint AS failures
FROM {_RANGES} JOIN rollup_cells r ON {_WITHIN} AND r.tier = 'day'
GROUP BY 1, 2, 3 HAVING sum(r.successes + r.failures) > 0 ORDER BY 1, 2, 3
"""  # noqa: S608 - here and below, constants of ours
_PLACES = f"""
SELECT w.number, n.name AS robot, r.bucket_at AS day,
       sum(r.successes)::bigint AS successes, sum(r.failures)::bigint AS failures
FROM {_RANGES} JOIN rollup_places r ON {_WITHIN}
LEFT JOIN robots n ON n.project_id = r.project_id AND n.id = r.robot_id
GROUP BY 1, 2, 3 HAVING sum(r.successes + r.failures) > 0 ORDER BY 1, 2, 3
"""  # noqa: S608
_SESSIONS = f"""
SELECT w.number, r.session, sum(r.successes)::bigint AS successes, sum(r.failures)::bigint AS failures
FROM {_RANGES} JOIN rollup_sessions r ON {_WITHIN}
GROUP BY 1, 2 HAVING sum(r.successes + r.failures) > 0 ORDER BY 1, 2
"""  # noqa: S608
_FAILURES = f"""
SELECT w.number, r.cell_id, s.phase, s.labels, s.category, sum(r.failures)::bigint AS failures
FROM {_RANGES} JOIN rollup_failures r ON {_WITHIN} AND r.tier = 'day'
JOIN signatures s ON s.project_id = r.project_id AND s.id = r.signature_id
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2
"""  # noqa: S608


def fix_outcomes(connection: Connection, project_id: int, ranges: Sequence[DayRange]) -> FixOutcomes:
    """Four queries, however many ranges; none without any."""
    if not ranges:
        return FixOutcomes()
    columns = list(zip(*ranges, strict=True))
    names = ("numbers", "sources", "policies", "tasks", "since", "until", "by_day")
    parameters: dict[str, Any] = {"p": project_id}
    parameters |= {name: list(column) for name, column in zip(names, columns, strict=True)}
    with named_cursor(connection, _FixCellRow) as cursor:
        cells = cursor.execute(sql.SQL(_CELLS), parameters).fetchall()
    with named_cursor(connection, RangePlaces) as cursor:
        places = cursor.execute(sql.SQL(_PLACES), parameters).fetchall()
    with named_cursor(connection, RangeSessions) as cursor:
        sessions = cursor.execute(sql.SQL(_SESSIONS), parameters).fetchall()
    with named_cursor(connection, _FixFailureRow) as cursor:
        failures = cursor.execute(sql.SQL(_FAILURES), parameters).fetchall()
    refs: set[CellRef] = set()
    refs.update(row.cell_id for row in cells)
    refs.update(row.cell_id for row in failures)
    named = cells_named(connection, project_id, refs)
    return FixOutcomes(
        [RangeCells(row.number, named[row.cell_id], row.day, row.successes, row.failures) for row in cells],
        places,
        sessions,
        [
            RangeFailures(
                row.number,
                named[row.cell_id],
                Signature(row.phase, tuple(row.labels), row.category),
                row.failures,
            )
            for row in failures
        ],
    )


class NearEvent(NamedTuple):
    """Something else that happened near a fix, `number` of the fix's own."""

    number: int
    id: int
    kind: str
    at: datetime
    title: str


def events_near_fixes(
    connection: Connection, project_id: int, stretches: Sequence[tuple[int, int | None, datetime, datetime]]
) -> list[NearEvent]:
    """What was told of around fixes: (number, deployment or None, since, until); there, or of the project."""
    if not stretches:
        return []
    numbers, deployments, since, until = (list(column) for column in zip(*stretches, strict=True))
    rows = connection.execute(
        text(f"""
        SELECT w.number, e.id, e.kind, e.at, e.title
        FROM unnest(CAST(:numbers AS int[]), CAST(:deployments AS int[]), CAST(:since AS timestamptz[]),
                    CAST(:until AS timestamptz[])) AS w (number, deployment, since, until)
        LEFT JOIN deployments d ON d.project_id = :p AND d.id = w.deployment
        JOIN events e ON e.project_id = :p AND e.at BETWEEN w.since AND w.until
             AND (w.deployment IS NULL AND e.deployment_id IS NULL AND e.awaited IS NULL
                  OR {concerns("d.id", "d.slug")})
        ORDER BY w.number, e.at, e.id LIMIT 2000
        """),  # noqa: S608 - the condition is a constant of ours
        {"p": project_id, "numbers": numbers, "deployments": deployments, "since": since, "until": until},
    ).all()
    return [NearEvent(*row) for row in rows]
