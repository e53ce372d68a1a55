"""What a whole page needs of both sides beside their cells: failures, contracts and sessions in one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import driver_cursor
from gapwatch.store.read.bucket_counts import (
    SessionCount,
    session_statements,
    sessions_of,
)
from gapwatch.store.read.rollup_counts import (
    CONTRACTS,
    FAILURES,
    ContractCount,
    FailureCount,
    bucket_statements,
    contracts_of,
    failures_of,
)
from gapwatch.store.read.selection import CellFilter
from gapwatch.store.read.window_edges import Asked

# One row for all three: what it is of and its side, then source, policy, task, a number, a word, labels, category
# and two counts.
_FAILURE = """
SELECT 'failure', f.*, NULL::bigint FROM ({}) f (side, source, policy, task, cell, phase, labels, category, n)
"""
_CONTRACT = """
SELECT 'contract', side, source, NULL, NULL, contract, NULL, NULL, NULL, n, NULL
FROM ({}) c (side, source, contract, n)
"""
_SESSION = """
SELECT 'session', side, source, policy, task, NULL, session, NULL, NULL, successes, failures
FROM ({}) s (side, source, policy, task, session, successes, failures)
"""


@dataclass(frozen=True)
class PageRead:
    """Of each side that was asked for."""

    failures: list[list[FailureCount]]
    contracts: list[list[ContractCount]]
    sessions: list[list[SessionCount]]


def read_for_page(connection: Connection, project_id: int, asked: Sequence[Asked], most_sessions: int) -> PageRead:
    """Without a filter: with one, sessions come from single episodes."""
    sitting = [(scope, window, CellFilter()) for scope, window in asked]
    parts = {
        _FAILURE: bucket_statements(project_id, asked, FAILURES, project="r.project_id"),
        _CONTRACT: bucket_statements(project_id, asked, CONTRACTS),
        _SESSION: session_statements(project_id, sitting, most_sessions),
    }
    statements = [each.format(" UNION ALL ".join(inner)) for each, (inner, _) in parts.items() if inner]
    parameters = {name: value for _, own in parts.values() for name, value in own.items()}
    failures: list[list[tuple[Any, ...]]] = [[] for _ in asked]
    contracts: list[list[tuple[Any, ...]]] = [[] for _ in asked]
    sessions: list[tuple[Any, ...]] = []
    if statements:
        with driver_cursor(connection) as cursor:
            rows = cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()
        for row in rows:
            if row[0] == "session":
                sessions.append((*row[1:5], row[6], row[9], row[10]))
            elif row[0] == "failure":
                failures[row[1]].append(row[2:10])
            else:
                contracts[row[1]].append((row[2], row[5], row[9]))
    return PageRead(
        failures_of(connection, project_id, asked, failures),
        contracts_of(connection, project_id, asked, contracts),
        sessions_of(connection, project_id, sitting, most_sessions, sessions),
    )
