"""Outcomes by cell at the edges of a window: counted by Postgres, each cell by its number in the rollups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.content_cache import ContentCache
from gapwatch.store.core.driver import named_cursor
from gapwatch.store.fold.episode_rows import (
    condition_sets,
    name_sets,
    pooled_names,
)
from gapwatch.store.read.cell_names import CellRef, known_numbers
from gapwatch.store.read.selection import Selection, split
from gapwatch.store.read.window_edges import edge_clauses, numbered
from gapwatch.tally.aggregate import KeptLevels
from gapwatch.tally.rows import Names
from gapwatch.tally.sums import CellContent


class EdgeCellKey(NamedTuple):
    source_id: int
    policy_id: int
    task_id: int
    cell: CellRef


class _EdgeRow(NamedTuple):
    side: int
    policy_id: int
    task_id: int
    source_id: int
    robot_id: int | None
    site_id: int | None
    stage: str | None
    condition_set_id: int | None
    number_names_id: int | None
    numbers: bytes | None
    successes: int
    failures: int
    aborted: int
    abandoned: int


# Grouped by what differs most first: Postgres sorts by it.
_CELLS = """
SELECT {side} AS side, e.policy_id, e.task_id, e.{source} AS source_id, e.robot_id, e.site_id, e.stage,
       e.condition_set_id, e.number_names_id, array_send(e.numbers) AS numbers,
       count(*) FILTER (WHERE e.outcome = 'success') AS successes,
       count(*) FILTER (WHERE e.outcome = 'failure') AS failures,
       count(*) FILTER (WHERE e.outcome = 'aborted') AS aborted,
       count(*) FILTER (WHERE e.outcome = 'abandoned') AS abandoned
FROM episodes e WHERE e.project_id = %(project_id)s AND {clauses} GROUP BY 8, 5, 10, 9, 6, 7, 2, 3, 4
"""
# What determines an episode's cell: the conditions pooled for its policy and task, then its own content.
_ContentKey: TypeAlias = tuple[
    frozenset[str] | None, int | None, int | None, str | None, int | None, int | None, bytes | None
]
_CELL_NUMBERS: ContentCache[_ContentKey, int] = ContentCache(20_000)


def each_edge_cell_counts(
    connection: Connection, project_id: int, selections: Sequence[Selection]
) -> list[dict[EdgeCellKey, list[int]]]:
    """Return successes, failures, aborted and abandoned by cell at the edges of each window."""
    sides: list[dict[EdgeCellKey, list[int]]] = [{} for _ in selections]
    rows = _read(connection, project_id, selections)
    for row, cell in zip(rows, _cells_of(connection, project_id, rows), strict=True):
        counts = sides[row.side].setdefault(
            EdgeCellKey(row.source_id, row.policy_id, row.task_id, cell), [0, 0, 0, 0]
        )
        counts[0] += row.successes
        counts[1] += row.failures
        counts[2] += row.aborted
        counts[3] += row.abandoned
    return sides


def _read(connection: Connection, project_id: int, selections: Sequence[Selection]) -> list[_EdgeRow]:
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for side, (scope, window) in enumerate(selections):
        parts = split(window)
        if not parts.edges:
            continue
        edges, times = edge_clauses(parts)
        source = "deployment_id" if scope.domain == "real" else "simulator_id"
        statement = _CELLS.format(side=side, source=source, clauses=f"{scope.clauses('e')} AND {edges}")
        statements.append(numbered(statement, str(side)))
        own = {"project_id": project_id, **scope.parameters(), **times}
        parameters |= {f"{name}_{side}": value for name, value in own.items()}
    if not statements:
        return []
    with named_cursor(connection, _EdgeRow) as cursor:
        return cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()


def _cells_of(connection: Connection, project_id: int, rows: list[_EdgeRow]) -> list[CellRef]:
    if not rows:
        return []
    pooled = pooled_names(connection, project_id)
    keys: list[_ContentKey] = [
        (
            pooled.get((row.policy_id, row.task_id)),
            row.robot_id,
            row.site_id,
            row.stage,
            row.condition_set_id,
            row.number_names_id,
            row.numbers,
        )
        for row in rows
    ]
    cells: dict[_ContentKey, CellRef] = {**_CELL_NUMBERS.get(connection, project_id, keys)}
    new = [index for index, key in enumerate(keys) if key not in cells]
    if new:
        contents = _contents_of(connection, project_id, [rows[index] for index in new], pooled)
        numbers = known_numbers(connection, project_id, contents)
        for index, content in zip(new, contents, strict=True):
            cells[keys[index]] = numbers.get(content, content)
        _CELL_NUMBERS.put(
            connection,
            project_id,
            {keys[i]: numbers[c] for i, c in zip(new, contents, strict=True) if c in numbers},
        )
    return [cells[key] for key in keys]


def _contents_of(
    connection: Connection,
    project_id: int,
    rows: list[_EdgeRow],
    pooled: Mapping[tuple[int, int], frozenset[str]],
) -> list[CellContent]:
    columns: Any = _EdgeRow._make(zip(*rows, strict=True))
    names = Names(
        condition_sets(connection, project_id, set(columns.condition_set_id)),
        name_sets(connection, project_id, set(columns.number_names_id)),
        pooled,
    )
    kept = KeptLevels(columns, names)
    return [
        CellContent(row.robot_id, row.site_id, row.stage, kept.levels[number])
        for row, number in zip(rows, kept.numbers, strict=True)
    ]
