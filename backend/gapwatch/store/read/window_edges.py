"""The edges of a window that begins or ends within a day, summed from the episodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.fold.episode_rows import (
    episodes_in,
    failed_rows_where,
    rows_where,
    sessions_where,
)
from gapwatch.store.read.selection import (
    Parts,
    Scope,
    Selection,
    Window,
    split,
)
from gapwatch.tally.sums import Sums

_PARAMETER = re.compile(r"%\((\w+)\)s")

# Which sums. Postgres counts; values need every episode.
Summed = Literal["sessions", "failures", "values"]


def numbered(clauses: str, suffix: str) -> str:
    """Suffix the names of the parameters, so that the clauses can stand beside others in one query."""
    return _PARAMETER.sub(rf"%(\1_{suffix})s", clauses)


class WindowEdges:
    """Reads the edges of windows, each part once however many counts are completed with it.

    One object belongs to one load: outcomes, sessions and contracts of a side share their edges.
    """

    def __init__(self, connection: Connection, project_id: int) -> None:
        self._connection, self._project_id = connection, project_id
        self._read: dict[tuple[Scope, Window, Summed], Sums] = {}

    def sums(self, selections: Sequence[Selection], summed: Summed) -> list[Sums]:
        """Return the sums of each selection. Selections of one window are read in one query."""
        for window in dict.fromkeys(window for _, window in selections):
            parts = split(window)
            missing = [
                scope for scope, at in selections if at == window and self._known(scope, at, summed) is None
            ]
            if missing and parts.edges:
                sums = _read_edges(self._connection, self._project_id, missing, parts, summed)
                self._read |= {(scope, window, summed): _within(sums, scope) for scope in missing}
        return [self._known(scope, window, summed) or Sums() for scope, window in selections]

    def _known(self, scope: Scope, window: Window, summed: Summed) -> Sums | None:
        """Return what was read for this scope, or for one that contains it."""
        if (scope, window, summed) in self._read:
            return self._read[scope, window, summed]
        for (other, at, what), sums in self._read.items():
            if (at, what) == (window, summed) and other.contains(scope):
                return _within(sums, scope)
        return None


def _within(sums: Sums, scope: Scope) -> Sums:
    """Keep what belongs to the scope."""
    return Sums(
        **{
            part.name: {key: value for key, value in getattr(sums, part.name).items() if scope.holds(*key[0])}
            for part in fields(Sums)
        }
    )


def _read_edges(
    connection: Connection, project_id: int, scopes: Sequence[Scope], parts: Parts, summed: Summed
) -> Sums:
    clauses, parameters = _clauses(scopes, parts)
    if summed == "values":
        rows = rows_where(connection, project_id, clauses, parameters)
        return Sums(values=episodes_in(connection, project_id, rows).measured())
    if summed == "failures":
        rows = failed_rows_where(connection, project_id, clauses, parameters)
        return episodes_in(connection, project_id, rows).counted()
    return sessions_where(connection, project_id, clauses, parameters)


def _clauses(scopes: Sequence[Scope], parts: Parts) -> tuple[sql.Composable, dict[str, Any]]:
    alternatives: list[str] = []
    parameters: dict[str, Any] = {}
    for index, scope in enumerate(scopes):
        alternatives.append(numbered(f"({scope.clauses('e')})", f"of_{index}"))
        parameters |= {f"{name}_of_{index}": value for name, value in scope.parameters().items()}
    edges, times = edge_clauses(parts)
    return sql.SQL(f"({' OR '.join(alternatives)}) AND {edges}"), parameters | times


def edge_clauses(parts: Parts) -> tuple[str, dict[str, Any]]:
    edges = " OR ".join(
        f"(e.started_at >= %(since_{index})s AND e.started_at < %(until_{index})s)"
        for index in range(len(parts.edges))
    )
    parameters: dict[str, Any] = {}
    for index, (since, until) in enumerate(parts.edges):
        parameters |= {f"since_{index}": since, f"until_{index}": until}
    return f"({edges})", parameters
