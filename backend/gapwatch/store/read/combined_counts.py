"""Failures, contracts and sessions of several selections in one query, for whoever needs all three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.read.rollup_counts import (
    CONTRACTS,
    FAILURES,
    ContractCount,
    FailureCount,
    bucket_statements,
    by_side,
    contracts_with_edges,
    failures_with_edges,
)
from gapwatch.store.read.selection import CellFilter, Selection
from gapwatch.store.read.session_counts import (
    SessionCount,
    session_statements,
    sessions_with_edges,
)
from gapwatch.store.read.window_edges import WindowEdges


class _CombinedRow(NamedTuple):
    """A row of any of the three; null where its kind has no such column."""

    kind: str
    side: int
    source_id: int
    policy_id: int
    task_id: int
    cell_id: int
    phase: str | None
    labels: list[str]
    category: str | None
    failures: int
    contract_id: int
    episodes: int
    session: str
    successes: int


_FAILURE = """
SELECT 'failure' AS kind, side, source_id, policy_id, task_id, cell_id, phase, labels, category, failures,
       NULL::int AS contract_id, NULL::bigint AS episodes, NULL AS session, NULL::bigint AS successes
FROM ({}) f
"""
_CONTRACT = """
SELECT 'contract' AS kind, side, source_id, NULL::int AS policy_id, NULL::int AS task_id, NULL::int AS cell_id,
       NULL AS phase, NULL::text[] AS labels, NULL AS category, NULL::bigint AS failures, contract_id, episodes,
       NULL AS session, NULL::bigint AS successes
FROM ({}) c
"""
_SESSION = """
SELECT 'session' AS kind, side, source_id, policy_id, task_id, NULL::int AS cell_id, NULL AS phase,
       NULL::text[] AS labels, NULL AS category, failures, NULL::int AS contract_id, NULL::bigint AS episodes,
       session, successes
FROM ({}) s
"""


@dataclass(frozen=True)
class CombinedCounts:
    """One list a selection."""

    failures: list[list[FailureCount]]
    contracts: list[list[ContractCount]]
    sessions: list[list[SessionCount]]


def combined_counts(
    connection: Connection,
    project_id: int,
    selections: Sequence[Selection],
    most_sessions: int,
    edges: WindowEdges,
) -> CombinedCounts:
    """Read without a filter: with one, sessions come from single episodes."""
    unfiltered = [(scope, window, CellFilter()) for scope, window in selections]
    parts = {
        _FAILURE: bucket_statements(project_id, selections, FAILURES, project="r.project_id"),
        _CONTRACT: bucket_statements(project_id, selections, CONTRACTS),
        _SESSION: session_statements(project_id, unfiltered, most_sessions),
    }
    statements = [each.format(" UNION ALL ".join(inner)) for each, (inner, _) in parts.items() if inner]
    parameters = {name: value for _, own in parts.values() for name, value in own.items()}
    rows: list[_CombinedRow] = []
    if statements:
        with named_cursor(connection, _CombinedRow) as cursor:
            rows = cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()
    failures = [row for row in rows if row.kind == "failure"]
    contracts = [row for row in rows if row.kind == "contract"]
    sessions = [
        SessionCount(row.side, row.source_id, row.policy_id, row.task_id, row.session, row.successes, row.failures)
        for row in rows
        if row.kind == "session"
    ]
    sides = len(selections)
    return CombinedCounts(
        failures_with_edges(connection, project_id, selections, by_side(failures, sides), edges),
        contracts_with_edges(connection, project_id, selections, by_side(contracts, sides), edges),
        sessions_with_edges(unfiltered, most_sessions, sessions, edges),
    )
