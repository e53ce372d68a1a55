"""Reading one side of a comparison: whole months and days from the rollups, the edges of the window from episodes.

So a window is exact to the microsecond, and what is read does not grow with what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple, cast

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.statistics.estimates.sketches import Moments, Sketch
from gapwatch.store.core.driver import driver_cursor
from gapwatch.store.read.cell_names import cells_named, contract_bodies
from gapwatch.store.read.edge_cell_counts import CellKey, each_edge_cells
from gapwatch.store.read.selection import (
    Cell,
    Scope,
    Window,
    bucket_clauses,
    split,
)
from gapwatch.store.read.window_edges import (
    Asked,
    each_edges,
    numbered,
)
from gapwatch.tally.sums import CellContent, Measured
from gapwatch.tally.values import NamedValues, add_values, unpack_values

Outcome = Literal["success", "failure"]
Kind = Literal["metric", "signal"]
# A sender may put something into its contract that is new in every episode; so many bodies of a side are read.
MOST_BODIES = 20
Values = dict[str, dict[Outcome, "ValueRollup"]]
FAILURES = """
    SELECT r.source_id, r.policy_id, r.task_id, r.cell_id, s.phase, s.labels, s.category, sum(r.failures)::bigint
    FROM rollup_failures r JOIN signatures s ON s.project_id = r.project_id AND s.id = r.signature_id
    WHERE {} GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
CONTRACTS = "SELECT source_id, contract_id, sum(episodes)::bigint FROM rollup_contracts WHERE {} GROUP BY 1, 2"


class CellCount(NamedTuple):
    source_id: int
    policy_id: int
    task_id: int
    cell: Cell
    successes: int
    failures: int
    aborted: int
    abandoned: int


class Signature(NamedTuple):
    """What was said of a failure."""

    phase: str | None
    labels: tuple[str, ...]
    category: str | None


class FailureCount(NamedTuple):
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
    """Episodes under one contract; 0 stands for those that sent none. Of rarely used ones no body is read."""

    source_id: int
    contract_id: int
    body: Mapping[str, Any] | None
    episodes: int


class Total(NamedTuple):
    """All episodes of one source with one policy and task."""

    source_id: int
    policy_id: int
    task_id: int
    successes: int
    failures: int
    aborted: int
    abandoned: int
    cell: None = None


def each_totals(connection: Connection, project_id: int, asked: Sequence[Asked]) -> list[list[Total]]:
    """A few rows a month, where cells are hundreds.

    The ends by sitting: what knows how many succeeded is asked for sessions and contracts next.
    """
    query = """
        SELECT source_id, policy_id, task_id, sum(successes)::bigint, sum(failures)::bigint, sum(aborted)::bigint,
               sum(abandoned)::bigint
        FROM rollup_counts WHERE {} GROUP BY 1, 2, 3
    """
    sides = []
    rows = _bucket_rows(connection, project_id, asked, query)
    for at_edges, mine in zip(each_edges(connection, project_id, asked, "sitting"), rows, strict=True):
        counted = {row[:3]: list(row[3:]) for row in mine} if at_edges.hours else {}
        for ((_, policy, task, source), _), counts in at_edges.hours.items():
            place = counted.setdefault((source, policy, task), [0, 0, 0, 0])
            for outcome, count in enumerate(counts):
                place[outcome] += count
        found = [(*key, *counts) for key, counts in counted.items()] if counted else mine
        sides.append([Total(*row) for row in found])
    return sides


def cell_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[CellCount]:
    return each_cell_counts(connection, project_id, [(scope, window)])[0]


def each_cell_counts(connection: Connection, project_id: int, asked: Sequence[Asked]) -> list[list[CellCount]]:
    """Of several sides at once, in one query."""
    query = """
        SELECT source_id, policy_id, task_id, cell_id, sum(successes)::bigint, sum(failures)::bigint,
               sum(aborted)::bigint, sum(abandoned)::bigint
        FROM rollup_cells WHERE {} GROUP BY 1, 2, 3, 4
    """
    rows = _bucket_rows(connection, project_id, asked, query)
    # Named first: what is known by its number is then one with what stands at the ends.
    named = cells_named(connection, project_id, {row[3] for mine in rows for row in mine})
    at_ends = each_edge_cells(connection, project_id, asked)
    sides = [_with_ends(mine, ends) if ends else mine for mine, ends in zip(rows, at_ends, strict=True)]
    named |= cells_named(connection, project_id, {row[3] for mine in sides for row in mine if row[3] not in named})
    return [
        [
            CellCount(source, policy, task, named[cell], successes, failures, aborted, abandoned)
            for source, policy, task, cell, successes, failures, aborted, abandoned in mine
            if successes or failures or aborted or abandoned
        ]
        for mine in sides
    ]


def _with_ends(rows: Sequence[tuple[Any, ...]], ends: Mapping[CellKey, list[int]]) -> list[tuple[Any, ...]]:
    counted = {row[:4]: list(row[4:]) for row in rows}
    for key, counts in ends.items():
        place = counted.setdefault(key, [0, 0, 0, 0])
        for outcome, count in enumerate(counts):
            place[outcome] += count
    return [(*key, *counts) for key, counts in counted.items()]


def failure_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[FailureCount]:
    return each_failure_counts(connection, project_id, [(scope, window)])[0]


def each_failure_counts(
    connection: Connection, project_id: int, asked: Sequence[Asked]
) -> list[list[FailureCount]]:
    rows = _bucket_rows(connection, project_id, asked, FAILURES, project="r.project_id")
    return failures_of(connection, project_id, asked, rows)


