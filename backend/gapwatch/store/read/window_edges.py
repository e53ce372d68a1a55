"""The edges of a window that begins or ends within a day, summed from the episodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection

from gapwatch.store.fold.episode_rows import each_episodes_where
from gapwatch.store.read.selection import Parts, Scope, Selection, split
from gapwatch.tally.sums import Sums

_PARAMETER = re.compile(r"%\((\w+)\)s")


def numbered(clauses: str, suffix: str) -> str:
    """Suffix the names of the parameters, so that the clauses can stand beside others in one query."""
    return _PARAMETER.sub(rf"%(\1_{suffix})s", clauses)


class WindowEdges:
    """Reads the edges of windows, each once and those of several windows in one query.

    One object belongs to one load: whatever it counts of a side shares the side's edges. A load that will need
    values says so, and its first query brings them along.
    """

    def __init__(self, connection: Connection, project_id: int, *, with_values: bool = False) -> None:
        self._connection, self._project_id = connection, project_id
        self._with_values = with_values
        self._counted: dict[Selection, Sums] = {}
        self._measured: dict[Selection, Sums] = {}

    def counted(self, selections: Sequence[Selection]) -> list[Sums]:
        """Return all sums of each selection but the values."""
        return self._sums(selections, self._counted, with_values=self._with_values)

    def measured(self, selections: Sequence[Selection]) -> list[Sums]:
        """Return the values of each selection."""
        return self._sums(selections, self._measured, with_values=True)

    def _sums(
        self, selections: Sequence[Selection], read: dict[Selection, Sums], *, with_values: bool
    ) -> list[Sums]:
        missing = [one for one in dict.fromkeys(selections) if split(one[1]).edges and _known(read, one) is None]
        if missing:
            self._read(missing, with_values=with_values)
        return [_known(read, one) or Sums() for one in selections]

    def _read(self, selections: Sequence[Selection], *, with_values: bool) -> None:
        clauses_of_each: list[str] = []
        parameters: dict[str, Any] = {}
        for side, (scope, window) in enumerate(selections):
            edges, times = _edge_clauses(split(window))
            clauses_of_each.append(numbered(f"{scope.clauses('e')} AND {edges}", str(side)))
            parameters |= {f"{name}_{side}": value for name, value in (scope.parameters() | times).items()}
        read = each_episodes_where(
            self._connection, self._project_id, clauses_of_each, parameters, with_values=with_values
        )
        for selection, episodes in zip(selections, read, strict=True):
            self._counted[selection] = episodes.counted()
            if with_values:
                self._measured[selection] = Sums(values=episodes.measured())


def _known(read: dict[Selection, Sums], selection: Selection) -> Sums | None:
    """Return what was read for this scope, or for one that contains it."""
    if selection in read:
        return read[selection]
    scope, window = selection
    for (other, at), sums in read.items():
        if at == window and other.contains(scope):
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


def _edge_clauses(parts: Parts) -> tuple[str, dict[str, Any]]:
    edges = " OR ".join(
        f"(e.started_at >= %(since_{index})s AND e.started_at < %(until_{index})s)"
        for index in range(len(parts.edges))
    )
    parameters: dict[str, Any] = {}
    for index, (since, until) in enumerate(parts.edges):
        parameters |= {f"since_{index}": since, f"until_{index}": until}
    return f"({edges})", parameters
