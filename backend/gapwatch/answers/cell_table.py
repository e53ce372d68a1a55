"""Both sides' cells as columns of numbers, counted by any conditions without a step of Python for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import MISSING
from gapwatch.statistics.causes.decomposition import Counts
from gapwatch.store.read.sides import CellCount

Key = tuple[str, ...]


class _Groups(NamedTuple):
    """Rows that agree on some conditions: the first row of each group, and its counts."""

    first: NDArray[np.int64]
    counts: NDArray[np.float64]


class CellTable:
    """The judged episodes of both sides by level, to be counted by any conditions: a level is a small number.

    A row is a combination of levels; robots, sites and stages that share one are added up first.
    """

    def __init__(self, sim: Iterable[CellCount], real: Iterable[CellCount]) -> None:
        row_of: dict[int, int] = {}
        self._levels: list[Mapping[str, str]] = []
        columns = []
        for cells in (sim, real):
            rows, successes, episodes = [], [], []
            for count in cells:
                succeeded, attempts = count.successes, count.successes + count.failures
                if attempts:
                    levels = count.cell.levels
                    # Cells share their levels, so most are recognised by identity (`store.read.cell_names`).
                    row = row_of.setdefault(id(levels), len(self._levels))
                    if row == len(self._levels):
                        self._levels.append(levels)
                    rows.append(row)
                    successes.append(succeeded)
                    episodes.append(attempts)
            columns += [(rows, successes), (rows, episodes)]
        size = len(self._levels)
        self._counts = np.array(
            [np.bincount(np.array(rows, dtype=np.int64), counts, minlength=size) for rows, counts in columns]
        ).T.reshape(-1, 4)
        self._columns: dict[str, tuple[NDArray[np.int64], list[str]]] = {}
        self._groups: dict[Key, _Groups] = {}

    @cached_property
    def reported(self) -> tuple[set[str], set[str]]:
        """The conditions that sim names, and those that real does."""
        named: tuple[set[str], set[str]] = (set(), set())
        for names, rows in self._alike.items():
            episodes = self._counts[rows].sum(axis=0)
            for side, n in zip(named, (episodes[1], episodes[3]), strict=True):
                side.update(names if n else ())
        return named

    @cached_property
    def _alike(self) -> dict[Key, list[int]]:
        """Rows by the conditions they name; usually all rows name the same ones."""
        rows_by_names: dict[Key, list[int]] = {}
        for row, levels in enumerate(self._levels):
            rows_by_names.setdefault(tuple(levels), []).append(row)
        return rows_by_names

    def count(self, names: Sequence[str]) -> dict[Key, Counts]:
        """By the levels of these conditions, in the order in which they first occur."""
        groups = self._grouped(names)
        keys = (
            zip(*(self._words(name, groups.first) for name in names), strict=True)
            if names
            else [()] * len(groups.first)
        )
        counts = groups.counts.astype(int).tolist()
        counted = zip(groups.first.tolist(), keys, counts, strict=True)
        return {key: (c[0], c[1], c[2], c[3]) for _, key, c in sorted(counted, key=lambda item: item[0])}

    def hole(self, names: Sequence[str]) -> float:
        """The larger side's share of episodes in combinations that the other lacks though it has each level."""
        groups = self._grouped(names)
        inside = np.ones(len(groups.first), dtype=bool)
        for name in names:
            alone = self._grouped([name])
            column, levels = self._column(name)
            has_both = np.zeros(len(levels), dtype=bool)
            has_both[column[alone.first]] = (alone.counts[:, 1] > 0) & (alone.counts[:, 3] > 0)
            inside &= has_both[column[groups.first]]
        n_sim, n_real = groups.counts[inside, 1], groups.counts[inside, 3]
        parts = ((n_sim[n_real == 0].sum(), n_sim.sum()), (n_real[n_sim == 0].sum(), n_real.sum()))
        return max(float(lacking / total) if total else 0.0 for lacking, total in parts)

    def _grouped(self, names: Sequence[str]) -> _Groups:
        key = tuple(names)
        if key not in self._groups:
            code = np.zeros(len(self._levels), dtype=np.int64)
            for name in names:
                column, levels = self._column(name)
                code = code * len(levels) + column
            _, first, group = np.unique(code, return_index=True, return_inverse=True)
            sums = [np.bincount(group, weights=counts, minlength=len(first)) for counts in self._counts.T]
            self._groups[key] = _Groups(first, np.stack(sums, 1))
        return self._groups[key]

    def _words(self, name: str, rows: NDArray[np.int64]) -> list[str]:
        column, levels = self._column(name)
        return [levels[number] for number in column[rows].tolist()]

    @cached_property
    def _written(self) -> dict[str, Sequence[str]]:
        """All columns at once, where all rows name the same conditions in the same order."""
        if len(self._alike) != 1:
            return {}
        columns = zip(*(levels.values() for levels in self._levels), strict=True)
        return dict(zip(next(iter(self._alike)), columns, strict=True))

    def _column(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        if name not in self._columns:
            column = self._written.get(name) or [levels.get(name, MISSING) for levels in self._levels]
            numbers = {level: number for number, level in enumerate(dict.fromkeys(column))}
            self._columns[name] = np.fromiter(map(numbers.__getitem__, column), np.int64), list(numbers)
        return self._columns[name]
