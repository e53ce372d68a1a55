"""The ends of a window by cell: counted by Postgres, each cell by the number that it has in the rollups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from psycopg import sql
from sqlalchemy import Connection, Engine

from gapwatch.store.core.driver import driver_cursor
from gapwatch.store.fold.episode_rows import (
    condition_sets,
    name_sets,
    pooled_names,
)
from gapwatch.store.read.cell_names import known_number
from gapwatch.store.read.selection import split
from gapwatch.store.read.window_edges import (
    Asked,
    end_clauses,
    numbered,
)
from gapwatch.tally.aggregate import KeptLevels
from gapwatch.tally.rows import Names
from gapwatch.tally.sums import CellContent

# Source, policy, task, and a cell: by its number, or by its content as long as no rollup has it.
CellKey = tuple[int, int, int, CellContent | int]

# Grouped by what differs most first: Postgres sorts by it.
_CELLS = """
SELECT {side}, e.policy_id, e.task_id, e.{source}, e.robot_id, e.site_id, e.stage, e.condition_set_id,
       e.number_names_id, array_send(e.numbers), count(*) FILTER (WHERE e.outcome = 'success'),
       count(*) FILTER (WHERE e.outcome = 'failure'), count(*) FILTER (WHERE e.outcome = 'aborted'),
       count(*) FILTER (WHERE e.outcome = 'abandoned')
FROM episodes e WHERE e.project_id = %(project_id)s AND {clauses} GROUP BY 8, 5, 10, 9, 6, 7, 2, 3, 4
"""
# The cell of what an episode says, without what is left out of cells. A process remembers so many.
_NUMBERS: WeakKeyDictionary[Engine, dict[tuple[Any, ...], int]] = WeakKeyDictionary()
_MOST_REMEMBERED = 20_000


class _Row(NamedTuple):
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


def each_edge_cells(
    connection: Connection, project_id: int, asked: Sequence[Asked]
) -> list[dict[CellKey, list[int]]]:
    """The outcomes at the ends of each window."""
    sides: list[dict[CellKey, list[int]]] = [{} for _ in asked]
    rows = _read(connection, project_id, asked)
    for row, cell in zip(rows, _cells_of(connection, project_id, rows), strict=True):
        total = sides[row[0]].setdefault((row[3], row[1], row[2], cell), [0, 0, 0, 0])
        for outcome, count in enumerate(row[10:]):
            total[outcome] += count
    return sides


def _read(connection: Connection, project_id: int, asked: Sequence[Asked]) -> list[tuple[Any, ...]]:
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for side, (scope, window) in enumerate(asked):
        parts = split(window)
        if not parts.edges:
            continue
        ends, times = end_clauses(parts)
        source = "deployment_id" if scope.domain == "real" else "simulator_id"
        statement = _CELLS.format(side=side, source=source, clauses=f"{scope.clauses('e')} AND {ends}")
        statements.append(numbered(statement, str(side)))
        own = {"project_id": project_id, **scope.parameters(), **times}
        parameters |= {f"{name}_{side}": value for name, value in own.items()}
    if not statements:
        return []
    with driver_cursor(connection) as cursor:
        return cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()


def _cells_of(connection: Connection, project_id: int, rows: list[tuple[Any, ...]]) -> list[CellContent | int]:
    if not rows:
        return []
    left_out = pooled_names(connection, project_id)
    keys = [(project_id, left_out.get(row[1:3]), *row[4:10]) for row in rows]
    numbers = _NUMBERS.setdefault(connection.engine, {})
    found: list[CellContent | int | None] = [numbers.get(key) for key in keys]
    new = [place for place, cell in enumerate(found) if cell is None]
    if new:
        if len(numbers) > _MOST_REMEMBERED:
            numbers.clear()
        contents = _contents_of(connection, project_id, [rows[place] for place in new], left_out)
        for place, content in zip(new, contents, strict=True):
            found[place] = cell = known_number(connection, project_id, content)
            if isinstance(cell, int):
                numbers[keys[place]] = cell
    return [cell for cell in found if cell is not None]


def _contents_of(
    connection: Connection,
    project_id: int,
    rows: list[tuple[Any, ...]],
    left_out: Mapping[tuple[int, int], frozenset[str]],
) -> list[CellContent]:
    of: Any = _Row._make(zip(*rows, strict=True))
    names = Names(
        condition_sets(connection, project_id, set(of.condition_set_id)),
        name_sets(connection, project_id, set(of.number_names_id)),
        left_out,
    )
    kept = KeptLevels(of, names)
    return [
        (robot, site, stage, kept.levels[number])
        for robot, site, stage, number in zip(of.robot_id, of.site_id, of.stage, kept.numbers, strict=True)
    ]