def failures_of(
    connection: Connection, project_id: int, asked: Sequence[Asked], rows: Sequence[Sequence[Sequence[Any]]]
) -> list[list[FailureCount]]:
    sides: list[dict[tuple[int, int, int, CellContent | int, Signature], int]] = []
    for at_edges, mine in zip(each_edges(connection, project_id, asked, "failure"), rows, strict=True):
        counted: dict[tuple[int, int, int, CellContent | int, Signature], int] = {}
        for source, policy, task, cell, phase, labels, category, count in mine:
            counted[source, policy, task, cell, Signature(phase, tuple(labels), category)] = count
        for ((_, policy, task, source), _, content, said), count in at_edges.failures.items():
            place = (source, policy, task, content, Signature(*said))
            counted[place] = counted.get(place, 0) + count
        sides.append(counted)
    named = cells_named(connection, project_id, {key[3] for counted in sides for key in counted})
    return [
        [
            FailureCount(source, policy, task, named[cell], signature, count)
            for (source, policy, task, cell, signature), count in counted.items()
            if count
        ]
        for counted in sides
    ]


def value_rollups(connection: Connection, project_id: int, scope: Scope, window: Window, kind: Kind) -> Values:
    """By name and outcome. Metrics include `reward` and `duration_s`."""
    return each_value_rollups(connection, project_id, [(scope, window)], kind)[0]


def each_value_rollups(
    connection: Connection, project_id: int, asked: Sequence[Asked], kind: Kind
) -> list[Values]:
    query = f"SELECT outcome, bucket_at, body FROM rollup_values WHERE {{}} AND kind = '{kind}'"  # noqa: S608
    sides = []
    rows = _bucket_rows(connection, project_id, asked, query)
    for at_edges, mine in zip(each_edges(connection, project_id, asked, "values"), rows, strict=True):
        bodies: dict[str, list[bytes]] = {}
        for outcome, _, body in sorted(mine, key=itemgetter(1)):
            bodies.setdefault(outcome, []).append(body)
        found: dict[str, NamedValues] = {}
        for outcome, in_order in bodies.items():
            values = found[outcome] = {}
            add_values(values, _together(tuple(in_order[:-1])))
            add_values(values, unpack_values(in_order[-1]))
        _add_edges(found, at_edges.values, kind)
        sides.append(_by_name(found))
    return sides


@lru_cache(maxsize=64)
def _together(bodies: tuple[bytes, ...]) -> NamedValues:
    """Sums of months and days that are over, which hardly ever change. Not to be written to."""
    found: NamedValues = {}
    for body in bodies:
        add_values(found, unpack_values(body))
    return found


def values_of(measured: Measured, kind: Kind) -> Values:
    found: dict[str, NamedValues] = {}
    _add_edges(found, measured, kind)
    return _by_name(found)


def _add_edges(found: dict[str, NamedValues], measured: Measured, kind: Kind) -> None:
    for (_, _, of_kind, outcome), values in measured.items():
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
    return each_contract_counts(connection, project_id, [(scope, window)])[0]


def each_contract_counts(
    connection: Connection, project_id: int, asked: Sequence[Asked]
) -> list[list[ContractCount]]:
    return contracts_of(connection, project_id, asked, _bucket_rows(connection, project_id, asked, CONTRACTS))


def contracts_of(
    connection: Connection, project_id: int, asked: Sequence[Asked], rows: Sequence[Sequence[Sequence[Any]]]
) -> list[list[ContractCount]]:
    sides: list[dict[tuple[int, int], int]] = []
    for at_edges, mine in zip(each_edges(connection, project_id, asked, "sitting"), rows, strict=True):
        counted = {(source, contract): count for source, contract, count in mine}
        for ((*_, source), _, contract), count in at_edges.contracts.items():
            counted[source, contract] = counted.get((source, contract), 0) + count
        sides.append(counted)
    most_used = {
        contract
        for counted in sides
        for (_, contract), _ in sorted(counted.items(), key=lambda item: -item[1])[:MOST_BODIES]
    }
    known = contract_bodies(connection, project_id, most_used)
    return [
        sorted(
            (
                ContractCount(source, contract, known.get(contract), count)
                for (source, contract), count in counted.items()
                if count
            ),
            key=lambda each: -each.episodes,
        )
        for counted in sides
    ]


def _bucket_rows(
    connection: Connection,
    project_id: int,
    asked: Sequence[Asked],
    query: str,
    project: str = "project_id",
) -> list[list[tuple[Any, ...]]]:
    """The rows of each side, all in one query."""
    found: list[list[tuple[Any, ...]]] = [[] for _ in asked]
    statements, parameters = bucket_statements(project_id, asked, query, project)
    if statements:
        with driver_cursor(connection) as cursor:
            for row in cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall():
                found[row[0]].append(row[1:])
    return found


def bucket_statements(
    project_id: int, asked: Sequence[Asked], query: str, project: str = "project_id"
) -> tuple[list[str], dict[str, Any]]:
    """The side, then what the query says of it."""
    statements: list[str] = []
    parameters: dict[str, Any] = {"project_id": project_id}
    for side, (scope, window) in enumerate(asked):
        parts = split(window)
        if parts.months is None and not parts.days:
            continue
        buckets, own = bucket_clauses(parts)
        clauses = numbered(f"{scope.clauses()} AND {buckets}", str(side))
        parameters |= {f"{name}_{side}": value for name, value in (scope.parameters() | own).items()}
        inner = query.format(f"{project} = %(project_id)s AND {clauses}")
        statements.append(f"SELECT {side}, each.* FROM ({inner}) each")  # noqa: S608 - text of ours
    return statements, parameters
