"""Counts of a selection: whole months and days from the rollups, the edges of its window from episodes.

So a window is exact to the microsecond, and what is read does not grow with what is stored. Functions named
`each_…` read several selections in one query.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.statistics.estimates.sketches import Moments, Sketch
from gapwatch.store.core.driver import named_cursor
from gapwatch.store.read.cell_names import CellRef, cells_named, contract_bodies, known_numbers
from gapwatch.store.read.selection import (
    Cell,
    Scope,
    Selection,
    Window,
    bucket_clauses,
    split,
)
from gapwatch.store.read.window_edges import WindowEdges, numbered
from gapwatch.tally.sums import CellContent, Measured, Signature
from gapwatch.tally.values import NamedValues, add_values, unpack_values

Outcome = Literal["success", "failure"]
Kind = Literal["metric", "signal"]
# A sender may put something into its contract that is new in every episode; so many bodies of a side are read.
MOST_BODIES = 20
Values = dict[str, dict[Outcome, "ValueRollup"]]


class SideRow(Protocol):
    """A row of a query over several selections; `side` is the index of its own."""

    @property
    def side(self) -> int: ...


SideRowT = TypeVar("SideRowT", bound=SideRow)


class CellCount(NamedTuple):
    source_id: int
    policy_id: int
    task_id: int
    cell: Cell
    successes: int
    failures: int
    aborted: int
    abandoned: int


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


class _TotalRow(NamedTuple):
    side: int
    source_id: int
    policy_id: int
    task_id: int
    successes: int
    failures: int
    aborted: int
    abandoned: int


class _CellRow(NamedTuple):
    side: int
    source_id: int
    policy_id: int
    task_id: int
    cell_id: CellRef
    successes: int
    failures: int
    aborted: int
    abandoned: int


class FailureColumns(Protocol):
    """What a row of failures has, whichever query it is of."""

    @property
    def source_id(self) -> int: ...
    @property
    def policy_id(self) -> int: ...
    @property
    def task_id(self) -> int: ...
    @property
    def cell_id(self) -> int: ...
    @property
    def phase(self) -> str | None: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def category(self) -> str | None: ...
    @property
    def failures(self) -> int: ...


class ContractColumns(Protocol):
    """What a row of contracts has, whichever query it is of."""

    @property
    def source_id(self) -> int: ...
    @property
    def contract_id(self) -> int: ...
    @property
    def episodes(self) -> int: ...


class _FailureRow(NamedTuple):
    side: int
    source_id: int
    policy_id: int
    task_id: int
    cell_id: int
    phase: str | None
    labels: list[str]
    category: str | None
    failures: int


class _ContractRow(NamedTuple):
    side: int
    source_id: int
    contract_id: int
    episodes: int


class _ValueRow(NamedTuple):
    side: int
    outcome: str
    bucket_at: Any
    body: bytes


CountedRowT = TypeVar("CountedRowT", _TotalRow, _CellRow)
RowT = TypeVar("RowT", _TotalRow, _CellRow, _FailureRow, _ContractRow, _ValueRow)


FAILURES = """
    SELECT r.source_id, r.policy_id, r.task_id, r.cell_id, s.phase, s.labels, s.category,
           sum(r.failures)::bigint AS failures
    FROM rollup_failures r JOIN signatures s ON s.project_id = r.project_id AND s.id = r.signature_id
    WHERE {} GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
CONTRACTS = """
    SELECT source_id, contract_id, sum(episodes)::bigint AS episodes FROM rollup_contracts WHERE {} GROUP BY 1, 2
"""
_OUTCOMES = """sum(successes)::bigint AS successes, sum(failures)::bigint AS failures,
               sum(aborted)::bigint AS aborted, sum(abandoned)::bigint AS abandoned"""
_TOTALS = f"SELECT source_id, policy_id, task_id, {_OUTCOMES} FROM rollup_counts WHERE {{}} GROUP BY 1, 2, 3"  # noqa: S608
_CELLS = f"""
    SELECT source_id, policy_id, task_id, cell_id, {_OUTCOMES} FROM rollup_cells WHERE {{}} GROUP BY 1, 2, 3, 4
"""  # noqa: S608


_TOTALS_AS_CELLS = f"""
    SELECT source_id, policy_id, task_id, 0 AS cell_id, {_OUTCOMES} FROM rollup_counts WHERE {{}} GROUP BY 1, 2, 3
"""  # noqa: S608


