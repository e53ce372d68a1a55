"""Both sides' cells as columns of numbers, counted by any conditions without a step of Python for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import MISSING
from gapwatch.statistics.decomposition import Counts
from gapwatch.store.sides import CellCount

Key = tuple[str, ...]


class CellTable:
    """The judged episodes of both sides by cell, to be counted by any conditions: a level is a small number."""

    def __init__(self, sim: Iterable[CellCount], real: Iterable[CellCount]) -> None:
        sides = [[cell for cell in cells if cell.successes + cell.failures] for cells in (sim, real)]
        self._levels = [cell.cell.levels for cells in sides for cell in cells]
        self._counts = np.zeros((len(self._levels), 4))
        for side, cells in enumerate(sides):
            rows = slice(0, len(cells)) if side == 0 else slice(len(sides[0]), None)
            counts = [(cell.successes, cell.successes + cell.failures) for cell in cells]
            self._counts[rows, 2 * side : 2 * side + 2] = np.array(counts, dtype=float).reshape(-1, 2)
        self._columns: dict[str, tuple[NDArray[np.int64], list[str]]] = {}

    def count(self, names: Sequence[str]) -> dict[Key, Counts]:
        """By the levels of these conditions, in the order in which they first occur."""
        code = np.zeros(len(self._levels), dtype=np.int64)
        for name in names:
            column, levels = self._column(name)
            code = code * len(levels) + column
        _, first, place = np.unique(code, return_index=True, return_inverse=True)
        sums = np.stack([np.bincount(place, weights=counts, minlength=len(first)) for counts in self._counts.T], 1)
        keys = [self._column(name) for name in names]
        return {
            tuple(levels[column[row]] for column, levels in keys): (int(c[0]), int(c[1]), int(c[2]), int(c[3]))
            for row, c in sorted(zip(first.tolist(), sums.tolist(), strict=True))
        }

    def _column(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        if name not in self._columns:
            column = [levels.get(name, MISSING) for levels in self._levels]
            numbers = {level: number for number, level in enumerate(dict.fromkeys(column))}
            self._columns[name] = np.fromiter(map(numbers.__getitem__, column), np.int64), list(numbers)
        return self._columns[name]
