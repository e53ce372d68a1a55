"""The ends of a window that begin or end within a day: read from the episodes, once a transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.folding import rows_where, sums_of
from gapwatch.store.scopes import Parts, Scope, Window, split
from gapwatch.tally.sums import Sums

Asked = tuple[Scope, Window]
_PARAMETER = re.compile(r"%\((\w+)\)s")


def numbered(clauses: str, suffix: str) -> str:
    """The same clauses with their parameters under names of their own, to stand beside others in one query."""
    return _PARAMETER.sub(rf"%(\1_{suffix})s", clauses)


_EDGES: WeakKeyDictionary[Connection, dict[tuple[int, Scope, Window], Sums]] = WeakKeyDictionary()


def edges(connection: Connection, project_id: int, scope: Scope, window: Window) -> Sums:
    return each_edges(connection, project_id, [(scope, window)])[0]


def each_edges(connection: Connection, project_id: int, asked: Sequence[Asked]) -> list[Sums]:
    """The sums of the episodes at the ends of a window, read once a transaction however many answers need them."""
    known = _EDGES.setdefault(connection, {})
    for window in dict.fromkeys(window for _, window in asked):
        scopes = [scope for scope, of in asked if of == window and _known(known, project_id, scope, of) is None]
        if scopes:
            read = _read_edges(connection, project_id, scopes, split(window))
            known |= {(project_id, scope, window): _only(read, scope) for scope in scopes}
    return [_known(known, project_id, scope, window) or Sums() for scope, window in asked]


def _known(
    known: Mapping[tuple[int, Scope, Window], Sums], project_id: int, scope: Scope, window: Window
) -> Sums | None:
    """What was read for this side, or for a side that contains it."""
    if (project_id, scope, window) in known:
        return known[project_id, scope, window]
    wider = (
        sums
        for (project, other, of), sums in known.items()
        if project == project_id and of == window and other.contains(scope)
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


def _read_edges(connection: Connection, project_id: int, scopes: Sequence[Scope], parts: Parts) -> Sums:
    if not parts.edges:
        return Sums()
    ends = " OR ".join(
        f"(e.started_at >= %(since_{number})s AND e.started_at < %(until_{number})s)"
        for number in range(len(parts.edges))
    )
    parameters: dict[str, Any] = {}
    for number, (since, until) in enumerate(parts.edges):
        parameters |= {f"since_{number}": since, f"until_{number}": until}
    sides = []
    for side, scope in enumerate(scopes):
        sides.append(numbered(f"({scope.clauses('e')})", f"of_{side}"))
        parameters |= {f"{name}_of_{side}": value for name, value in scope.parameters().items()}
    clauses = sql.SQL(f"({' OR '.join(sides)}) AND ({ends})")
    return sums_of(connection, project_id, rows_where(connection, project_id, clauses, parameters))