def each_totals(
    connection: Connection, project_id: int, selections: Sequence[Selection], edges: WindowEdges | None = None
) -> list[list[Total]]:
    """Return outcomes by source, policy and task: a few rows a month, where cells are hundreds."""
    edges = edges or WindowEdges(connection, project_id)
    sides = []
    rows_of_each = bucket_rows(connection, project_id, selections, _TOTALS, _TotalRow)
    for side, (sums, rows) in enumerate(zip(edges.counted(selections), rows_of_each, strict=True)):
        at_edges = [
            _TotalRow(side, scope.source_id, scope.policy_id, scope.task_id, *outcomes)
            for (scope, _), outcomes in sums.hours.items()
        ]
        of_key = attrgetter("source_id", "policy_id", "task_id")
        sides.append([_total(row) for row in _add_edges(rows, at_edges, of_key)])
    return sides


def _total(row: _TotalRow | _CellRow) -> Total:
    return Total(
        row.source_id, row.policy_id, row.task_id, row.successes, row.failures, row.aborted, row.abandoned
    )


def cell_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[CellCount]:
    return each_cell_counts(connection, project_id, [(scope, window)])[0]


def each_cell_counts(
    connection: Connection, project_id: int, selections: Sequence[Selection], edges: WindowEdges | None = None
) -> list[list[CellCount]]:
    edges = edges or WindowEdges(connection, project_id)
    rows_of_each = bucket_rows(connection, project_id, selections, _CELLS, _CellRow)
    return _named_cells(connection, project_id, selections, rows_of_each, edges)


def cell_counts_and_totals(
    connection: Connection,
    project_id: int,
    selections: Sequence[Selection],
    of_all: Selection,
    edges: WindowEdges,
) -> tuple[list[list[CellCount]], list[Total]]:
    """Read cells of some selections and mere totals of another, which has no edges, in one query."""
    cell_statements, parameters = bucket_statements(project_id, selections, _CELLS)
    last = len(selections)
    total_statements, own = bucket_statements(project_id, [of_all], _TOTALS_AS_CELLS, first_side=last)
    with named_cursor(connection, _CellRow) as cursor:
        statement = sql.SQL(" UNION ALL ".join([*cell_statements, *total_statements]))
        *rows_of_each, totals = by_side(cursor.execute(statement, parameters | own).fetchall(), last + 1)
    cells_of_each = _named_cells(connection, project_id, selections, rows_of_each, edges)
    return cells_of_each, [_total(row) for row in totals]


def _named_cells(
    connection: Connection,
    project_id: int,
    selections: Sequence[Selection],
    rows_of_each: Sequence[Sequence[_CellRow]],
    edges: WindowEdges,
) -> list[list[CellCount]]:
    cells = cells_named(connection, project_id, {row.cell_id for rows in rows_of_each for row in rows})
    sums_of_each = edges.counted(selections)
    # Cells of the rollups are named by now, so that the edges know their numbers.
    contents = {content for sums in sums_of_each for _, _, content in sums.cells}
    numbers: Mapping[CellContent, CellRef] = known_numbers(connection, project_id, contents)
    cells |= cells_named(connection, project_id, {numbers.get(one, one) for one in contents} - cells.keys())
    sides: list[Sequence[_CellRow]] = []
    for side, (sums, rows) in enumerate(zip(sums_of_each, rows_of_each, strict=True)):
        at_edges = [
            _CellRow(
                side, scope.source_id, scope.policy_id, scope.task_id, numbers.get(content, content), *outcomes
            )
            for (scope, _, content), outcomes in sums.cells.items()
        ]
        sides.append(_add_edges(rows, at_edges, attrgetter("source_id", "policy_id", "task_id", "cell_id")))
    return [
        [
            CellCount(
                row.source_id,
                row.policy_id,
                row.task_id,
                cells[row.cell_id],
                row.successes,
                row.failures,
                row.aborted,
                row.abandoned,
            )
            for row in rows
            if row.successes or row.failures or row.aborted or row.abandoned
        ]
        for rows in sides
    ]


