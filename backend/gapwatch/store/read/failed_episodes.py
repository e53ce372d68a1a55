"""Single episodes of a side with their evidence, by columns: a page reads some 2,000 of them and names a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import MISSING, level_of
from gapwatch.tally.rows import unpack
from gapwatch.tally.sums import Signature

Array = NDArray[np.float64]


class SampledRow(NamedTuple):
    """An episode as the query returns it; `stretch` is the index of the time span it was sampled from."""

    side: int
    stretch: int
    id: str
    session: str | None
    phase: str | None
    labels: list[str] | None
    category: str | None
    condition_set_id: int | None
    number_names_id: int | None
    numbers: bytes | None
    signal_names_id: int | None
    signals: bytes | None
    contract_id: int | None = None


class SampledRows:
    """Newest first. Row i has `ids[i]` and so on, and stands for `stands_for[i]` episodes of its kind.

    `signatures` holds each distinct signature once; `signature_index[i]` is the index of row i's own.
    """

    def __init__(
        self,
        rows: Sequence[SampledRow],
        stands_for: Sequence[float],
        words: Mapping[int, Mapping[str, Any]],
        names: Mapping[int, Sequence[str]],
    ) -> None:
        self._rows, self._words, self._names = rows, words, names
        self.ids: Sequence[str] = [row.id for row in rows]
        self.sessions: Sequence[str | None] = [row.session for row in rows]
        # 0 of those that sent none.
        self.contracts: Sequence[int] = [row.contract_id or 0 for row in rows]
        self.stands_for = np.array(stands_for, dtype=float)
        as_sent = [Signature(row.phase, tuple(row.labels or ()), row.category) for row in rows]
        in_order = {sent: sent._replace(labels=tuple(sorted(set(sent.labels)))) for sent in dict.fromkeys(as_sent)}
        self.signatures = list(dict.fromkeys(in_order.values()))
        index_of = {signature: index for index, signature in enumerate(self.signatures)}
        sent_index = {sent: index_of[signature] for sent, signature in in_order.items()}
        self.signature_index = np.array([sent_index[sent] for sent in as_sent], dtype=np.int64)
        self._levels: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def signals(self) -> dict[str, Array]:
        """One number a row, NaN where the episode has none."""
        return self._columns([(row.signal_names_id, row.signals) for row in self._rows])

    def signals_of(self, row: int) -> dict[str, float]:
        return {name: float(column[row]) for name, column in self.signals.items() if not np.isnan(column[row])}

    def levels(self, condition: str) -> list[str]:
        """The level of each row."""
        if len(self) and condition not in self._levels:
            self._levels[condition] = self._find_levels(condition)
        return self._levels.get(condition, [])

    def _find_levels(self, condition: str) -> list[str]:
        of_set: dict[int | None, str] = {None: MISSING}
        for number in self._own_sets:
            value = self._words[number].get(condition)
            of_set[number] = MISSING if value is None else level_of(value)
        levels = [of_set[row.condition_set_id] for row in self._rows]
        numbers = self._numbers.get(condition)
        if numbers is None:
            return levels
        rows = np.flatnonzero(~np.isnan(numbers))
        # A number has few levels, and often few values.
        values, value_index = np.unique(numbers[rows], return_inverse=True)
        level_of_value = [level_of(value) for value in values.tolist()]
        for row, index in zip(rows.tolist(), value_index.tolist(), strict=True):
            levels[row] = level_of_value[index]
        return levels

    @cached_property
    def _own_sets(self) -> set[int]:
        return {row.condition_set_id for row in self._rows if row.condition_set_id is not None}

    @cached_property
    def _numbers(self) -> dict[str, Array]:
        return self._columns([(row.number_names_id, row.numbers) for row in self._rows])

    def _columns(self, packed: Sequence[tuple[int | None, bytes | None]]) -> dict[str, Array]:
        """Unpack arrays by their list of names, each list as one matrix: no step of Python for a number."""
        by_names: dict[int, tuple[list[int], list[bytes]]] = {}
        for row, (names_id, blob) in enumerate(packed):
            if names_id is not None and blob is not None:
                rows, blobs = by_names.setdefault(names_id, ([], []))
                rows.append(row)
                blobs.append(blob)
        columns: dict[str, Array] = {}
        for names_id, (rows, blobs) in by_names.items():
            names = self._names[names_id]
            for name, column in zip(names, unpack(blobs, len(names)).T, strict=True):
                columns.setdefault(name, np.full(len(self), np.nan))[rows] = column
        return columns
