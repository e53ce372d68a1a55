"""What cells and contracts are, by their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Literal

from sqlalchemy import Connection, text

from gapwatch.store.core.content_cache import ContentCache
from gapwatch.store.read.selection import Cell
from gapwatch.store.tables.rollups import NO_CONTRACT
from gapwatch.tally.sums import CellContent, Levels

# A cell by its number, or by its content as long as no rollup has it.
CellRef = CellContent | int

_CELLS: ContentCache[int, Cell] = ContentCache(50_000)
_NUMBERS: ContentCache[CellContent, int] = ContentCache(50_000)
# Cells of many robots have the same levels. They share one mapping, which is then recognised by its identity.
_LEVELS: ContentCache[Levels, Mapping[str, str]] = ContentCache(50_000)
_CONTRACTS: ContentCache[int, Mapping[str, Any]] = ContentCache(2000)


def known_numbers(
    connection: Connection, project_id: int, contents: Iterable[CellContent]
) -> dict[CellContent, int]:
    """Return the numbers of those cells that have been named before."""
    return _NUMBERS.get(connection, project_id, contents)


def cells_named(connection: Connection, project_id: int, cells: Set[CellRef]) -> dict[CellRef, Cell]:
    """Return the cells of a rollup by number, and those of single episodes by content."""
    numbers = [cell for cell in cells if isinstance(cell, int)]
    known = _CELLS.get(connection, project_id, numbers)
    unknown = [number for number in numbers if number not in known]
    if unknown:
        known |= _read_cells(connection, project_id, unknown)
    named: dict[CellRef, Cell] = dict(known.items())
    contents = [cell for cell in cells if not isinstance(cell, int)]
    if contents:
        robots = _names(connection, project_id, "robots", {cell.robot_id for cell in contents})
        sites = _names(connection, project_id, "sites", {cell.site_id for cell in contents})
        levels = _shared_levels(connection, project_id, (cell.levels for cell in contents))
        for cell in contents:
            named[cell] = Cell(robots.get(cell.robot_id), sites.get(cell.site_id), cell.stage, levels[cell.levels])
    return named


def _read_cells(connection: Connection, project_id: int, numbers: list[int]) -> dict[int, Cell]:
    rows = connection.execute(
        text(
            "SELECT c.id, c.robot_id, c.site_id, r.name AS robot, s.name AS site, c.stage, c.levels"
            " FROM cells c LEFT JOIN robots r ON r.project_id = c.project_id AND r.id = c.robot_id"
            " LEFT JOIN sites s ON s.project_id = c.project_id AND s.id = c.site_id"
            " WHERE c.project_id = :p AND c.id = ANY(:ids)"
        ),
        {"p": project_id, "ids": numbers},
    ).all()
    contents = {
        row.id: CellContent(row.robot_id, row.site_id, row.stage, tuple(sorted(row.levels.items())))
        for row in rows
    }
    levels = _shared_levels(connection, project_id, (content.levels for content in contents.values()))
    cells = {row.id: Cell(row.robot, row.site, row.stage, levels[contents[row.id].levels]) for row in rows}
    _CELLS.put(connection, project_id, cells)
    _NUMBERS.put(connection, project_id, {content: number for number, content in contents.items()})
    return cells


def _shared_levels(
    connection: Connection, project_id: int, levels: Iterable[Levels]
) -> dict[Levels, Mapping[str, str]]:
    wanted = set(levels)
    shared = _LEVELS.get(connection, project_id, wanted)
    new: dict[Levels, Mapping[str, str]] = {items: dict(items) for items in wanted - shared.keys()}
    _LEVELS.put(connection, project_id, new)
    return shared | new


def _names(
    connection: Connection, project_id: int, table: Literal["robots", "sites"], ids: set[int | None]
) -> dict[int | None, str]:
    wanted = sorted(number for number in ids if number is not None)
    if not wanted:
        return {}
    statement = f"SELECT id, name FROM {table} WHERE project_id = :p AND id = ANY(:ids)"  # noqa: S608 - one of two
    return {row.id: row.name for row in connection.execute(text(statement), {"p": project_id, "ids": wanted})}


def contract_bodies(connection: Connection, project_id: int, ids: set[int]) -> dict[int, Mapping[str, Any]]:
    known = _CONTRACTS.get(connection, project_id, ids)
    unknown = sorted(ids - known.keys() - {NO_CONTRACT})
    if unknown:
        rows = connection.execute(
            text("SELECT id, body FROM contracts WHERE project_id = :p AND id = ANY(:ids)"),
            {"p": project_id, "ids": unknown},
        )
        read: dict[int, Mapping[str, Any]] = {row.id: row.body for row in rows}
        _CONTRACTS.put(connection, project_id, read)
        known |= read
    return known
