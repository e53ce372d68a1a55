"""Outcomes over time: hours, days and months."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.read.cell_names import cells_named
from gapwatch.store.read.selection import (
    Cell,
    Scope,
    Selection,
    Window,
    time_clauses,
)
from gapwatch.store.read.window_edges import numbered

Tier = Literal["hour", "day", "month"]


class BucketCount(NamedTuple):
    """The outcomes of an hour, a day or a month; of one cell, or of all (None)."""

    bucket_at: datetime
    source_id: int
    policy_id: int
    task_id: int
    cell: Cell | None
    successes: int
    failures: int
    aborted: int
    abandoned: int


class _BucketRow(NamedTuple):
    bucket_at: datetime
    source_id: int
    policy_id: int
    task_id: int
    cell_id: int | None
    successes: int
    failures: int
    aborted: int
    abandoned: int


class _DayRow(NamedTuple):
    side: int
    bucket_at: datetime
    source_id: int
    policy_id: int
    task_id: int
    robot: str | None
    site: str | None
    successes: int
    failures: int
    aborted: int
    abandoned: int


def bucket_counts(
    connection: Connection, project_id: int, scope: Scope, window: Window, tier: Tier, by_cell: bool = False
) -> list[BucketCount]:
    """Return whole buckets in order: one that the window begins in is in it. By cell there are days and months."""
    table, cell_column = ("rollup_cells", "cell_id") if by_cell else ("rollup_counts", "NULL::int")
    times, parameters = time_clauses(window, "bucket_at")
    times = times.replace("%(since)s", f"date_trunc('{tier}', %(since)s::timestamptz, 'UTC')")
    statement = f"""
        SELECT bucket_at, source_id, policy_id, task_id, {cell_column} AS cell_id, successes, failures,
               aborted, abandoned
        FROM {table} WHERE project_id = %(project_id)s AND tier = %(tier)s AND {scope.clauses()}{times}
        ORDER BY bucket_at
    """  # noqa: S608 - two names of ours
    with named_cursor(connection, _BucketRow) as cursor:
        parameters |= {"project_id": project_id, "tier": tier, **scope.parameters()}
        rows = cursor.execute(sql.SQL(statement), parameters).fetchall()
    cells = cells_named(connection, project_id, {row.cell_id for row in rows if row.cell_id is not None})
    return [
        BucketCount(
            row.bucket_at,
            row.source_id,
            row.policy_id,
            row.task_id,
            None if row.cell_id is None else cells[row.cell_id],
            row.successes,
            row.failures,
            row.aborted,
            row.abandoned,
        )
        for row in rows
    ]


_COUNTS = """
        SELECT {{side}} AS side, bucket_at, source_id, policy_id, task_id, NULL AS robot, NULL AS site, successes,
               failures, aborted, abandoned
        FROM rollup_counts WHERE project_id = %(project_id)s AND tier = '{tier}' AND {{clauses}}
"""
_HOURS = _COUNTS.format(tier="hour")
_DAYS = {
    "sim": _COUNTS.format(tier="day"),
    "real": """
        SELECT {side} AS side, day.bucket_at, day.source_id, day.policy_id, day.task_id, r.name AS robot,
               s.name AS site, day.successes,
               day.failures, day.aborted, day.abandoned
        FROM (SELECT * FROM rollup_places WHERE project_id = %(project_id)s AND {clauses}) AS day
        LEFT JOIN robots r ON r.project_id = day.project_id AND r.id = day.robot_id
        LEFT JOIN sites s ON s.project_id = day.project_id AND s.id = day.site_id
    """,
}


def each_day_counts(
    connection: Connection, project_id: int, selections: Sequence[Selection], hours: Selection | None = None
) -> list[list[BucketCount]]:
    """Return the days of each selection in order, real ones by robot and site; last the hours, if asked for."""
    wanted = [(_DAYS[scope.domain], "day", scope, window) for scope, window in selections]
    if hours is not None:
        wanted.append((_HOURS, "hour", *hours))
    statements: list[str] = []
    parameters: dict[str, Any] = {"project_id": project_id}
    for side, (statement, tier, scope, window) in enumerate(wanted):
        times, own = time_clauses(window, "bucket_at")
        times = times.replace("%(since)s", f"date_trunc('{tier}', %(since)s::timestamptz, 'UTC')")
        clauses = numbered(scope.clauses() + times, str(side))
        parameters |= {f"{name}_{side}": value for name, value in (scope.parameters() | own).items()}
        statements.append(statement.format(side=side, clauses=clauses))
    with named_cursor(connection, _DayRow) as cursor:
        union = sql.SQL(f"{' UNION ALL '.join(statements)} ORDER BY 1, 2")
        rows = cursor.execute(union, parameters).fetchall()
    days: list[list[BucketCount]] = [[] for _ in wanted]
    cells = {(robot, site): Cell(robot, site, None, {}) for robot, site in {(row.robot, row.site) for row in rows}}
    for row in rows:
        days[row.side].append(
            BucketCount(
                row.bucket_at,
                row.source_id,
                row.policy_id,
                row.task_id,
                cells[row.robot, row.site],
                row.successes,
                row.failures,
                row.aborted,
                row.abandoned,
            )
        )
    return days