def _add_edges(
    rows: Sequence[CountedRowT], at_edges: Sequence[CountedRowT], key_of: Callable[[CountedRowT], Hashable]
) -> Sequence[CountedRowT]:
    """Add the outcomes at the edges of a window to the rows of its whole days that have the same key."""
    if not at_edges:
        return rows
    added = {key_of(row): row for row in rows}
    for edge in at_edges:
        key = key_of(edge)
        row = added.get(key)
        added[key] = (
            edge
            if row is None
            else row._replace(
                successes=row.successes + edge.successes,
                failures=row.failures + edge.failures,
                aborted=row.aborted + edge.aborted,
                abandoned=row.abandoned + edge.abandoned,
            )
        )
    return list(added.values())


def failure_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[FailureCount]:
    return each_failure_counts(connection, project_id, [(scope, window)])[0]


def each_failure_counts(
    connection: Connection, project_id: int, selections: Sequence[Selection], edges: WindowEdges | None = None
) -> list[list[FailureCount]]:
    edges = edges or WindowEdges(connection, project_id)
    rows = bucket_rows(connection, project_id, selections, FAILURES, _FailureRow, project="r.project_id")
    return failures_with_edges(connection, project_id, selections, rows, edges)


def failures_with_edges(
    connection: Connection,
    project_id: int,
    selections: Sequence[Selection],
    rows_of_each: Sequence[Sequence[FailureColumns]],
    edges: WindowEdges,
) -> list[list[FailureCount]]:
    sums_of_each = edges.counted(selections)
    contents = {content for sums in sums_of_each for _, _, content, _ in sums.failures}
    numbers: Mapping[CellContent, CellRef] = known_numbers(connection, project_id, contents)
    of_contents = {content: numbers.get(content, content) for content in contents}
    in_rollups = {row.cell_id for rows in rows_of_each for row in rows}
    cells = cells_named(connection, project_id, in_rollups | set(of_contents.values()))
    sides = []
    for sums, rows in zip(sums_of_each, rows_of_each, strict=True):
        counts = [
            FailureCount(
                row.source_id,
                row.policy_id,
                row.task_id,
                cells[row.cell_id],
                Signature(row.phase, tuple(row.labels), row.category),
                row.failures,
            )
            for row in rows
            if row.failures
        ]
        # A failure at an edge is one more row, also where whole days have failed alike: readers add them up.
        counts += [
            FailureCount(
                scope.source_id, scope.policy_id, scope.task_id, cells[of_contents[content]], signature, count
            )
            for (scope, _, content, signature), count in sums.failures.items()
            if count
        ]
        sides.append(counts)
    return sides


def value_rollups(connection: Connection, project_id: int, scope: Scope, window: Window, kind: Kind) -> Values:
    """Return moments and sketches by name and outcome. Metrics include `reward` and `duration_s`."""
    return each_value_rollups(connection, project_id, [(scope, window)], kind)[0]


def each_value_rollups(
    connection: Connection,
    project_id: int,
    selections: Sequence[Selection],
    kind: Kind,
    edges: WindowEdges | None = None,
) -> list[Values]:
    edges = edges or WindowEdges(connection, project_id)
    query = f"SELECT outcome, bucket_at, body FROM rollup_values WHERE {{}} AND kind = '{kind}'"  # noqa: S608
    sides = []
    rows_of_each = bucket_rows(connection, project_id, selections, query, _ValueRow)
    for sums, rows in zip(edges.measured(selections), rows_of_each, strict=True):
        bodies: dict[str, list[bytes]] = {}
        for row in sorted(rows, key=attrgetter("bucket_at")):
            bodies.setdefault(row.outcome, []).append(row.body)
        by_outcome: dict[str, NamedValues] = {}
        for outcome, in_order in bodies.items():
            values = by_outcome[outcome] = {}
            add_values(values, _sum_of(tuple(in_order[:-1])))
            add_values(values, unpack_values(in_order[-1]))
        _add_measured(by_outcome, sums.values, kind)
        sides.append(_by_name(by_outcome))
    return sides


@lru_cache(maxsize=64)
def _sum_of(bodies: tuple[bytes, ...]) -> NamedValues:
    """Cache the sums of months and days that are over, which hardly ever change. Not to be written to."""
    values: NamedValues = {}
    for body in bodies:
        add_values(values, unpack_values(body))
    return values


