"""What cells and contracts are, by their numbers. They never change, so a process remembers them; bounded."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, text

from gapwatch.store.read.selection import Cell
from gapwatch.store.tables.rollups import NO_CONTRACT
from gapwatch.tally.sums import CellContent

_MOST_NAMED = 50_000


@dataclass
class _Known:
    """What one database has told. Another thread may begin anew at any moment."""

    named: dict[tuple[int, int], Cell] = field(default_factory=dict)
    numbers: dict[tuple[int, CellContent], int] = field(default_factory=dict)
    # Cells of many robots have the same levels: one mapping for all of them, which is then told by its identity.
    levels: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = field(default_factory=dict)

    def levels_of(self, items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
        if len(self.levels) > _MOST_NAMED:
            self.levels.clear()
        return self.levels.setdefault(items, dict(items))


_KNOWN: WeakKeyDictionary[Engine, _Known] = WeakKeyDictionary()


def known_number(connection: Connection, project_id: int, content: CellContent) -> CellContent | int:
    """The number of a cell that has been named before, else the content itself."""
    return _KNOWN.setdefault(connection.engine, _Known()).numbers.get((project_id, content), content)


def cells_named(
    connection: Connection, project_id: int, cells: Set[CellContent | int]
) -> dict[CellContent | int, Cell]:
    """The cells of a rollup by number, and those of single episodes by content."""
    known = _KNOWN.setdefault(connection.engine, _Known())
    named: dict[CellContent | int, Cell] = {
        cell: name
        for cell in cells
        if isinstance(cell, int) and (name := known.named.get((project_id, cell))) is not None
    }
    unknown = [cell for cell in cells if isinstance(cell, int) and cell not in named]
    if unknown:
        if len(known.named) > _MOST_NAMED:
            known = _KNOWN[connection.engine] = _Known()
        found = connection.execute(
            text(
                "SELECT c.id, c.robot_id, c.site_id, r.name AS robot, s.name AS site, c.stage, c.levels"
                " FROM cells c LEFT JOIN robots r ON r.project_id = c.project_id AND r.id = c.robot_id"
                " LEFT JOIN sites s ON s.project_id = c.project_id AND s.id = c.site_id"
                " WHERE c.project_id = :p AND c.id = ANY(:ids)"
            ),
            {"p": project_id, "ids": unknown},
        )
        for row in found:
            content = (row.robot_id, row.site_id, row.stage, tuple(sorted(row.levels.items())))
            cell = Cell(row.robot, row.site, row.stage, known.levels_of(content[3]))
            named[row.id] = known.named[project_id, row.id] = cell
            known.numbers[project_id, content] = row.id
    contents = [cell for cell in cells if not isinstance(cell, int)]
    robots = _names(connection, project_id, "robots", {cell[0] for cell in contents})
    sites = _names(connection, project_id, "sites", {cell[1] for cell in contents})
    named |= {
        cell: Cell(robots.get(cell[0]), sites.get(cell[1]), cell[2], known.levels_of(cell[3])) for cell in contents
    }
    return named


def _names(
    connection: Connection, project_id: int, table: Literal["robots", "sites"], ids: set[int | None]
) -> dict[int | None, str]:
    wanted = sorted(ids - {None})  # type: ignore[type-var]
    if not wanted:
        return {}
    statement = f"SELECT id, name FROM {table} WHERE project_id = :p AND id = ANY(:ids)"  # noqa: S608 - one of two
    return {row.id: row.name for row in connection.execute(text(statement), {"p": project_id, "ids": wanted})}


_BODIES: dict[tuple[int, int], Mapping[str, Any]] = {}
_MOST_BODIES = 2000


def contract_bodies(connection: Connection, project_id: int, ids: set[int]) -> dict[int, Mapping[str, Any]]:
    known = {i: _BODIES[project_id, i] for i in ids if (project_id, i) in _BODIES}
    unknown = sorted(ids - known.keys() - {NO_CONTRACT})
    if unknown:
        if len(_BODIES) > _MOST_BODIES:
            _BODIES.clear()
        found = connection.execute(
            text("SELECT id, body FROM contracts WHERE project_id = :p AND id = ANY(:ids)"),
            {"p": project_id, "ids": unknown},
        )
        for row in found:
            known[row.id] = _BODIES[project_id, row.id] = row.body
    return known
