"""Failed episodes of a side with their evidence, by columns: a page reads some 1,500 of them and names a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import MISSING, level_of
from gapwatch.store.read.rollup_counts import Signature
from gapwatch.tally.rows import unpack

Array = NDArray[np.float64]


class Read(NamedTuple):
    """The columns of the query; `place` is the stretch of time a row was read from."""

    place: Sequence[int]
    id: Sequence[str]
    started_at: Sequence[datetime]
    session: Sequence[str | None]
    phase: Sequence[str | None]
    labels: Sequence[Sequence[str] | None]
    category: Sequence[str | None]
    condition_set_id: Sequence[int | None]
    number_names_id: Sequence[int | None]
    numbers: Sequence[bytes | None]
    signal_names_id: Sequence[int | None]
    signals: Sequence[bytes | None]


class FailedRows:
    """Newest first. Row i has `ids[i]` and so on, and stands for `stands_for[i]` failures of the side.

    `signatures` are the different things that were said; `said[i]` is the place of the row's own among them.
    """

    def __init__(
        self,
        rows: Sequence[tuple[Any, ...]],
        stands_for: Sequence[float],
        words: Mapping[int, Mapping[str, Any]],
        names: Mapping[int, Sequence[str]],
    ) -> None:
        self._read = Read._make(zip(*rows, strict=True)) if rows else Read(*([()] * len(Read._fields)))
        self._words, self._names = words, names
        self.ids: Sequence[str] = self._read.id
        self.started_at: Sequence[datetime] = self._read.started_at
        self.sessions: Sequence[str | None] = self._read.session
        self.stands_for = np.array(stands_for, dtype=float)
        labels = (tuple(said or ()) for said in self._read.labels)
        written = list(zip(self._read.phase, labels, self._read.category, strict=True))
        meant = {key: Signature(key[0], tuple(sorted(set(key[1]))), key[2]) for key in dict.fromkeys(written)}
        self.signatures = list(dict.fromkeys(meant.values()))
        places = {signature: place for place, signature in enumerate(self.signatures)}
        place_of = {key: places[signature] for key, signature in meant.items()}
        self.said = np.array([place_of[key] for key in written], dtype=np.int64)
        self._levels: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def signals(self) -> dict[str, Array]:
        """One number a row, NaN where the episode has none."""
        return self._columns(self._read.signal_names_id, self._read.signals)

    def signals_of(self, row: int) -> dict[str, float]:
        return {name: float(column[row]) for name, column in self.signals.items() if not np.isnan(column[row])}

    def levels(self, condition: str) -> list[str]:
        """The level of each row."""
        if len(self) and condition not in self._levels:
            self._levels[condition] = self._find_levels(condition)
        return self._levels.get(condition, [])

    def _find_levels(self, condition: str) -> list[str]:
        of_set = {None: MISSING} | {
            number: MISSING if (value := words.get(condition)) is None else level_of(value)
            for number, words in self._words.items()
        }
        found = [of_set[number] for number in self._read.condition_set_id]
        numbers = self._numbers.get(condition, np.zeros(0))
        rows = np.flatnonzero(~np.isnan(numbers))
        # A number has few levels, and often few values.
        values, place = np.unique(numbers[rows], return_inverse=True)
        levels = [level_of(value) for value in values.tolist()]
        for row, number in zip(rows.tolist(), place.tolist(), strict=True):
            found[row] = levels[number]
        return found

    @cached_property
    def _numbers(self) -> dict[str, Array]:
        return self._columns(self._read.number_names_id, self._read.numbers)

    def _columns(self, lists: Sequence[int | None], packed: Sequence[bytes | None]) -> dict[str, Array]:
        """Arrays of one list of names as a matrix, so that a number costs no step of Python of its own."""
        alike: dict[int, tuple[list[int], list[bytes]]] = {}
        for row, (number, blob) in enumerate(zip(lists, packed, strict=True)):
            if number is not None and blob is not None:
                rows, blobs = alike.setdefault(number, ([], []))
                rows.append(row)
                blobs.append(blob)
        found: dict[str, Array] = {}
        for number, (rows, blobs) in alike.items():
            names = self._names[number]
            for name, column in zip(names, unpack(blobs, len(names)).T, strict=True):
                found.setdefault(name, np.full(len(self), np.nan))[rows] = column
        return found
