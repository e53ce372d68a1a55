"""One side over time, and by sitting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import driver_cursor
from gapwatch.store.read.cell_names import cells_named
from gapwatch.store.read.selection import (
    Cell,
    CellFilter,
    Scope,
    Window,
    split,
    time_clauses,
)
from gapwatch.store.read.window_edges import (
    Asked,
    each_edges,
    numbered,
)

# (source, policy, task, session)
Sitting = tuple[int, int, int, str]
Tier = Literal["hour", "day", "month"]
# With a filter sessions are made up from single episodes: of so many, the newest.
MOST_EPISODES = 20_000


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


class SessionCount(NamedTuple):
    source_id: int
    policy_id: int
    task_id: int
    session: str
    successes: int
    failures: int


def bucket_counts(
    connection: Connection, project_id: int, scope: Scope, window: Window, tier: Tier, by_cell: bool = False
) -> list[BucketCount]:
    """Whole buckets, in order: one that the window begins in is in it. By cell there are days and months."""
    table, cell_column = ("rollup_cells", "cell_id") if by_cell else ("rollup_counts", "NULL::int")
    times, parameters = time_clauses(window, "bucket_at")
    times = times.replace("%(since)s", f"date_trunc('{tier}', %(since)s::timestamptz, 'UTC')")
    statement = f"""
        SELECT bucket_at, source_id, policy_id, task_id, {cell_column}, successes, failures, aborted, abandoned
        FROM {table} WHERE project_id = %(project_id)s AND tier = %(tier)s AND {scope.clauses()}{times}
        ORDER BY bucket_at
    """  # noqa: S608 - two names of ours
    with driver_cursor(connection) as cursor:
        parameters |= {"project_id": project_id, "tier": tier, **scope.parameters()}
        rows = cursor.execute(sql.SQL(statement), parameters).fetchall()
    named = cells_named(connection, project_id, {row[4] for row in rows} - {None})
    return [
        BucketCount(at, source, policy, task, None if cell is None else named[cell], *counts)
        for at, source, policy, task, cell, *counts in rows
    ]


_DAYS = {
    "sim": """
        SELECT {side}, bucket_at, source_id, policy_id, task_id, NULL, NULL, successes, failures, aborted,
               abandoned
        FROM rollup_counts WHERE project_id = %(project_id)s AND tier = 'day' AND {clauses}
    """,
    "real": """
        SELECT {side}, day.bucket_at, day.source_id, day.policy_id, day.task_id, r.name, s.name, day.successes,
               day.failures, day.aborted, day.abandoned
        FROM (SELECT * FROM rollup_places WHERE project_id = %(project_id)s AND {clauses}) AS day
        LEFT JOIN robots r ON r.project_id = day.project_id AND r.id = day.robot_id
        LEFT JOIN sites s ON s.project_id = day.project_id AND s.id = day.site_id
    """,
}


def each_day_counts(connection: Connection, project_id: int, asked: Sequence[Asked]) -> list[list[BucketCount]]:
    """The days of each side in order, real ones by robot and site."""
    statements: list[str] = []
    parameters: dict[str, Any] = {"project_id": project_id}
    for side, (scope, window) in enumerate(asked):
        times, own = time_clauses(window, "bucket_at")
        times = times.replace("%(since)s", "date_trunc('day', %(since)s::timestamptz, 'UTC')")
        clauses = numbered(scope.clauses() + times, str(side))
        parameters |= {f"{name}_{side}": value for name, value in (scope.parameters() | own).items()}
        statements.append(_DAYS[scope.domain].format(side=side, clauses=clauses))
    with driver_cursor(connection) as cursor:
        statement = sql.SQL(f"{' UNION ALL '.join(statements)} ORDER BY 1, 2")
        rows = cursor.execute(statement, parameters).fetchall()
    days: list[list[BucketCount]] = [[] for _ in asked]
    places = {(robot, site): Cell(robot, site, None, {}) for robot, site in {row[5:7] for row in rows}}
    for row in rows:
        days[row[0]].append(BucketCount._make((*row[1:5], places[row[5:7]], *row[7:])))
    return days


def session_counts(
    connection: Connection,
    project_id: int,
    scope: Scope,
    window: Window,
    wanted: CellFilter | None = None,
    most: int = 2000,
) -> list[SessionCount]:
    """Newest first; episodes that belong to no session are not in it."""
    return each_session_counts(connection, project_id, [(scope, window, wanted or CellFilter())], most)[0]


def each_session_counts(
    connection: Connection, project_id: int, asked: Sequence[tuple[Scope, Window, CellFilter]], most: int = 2000
) -> list[list[SessionCount]]:
    """Of several sides in one query: whole days from the rollup, or with a filter from the newest episodes."""
    statements, parameters = session_statements(project_id, asked, most)
    rows: list[tuple[Any, ...]] = []
    if statements:
        with driver_cursor(connection) as cursor:
            rows = cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()
    return sessions_of(connection, project_id, asked, most, rows)


def session_statements(
    project_id: int, asked: Sequence[tuple[Scope, Window, CellFilter]], most: int
) -> tuple[list[str], dict[str, Any]]:
    """Rows of side, source, policy, task, session, successes, failures."""
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for side, (scope, window, wanted) in enumerate(asked):
        clauses, own = _whole_days(scope, window) if wanted.is_open else _single(scope, window, wanted)
        if clauses:
            statements.append(numbered(clauses, str(side)).replace("{side}", str(side)))
            own |= {"project_id": project_id, "most": most}
            parameters |= {f"{name}_{side}": value for name, value in own.items()}
    return statements, parameters


def sessions_of(
    connection: Connection,
    project_id: int,
    asked: Sequence[tuple[Scope, Window, CellFilter]],
    most: int,
    rows: Iterable[tuple[Any, ...]],
) -> list[list[SessionCount]]:
    unfiltered = [(scope, window) for scope, window, wanted in asked if wanted.is_open]
    ends = dict(zip(unfiltered, each_edges(connection, project_id, unfiltered, "sitting"), strict=True))
    counted: list[dict[Sitting, list[int]]] = [{} for _ in asked]
    for side, (scope, window, wanted) in enumerate(asked):
        if wanted.is_open:
            newest_first = sorted(ends[scope, window].sessions.items(), key=lambda item: -item[0][1])
            for ((_, policy, task, source), _, session), counts in newest_first:
                _add(counted[side], (source, policy, task, session), counts)
    for row in rows:
        _add(counted[row[0]], cast(Sitting, row[1:5]), row[5:])
    return [[SessionCount(*key, *counts) for key, counts in sums.items()][:most] for sums in counted]


def _whole_days(scope: Scope, window: Window) -> tuple[str, dict[str, Any]]:
    parts = split(window)
    if parts.months is None and not parts.days:
        return "", {}
    whole = [*([parts.months] if parts.months else []), *parts.days]
    first = None if any(start is None for start, _ in whole) else min(start for start, _ in whole if start)
    last = None if any(end is None for _, end in whole) else max(end for _, end in whole if end)
    times, parameters = time_clauses(Window(first, last), "bucket_at")
    statement = f"""
        (SELECT {{side}}, source_id, policy_id, task_id, session, successes, failures FROM rollup_sessions
         WHERE project_id = %(project_id)s AND {scope.clauses()}{times}
         ORDER BY bucket_at DESC, session, source_id LIMIT %(most)s)
    """  # noqa: S608
    return statement, parameters | scope.parameters()


def _single(scope: Scope, window: Window, wanted: CellFilter) -> tuple[str, dict[str, Any]]:
    matching, parameters = wanted.clauses()
    times, bounds = time_clauses(window)
    source = "deployment_id" if scope.domain == "real" else "simulator_id"
    statement = f"""
        (SELECT {{side}}, {source}, policy_id, task_id, session,
                count(*) FILTER (WHERE outcome = 'success'), count(*) FILTER (WHERE outcome = 'failure')
         FROM (SELECT e.{source}, e.policy_id, e.task_id, e.session, e.outcome, e.started_at FROM episodes e
               WHERE e.project_id = %(project_id)s AND {scope.clauses("e")} AND e.session IS NOT NULL
                 AND e.outcome IN ('success', 'failure'){matching}{times}
               ORDER BY e.started_at DESC LIMIT {MOST_EPISODES}) newest
         GROUP BY 2, 3, 4, 5 ORDER BY max(started_at) DESC LIMIT %(most)s)
    """  # noqa: S608
    return statement, parameters | bounds | scope.parameters()


def _add(counted: dict[Sitting, list[int]], key: Sitting, counts: Sequence[int]) -> None:
    mine = counted.get(key)
    if mine is None:
        counted[key] = [counts[0], counts[1]]
    else:
        mine[0] += counts[0]
        mine[1] += counts[1]
