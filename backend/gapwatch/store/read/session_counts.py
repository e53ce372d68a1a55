"""Successes and failures of each session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.read.selection import (
    CellFilter,
    Scope,
    Window,
    time_clauses,
    whole_days,
)
from gapwatch.store.read.window_edges import WindowEdges, numbered

# With a filter, sessions are made up from single episodes: of so many, the newest.
MOST_EPISODES = 20_000
FilteredSelection = tuple[Scope, Window, CellFilter]


class SessionCount(NamedTuple):
    """`side` is the index of the selection it was read for."""

    side: int
    source_id: int
    policy_id: int
    task_id: int
    session: str
    successes: int
    failures: int


# Source, policy, task and session.
_SessionKey = tuple[int, int, int, str]


def session_counts(
    connection: Connection,
    project_id: int,
    scope: Scope,
    window: Window,
    wanted: CellFilter | None = None,
    most: int = 2000,
) -> list[SessionCount]:
    """Return sessions, newest first; episodes that belong to none are left out."""
    return each_session_counts(connection, project_id, [(scope, window, wanted or CellFilter())], most)[0]


def each_session_counts(
    connection: Connection,
    project_id: int,
    selections: Sequence[FilteredSelection],
    most: int = 2000,
    edges: WindowEdges | None = None,
) -> list[list[SessionCount]]:
    """Read several selections in one query: whole days from the rollup, or with a filter the newest episodes."""
    edges = edges or WindowEdges(connection, project_id)
    statements, parameters = session_statements(project_id, selections, most)
    rows: list[SessionCount] = []
    if statements:
        with named_cursor(connection, SessionCount) as cursor:
            rows = cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()
    return sessions_with_edges(selections, most, rows, edges)


def session_statements(
    project_id: int, selections: Sequence[FilteredSelection], most: int
) -> tuple[list[str], dict[str, Any]]:
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for side, (scope, window, wanted) in enumerate(selections):
        clauses, own = _whole_days(scope, window) if wanted.is_open else _single(scope, window, wanted)
        if clauses:
            statements.append(numbered(clauses, str(side)).replace("{side}", str(side)))
            own |= {"project_id": project_id, "most": most}
            parameters |= {f"{name}_{side}": value for name, value in own.items()}
    return statements, parameters


def sessions_with_edges(
    selections: Sequence[FilteredSelection], most: int, rows: Iterable[SessionCount], edges: WindowEdges
) -> list[list[SessionCount]]:
    unfiltered = [(scope, window) for scope, window, wanted in selections if wanted.is_open]
    at_edges = dict(zip(unfiltered, edges.counted(unfiltered), strict=True))
    sides: list[dict[_SessionKey, SessionCount]] = [{} for _ in selections]
    for side, (scope, window, wanted) in enumerate(selections):
        if wanted.is_open:
            newest_first = sorted(at_edges[scope, window].sessions.items(), key=lambda item: -item[0][1])
            for (at, _, session), (successes, failures) in newest_first:
                count = SessionCount(side, at.source_id, at.policy_id, at.task_id, session, successes, failures)
                _add(sides[side], count)
    for row in rows:
        _add(sides[row.side], row)
    return [list(sessions.values())[:most] for sessions in sides]


def _add(sessions: dict[_SessionKey, SessionCount], count: SessionCount) -> None:
    """Add a day of a session to its other days."""
    key = (count.source_id, count.policy_id, count.task_id, count.session)
    before = sessions.get(key)
    if before is not None:
        count = count._replace(
            successes=before.successes + count.successes, failures=before.failures + count.failures
        )
    sessions[key] = count


def _whole_days(scope: Scope, window: Window) -> tuple[str, dict[str, Any]]:
    days = whole_days(window)
    if days is None:
        return "", {}
    times, parameters = time_clauses(days, "bucket_at")
    statement = f"""
        (SELECT {{side}} AS side, source_id, policy_id, task_id, session, successes, failures FROM rollup_sessions
         WHERE project_id = %(project_id)s AND {scope.clauses()}{times}
         ORDER BY bucket_at DESC, session, source_id LIMIT %(most)s)
    """  # noqa: S608
    return statement, parameters | scope.parameters()


def _single(scope: Scope, window: Window, wanted: CellFilter) -> tuple[str, dict[str, Any]]:
    matching, parameters = wanted.clauses()
    times, bounds = time_clauses(window)
    source = "deployment_id" if scope.domain == "real" else "simulator_id"
    statement = f"""
        (SELECT {{side}} AS side, {source} AS source_id, policy_id, task_id, session,
                count(*) FILTER (WHERE outcome = 'success') AS successes,
                count(*) FILTER (WHERE outcome = 'failure') AS failures
         FROM (SELECT e.{source}, e.policy_id, e.task_id, e.session, e.outcome, e.started_at FROM episodes e
               WHERE e.project_id = %(project_id)s AND {scope.clauses("e")} AND e.session IS NOT NULL
                 AND e.outcome IN ('success', 'failure'){matching}{times}
               ORDER BY e.started_at DESC LIMIT {MOST_EPISODES}) newest
         GROUP BY 2, 3, 4, 5 ORDER BY max(started_at) DESC LIMIT %(most)s)
    """  # noqa: S608
    return statement, parameters | bounds | scope.parameters()