def values_of(measured: Measured, kind: Kind) -> Values:
    by_outcome: dict[str, NamedValues] = {}
    _add_measured(by_outcome, measured, kind)
    return _by_name(by_outcome)


def _add_measured(by_outcome: dict[str, NamedValues], measured: Measured, kind: Kind) -> None:
    for (_, _, of_kind, outcome), values in measured.items():
        if of_kind == kind:
            add_values(by_outcome.setdefault(outcome, {}), values)


def _by_name(by_outcome: Mapping[str, NamedValues]) -> Values:
    values: Values = {}
    for outcome, named in sorted(by_outcome.items()):
        for name, value in sorted(named.items()):
            if not value.is_empty:
                rollup = ValueRollup(
                    Moments(value.n, value.total, value.total_sq), Sketch(value.bins, value.negative, value.zero)
                )
                values.setdefault(name, {})[cast(Outcome, outcome)] = rollup
    return values


def contract_counts(connection: Connection, project_id: int, scope: Scope, window: Window) -> list[ContractCount]:
    """Return the contracts with most episodes first."""
    return each_contract_counts(connection, project_id, [(scope, window)])[0]


def each_contract_counts(
    connection: Connection, project_id: int, selections: Sequence[Selection], edges: WindowEdges | None = None
) -> list[list[ContractCount]]:
    edges = edges or WindowEdges(connection, project_id)
    rows = bucket_rows(connection, project_id, selections, CONTRACTS, _ContractRow)
    return contracts_with_edges(connection, project_id, selections, rows, edges)


def contracts_with_edges(
    connection: Connection,
    project_id: int,
    selections: Sequence[Selection],
    rows_of_each: Sequence[Sequence[ContractColumns]],
    edges: WindowEdges,
) -> list[list[ContractCount]]:
    sides: list[dict[tuple[int, int], int]] = []
    for sums, rows in zip(edges.counted(selections), rows_of_each, strict=True):
        counts = {(row.source_id, row.contract_id): row.episodes for row in rows}
        for (scope, _, contract_id), count in sums.contracts.items():
            counts[scope.source_id, contract_id] = counts.get((scope.source_id, contract_id), 0) + count
        sides.append(counts)
    most_used = {
        contract_id
        for counts in sides
        for (_, contract_id), _ in sorted(counts.items(), key=lambda item: -item[1])[:MOST_BODIES]
    }
    bodies = contract_bodies(connection, project_id, most_used)
    return [
        sorted(
            (
                ContractCount(source_id, contract_id, bodies.get(contract_id), count)
                for (source_id, contract_id), count in counts.items()
                if count
            ),
            key=lambda contract: -contract.episodes,
        )
        for counts in sides
    ]


def bucket_rows(
    connection: Connection,
    project_id: int,
    selections: Sequence[Selection],
    query: str,
    row_class: type[RowT],
    project: str = "project_id",
) -> list[list[RowT]]:
    """Return the rows of each selection, all in one query."""
    statements, parameters = bucket_statements(project_id, selections, query, project)
    if not statements:
        return [[] for _ in selections]
    with named_cursor(connection, row_class) as cursor:
        rows = cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()
    return by_side(rows, len(selections))


def by_side(rows: Iterable[SideRowT], sides: int) -> list[list[SideRowT]]:
    of_each: list[list[SideRowT]] = [[] for _ in range(sides)]
    for row in rows:
        of_each[row.side].append(row)
    return of_each


def bucket_statements(
    project_id: int,
    selections: Sequence[Selection],
    query: str,
    project: str = "project_id",
    first_side: int = 0,
) -> tuple[list[str], dict[str, Any]]:
    """Return a statement a selection: the side, then the columns of the query."""
    statements: list[str] = []
    parameters: dict[str, Any] = {"project_id": project_id}
    for side, (scope, window) in enumerate(selections, start=first_side):
        parts = split(window)
        if parts.months is None and not parts.days:
            continue
        buckets, own = bucket_clauses(parts)
        clauses = numbered(f"{scope.clauses()} AND {buckets}", str(side))
        parameters |= {f"{name}_{side}": value for name, value in (scope.parameters() | own).items()}
        inner = query.format(f"{project} = %(project_id)s AND {clauses}")
        statements.append(f"SELECT {side} AS side, each.* FROM ({inner}) each")  # noqa: S608 - text of ours
    return statements, parameters
