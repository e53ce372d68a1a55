"""The ends of a window that begin or end within a day: read from the episodes, each part once a transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal
from weakref import WeakKeyDictionary

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.fold.episode_rows import (
    episodes_in,
    failed_rows_where,
    rows_where,
    sittings_where,
)
from gapwatch.store.read.selection import (
    Parts,
    Scope,
    Window,
    split,
)
from gapwatch.tally.sums import Sums

Asked = tuple[Scope, Window]
_PARAMETER = re.compile(r"%\((\w+)\)s")


def numbered(clauses: str, suffix: str) -> str:
    """The same clauses with their parameters under names of their own, to stand beside others in one query."""
    return _PARAMETER.sub(rf"%(\1_{suffix})s", clauses)


# What is read of them. Counts are made by Postgres; values need every episode.
Of = Literal["sitting", "failure", "values"]
_Key = tuple[int, Scope, Window, Of]
_EDGES: WeakKeyDictionary[Connection, dict[_Key, Sums]] = WeakKeyDictionary()


def each_edges(connection: Connection, project_id: int, asked: Sequence[Asked], of: Of) -> list[Sums]:
    """The sums of the episodes at the ends of windows, read once a transaction however many answers need them."""
    known = _EDGES.setdefault(connection, {})
    for window in dict.fromkeys(window for _, window in asked):
        scopes = [
            scope for scope, at in asked if at == window and _known(known, (project_id, scope, at, of)) is None
        ]
        if scopes:
            read = _read_edges(connection, project_id, scopes, split(window), of)
            known |= {(project_id, scope, window, of): _only(read, scope) for scope in scopes}
    return [_known(known, (project_id, scope, window, of)) or Sums() for scope, window in asked]


def _known(known: Mapping[_Key, Sums], key: _Key) -> Sums | None:
    """What was read for this side, or for a side that contains it."""
    if key in known:
        return known[key]
    project_id, scope, window, of = key
    wider = (
        sums
        for (project, other, at, what), sums in known.items()
        if (project, at, what) == (project_id, window, of) and other.contains(scope)
    )
    found = next(wider, None)
    return None if found is None else _only(found, scope)


def _only(sums: Sums, scope: Scope) -> Sums:
    """What of the sums belongs to a side."""
    return Sums(
        **{
            part.name: {key: value for key, value in getattr(sums, part.name).items() if scope.holds(*key[0])}
            for part in fields(Sums)
        }
    )


def _read_edges(connection: Connection, project_id: int, scopes: Sequence[Scope], parts: Parts, of: Of) -> Sums:
    if not parts.edges:
        return Sums()
    clauses, parameters = _clauses(scopes, parts)
    if of == "values":
        rows = rows_where(connection, project_id, clauses, parameters)
        return Sums(values=episodes_in(connection, project_id, rows).measured())
    if of == "failure":
        rows = failed_rows_where(connection, project_id, clauses, parameters)
        return episodes_in(connection, project_id, rows).counted()
    return sittings_where(connection, project_id, clauses, parameters)


def _clauses(scopes: Sequence[Scope], parts: Parts) -> tuple[sql.Composable, dict[str, Any]]:
    """The episodes of these sides at the ends of a window."""
    sides: list[str] = []
    parameters: dict[str, Any] = {}
    for side, scope in enumerate(scopes):
        sides.append(numbered(f"({scope.clauses('e')})", f"of_{side}"))
        parameters |= {f"{name}_of_{side}": value for name, value in scope.parameters().items()}
    ends, times = end_clauses(parts)
    return sql.SQL(f"({' OR '.join(sides)}) AND {ends}"), parameters | times


def end_clauses(parts: Parts) -> tuple[str, dict[str, Any]]:
    ends = " OR ".join(
        f"(e.started_at >= %(since_{number})s AND e.started_at < %(until_{number})s)"
        for number in range(len(parts.edges))
    )
    parameters: dict[str, Any] = {}
    for number, (since, until) in enumerate(parts.edges):
        parameters |= {f"since_{number}": since, f"until_{number}": until}
    return f"({ends})", parameters
