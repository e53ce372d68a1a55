"""Reading one side of a comparison: whole months and days from the rollups, the edges of the window from episodes.

So a window is exact to the microsecond, and what is read does not grow with what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary

from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.statistics.sketches import Moments, Sketch
from gapwatch.store.folding import driver_cursor, rows_where, sums_of
from gapwatch.store.scopes import Cell, Parts, Scope, Window, bucket_clauses, split
from gapwatch.tally.sums import CellContent, Sums
from gapwatch.tally.values import NamedValues, add_values, unpack_values

Outcome = Literal["success", "failure"]
Kind = Literal["metric", "signal"]
Values = dict[str, dict[Outcome, "ValueRollup"]]


@dataclass(frozen=True)
class CellCount:
    source_id: int
    policy_id: int
    task_id: int
    cell: Cell
    successes: int
    failures: int
    aborted: int
    abandoned: int


@dataclass(frozen=True)
class Signature:
    """What was said of a failure."""

    phase: str | None
    labels: tuple[str, ...]
    category: str | None


@dataclass(frozen=True)
class FailureCount:
    source_id: int
    policy_id: int
    task_id: int
    cell: Cell
    signature: Signature
    failures: int


@dataclass(frozen=True)
class ValueRollup:
    moments: Moments
    sketch: Sketch


@dataclass(frozen=True)
class ContractCount:
    source_id: int
    body: Mapping[str, Any] | None
    episodes: int


def cell_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[CellCount]:
    counted: dict[tuple[int, int, int, CellContent | int], list[int]] = {}
    query = """
        SELECT source_id, policy_id, task_id, cell_id, sum(successes)::bigint, sum(failures)::bigint,
               sum(aborted)::bigint, sum(abandoned)::bigint
        FROM rollup_cells WHERE {} GROUP BY 1, 2, 3, 4
    """
    for row in _bucket_rows(connection, project_id, scope, window, query):
        counted[row[:4]] = list(row[4:])
    at_edges = edges(connection, project_id, scope, window)
    for ((_, policy, task, source), _, content), counts in at_edges.cells.items():
        place = counted.setdefault((source, policy, task, content), [0, 0, 0, 0])
        for outcome, count in enumerate(counts):
            place[outcome] += count
    named = cells_named(connection, project_id, {key[3] for key in counted})
    return [
        CellCount(source, policy, task, named[cell], *counts)
        for (source, policy, task, cell), counts in counted.items()
        if any(counts)
    ]


def failure_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[FailureCount]:
    counted: dict[tuple[int, int, int, CellContent | int, Signature], int] = {}
    query = """
        SELECT r.source_id, r.policy_id, r.task_id, r.cell_id, s.phase, s.labels, s.category,
               sum(r.failures)::bigint
        FROM rollup_failures r JOIN signatures s ON s.project_id = r.project_id AND s.id = r.signature_id
        WHERE {} GROUP BY 1, 2, 3, 4, 5, 6, 7
    """
    for *key, phase, labels, category, count in _bucket_rows(
        connection, project_id, scope, window, query, project="r.project_id"
    ):
        counted[(*key, Signature(phase, tuple(labels), category))] = count
    found = edges(connection, project_id, scope, window).failures
    for ((_, policy, task, source), _, content, said), count in found.items():
        place = (source, policy, task, content, Signature(*said))
        counted[place] = counted.get(place, 0) + count
    named = cells_named(connection, project_id, {key[3] for key in counted})
    return [
        FailureCount(source, policy, task, named[cell], signature, count)
        for (source, policy, task, cell, signature), count in counted.items()
        if count
    ]


def value_rollups(connection: Connection, project_id: int, scope: Scope, window: Window, kind: Kind) -> Values:
    """By name and outcome. Metrics include `reward` and `duration_s`."""
    found: dict[str, NamedValues] = {}
    query = f"SELECT outcome, body FROM rollup_values WHERE {{}} AND kind = '{kind}'"  # noqa: S608 - one of two words
    for outcome, body in _bucket_rows(connection, project_id, scope, window, query):
        add_values(found.setdefault(outcome, {}), unpack_values(body))
    _add_edges(found, edges(connection, project_id, scope, window), kind)
    return _by_name(found)


def values_of(sums: Sums, kind: Kind) -> Values:
    found: dict[str, NamedValues] = {}
    _add_edges(found, sums, kind)
    return _by_name(found)


def _add_edges(found: dict[str, NamedValues], sums: Sums, kind: Kind) -> None:
    for (_, _, of_kind, outcome), values in sums.values.items():
        if of_kind == kind:
            add_values(found.setdefault(outcome, {}), values)


def _by_name(found: Mapping[str, NamedValues]) -> Values:
    values: Values = {}
    for outcome, named in sorted(found.items()):
        for name, value in sorted(named.items()):
            if not value.is_empty:
                rollup = ValueRollup(
                    Moments(value.n, value.total, value.total_sq), Sketch(value.bins, value.negative, value.zero)
                )
                values.setdefault(name, {})[cast(Outcome, outcome)] = rollup
    return values


def contract_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[ContractCount]:
    """Most episodes first."""
    counted: dict[tuple[int, int], int] = {}
    query = """
        SELECT source_id, contract_id, sum(episodes)::bigint FROM rollup_contracts WHERE {} GROUP BY 1, 2
    """
    for source, contract, count in _bucket_rows(connection, project_id, scope, window, query):
        counted[source, contract] = count
    for ((*_, source), _, contract), count in edges(connection, project_id, scope, window).contracts.items():
        counted[source, contract] = counted.get((source, contract), 0) + count
    bodies = connection.execute(
        text("SELECT id, body FROM contracts WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": sorted({contract for _, contract in counted})},
    )
    known = {row.id: row.body for row in bodies}
    found = [
        ContractCount(source, known.get(contract), count) for (source, contract), count in counted.items() if count
    ]
    return sorted(found, key=lambda each: -each.episodes)


def pooled_conditions(connection: Connection, project_id: int) -> list[tuple[str, int]]:
    """Conditions that are left out of cells because they have too many levels, and how many those were."""
    found = connection.execute(
        text("SELECT name, levels FROM pooled_conditions WHERE project_id = :p ORDER BY name"), {"p": project_id}
    )
    return [(row.name, row.levels) for row in found]


# Cells never change, so a process remembers what they are called; bounded.
_NAMED: dict[tuple[int, int], Cell] = {}
_MOST_NAMED = 50_000


def cells_named(
    connection: Connection, project_id: int, cells: set[CellContent | int]
) -> dict[CellContent | int, Cell]:
    """The cells of a rollup by number, and those of single episodes by content."""
    unknown = [cell for cell in cells if isinstance(cell, int) and (project_id, cell) not in _NAMED]
    if unknown:
        if len(_NAMED) > _MOST_NAMED:
            _NAMED.clear()
        found = connection.execute(
            text(
                "SELECT c.id, r.name AS robot, s.name AS site, c.stage, c.levels FROM cells c"
                " LEFT JOIN robots r ON r.project_id = c.project_id AND r.id = c.robot_id"
                " LEFT JOIN sites s ON s.project_id = c.project_id AND s.id = c.site_id"
                " WHERE c.project_id = :p AND c.id = ANY(:ids)"
            ),
            {"p": project_id, "ids": unknown},
        )
        for row in found:
            _NAMED[project_id, row.id] = Cell(row.robot, row.site, row.stage, row.levels)
    contents = [cell for cell in cells if not isinstance(cell, int)]
    robots = _names(connection, project_id, "robots", {cell[0] for cell in contents})
    sites = _names(connection, project_id, "sites", {cell[1] for cell in contents})
    return {
        cell: _NAMED[project_id, cell]
        if isinstance(cell, int)
        else Cell(robots.get(cell[0]), sites.get(cell[1]), cell[2], dict(cell[3]))
        for cell in cells
    }


def _names(
    connection: Connection, project_id: int, table: Literal["robots", "sites"], ids: set[int | None]
) -> dict[int | None, str]:
    wanted = sorted(ids - {None})  # type: ignore[type-var]
    if not wanted:
        return {}
    statement = f"SELECT id, name FROM {table} WHERE project_id = :p AND id = ANY(:ids)"  # noqa: S608 - one of two
    return {row.id: row.name for row in connection.execute(text(statement), {"p": project_id, "ids": wanted})}


def _bucket_rows(
    connection: Connection,
    project_id: int,
    scope: Scope,
    window: Window,
    query: str,
    project: str = "project_id",
) -> list[tuple[Any, ...]]:
    parts = split(window)
    if parts.months is None and not parts.days:
        return []
    buckets, parameters = bucket_clauses(parts)
    where = f"{project} = %(project_id)s AND {scope.clauses()} AND {buckets}"
    with driver_cursor(connection) as cursor:
        statement = sql.SQL(query.format(where))
        cursor.execute(statement, {"project_id": project_id, **scope.parameters(), **parameters})
        return cursor.fetchall()


_EDGES: WeakKeyDictionary[Connection, dict[tuple[int, Scope, Window], Sums]] = WeakKeyDictionary()


def edges(connection: Connection, project_id: int, scope: Scope, window: Window) -> Sums:
    """The sums of the episodes at the ends of a window, read once a transaction however many answers need them."""
    known = _EDGES.setdefault(connection, {})
    key = (project_id, scope, window)
    if key not in known:
        known[key] = _read_edges(connection, project_id, scope, split(window))
    return known[key]


def _read_edges(connection: Connection, project_id: int, scope: Scope, parts: Parts) -> Sums:
    if not parts.edges:
        return Sums()
    ends = " OR ".join(
        f"(e.started_at >= %(since_{number})s AND e.started_at < %(until_{number})s)"
        for number in range(len(parts.edges))
    )
    parameters = scope.parameters()
    for number, (since, until) in enumerate(parts.edges):
        parameters |= {f"since_{number}": since, f"until_{number}": until}
    clauses = sql.SQL(f"{scope.clauses('e')} AND ({ends})")
    return sums_of(connection, project_id, rows_where(connection, project_id, clauses, parameters))
