"""Episodes into sums, by columns: what is counted here, what is measured in `measure.py`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress
from typing import Any

from gapwatch.levels import level_of
from gapwatch.tally.measure import measure
from gapwatch.tally.rows import Columns, Names, Row, numbered, unpack
from gapwatch.tally.sums import (
    JUDGED,
    OUTCOME_INDEX,
    CellContent,
    Key,
    Levels,
    Measured,
    Signature,
    Sums,
    add_named,
)

_NOTHING: frozenset[str] = frozenset()


class Episodes:
    """A row with sign −1 is taken away."""

    def __init__(self, rows: Sequence[Row], names: Names) -> None:
        self._names = names
        added = [row for row in rows if row.sign > 0]
        removed = [row for row in rows if row.sign < 0]
        self._added = Columns(added) if added else None
        self._removed = Columns(removed) if removed else None

    def counted(self) -> Sums:
        """All sums but the values."""
        sums = _count(self._added, self._names) if self._added else Sums()
        if self._removed:
            sums.add(_count(self._removed, self._names), -1)
        return sums

    def measured(self) -> Measured:
        values = measure(self._added, self._names) if self._added else {}
        if self._removed:
            add_named(values, measure(self._removed, self._names), -1)
        return values

    def sums(self) -> Sums:
        sums = self.counted()
        sums.values = self.measured()
        return sums


def _count(columns: Columns, names: Names) -> Sums:
    sums = Sums()
    of, scope_index, scopes = columns.of, columns.scope_index, columns.scopes
    for (index, hour, outcome), count in Counter(zip(scope_index, of.hour, of.outcome, strict=True)).items():
        scope, _ = scopes[index]
        sums.hours.setdefault((scope, hour), [0, 0, 0, 0])[OUTCOME_INDEX[outcome]] += count
    for (index, contract), count in Counter(zip(scope_index, of.contract_id, strict=True)).items():
        sums.contracts[(*scopes[index], contract or 0)] = count
    for (index, session, outcome), count in Counter(zip(scope_index, of.session, of.outcome, strict=True)).items():
        if session is not None and outcome in JUDGED:
            sums.sessions.setdefault((*scopes[index], session), [0, 0])[OUTCOME_INDEX[outcome]] += count
    kept = KeptLevels(of, names)
    distinct, cells = numbered(zip(scope_index, of.robot_id, of.site_id, of.stage, kept.numbers, strict=True))
    keys = [
        (*scopes[index], CellContent(robot_id, site_id, stage, kept.levels[number]))
        for index, robot_id, site_id, stage, number in distinct
    ]
    for (cell, outcome), count in Counter(zip(cells, of.outcome, strict=True)).items():
        sums.cells.setdefault(keys[cell], [0, 0, 0, 0])[OUTCOME_INDEX[outcome]] += count
    failed = [outcome == "failure" for outcome in of.outcome]
    stated = zip(
        compress(cells, failed),
        compress(of.phase, failed),
        (tuple(labels) if labels else () for labels in compress(of.labels, failed)),
        compress(of.category, failed),
        strict=True,
    )
    for (cell, phase, labels, category), count in Counter(stated).items():
        key = (*keys[cell], Signature(phase, tuple(sorted(set(labels))), category))
        sums.failures[key] = sums.failures.get(key, 0) + count
    return sums


class KeptLevels:
    """The conditions of each row as the number of its levels, without those that are left out of cells.

    Rows are numbered by distinct contents, found a column at a time: many rows share theirs.
    """

    def __init__(self, columns: Any, names: Names) -> None:
        self._names = names
        self._index_of: dict[Levels, int] = {}
        self.levels: list[Levels] = []
        policies_and_tasks = list(zip(columns.policy_id, columns.task_id, strict=True))
        named = self._number(zip(policies_and_tasks, columns.condition_set_id, strict=True), self._of_sets)
        measured = self._number(
            zip(policies_and_tasks, columns.number_names_id, columns.numbers, strict=True), self._of_numbers
        )
        self.numbers = self._number(zip(named, measured, strict=True), self._joined)

    def _number(
        self, keys: Iterable[Key], levels_of: Callable[[Collection[Key]], Iterable[tuple[Key, Levels]]]
    ) -> list[int]:
        """For each key the number of the levels that it stands for."""
        column = list(keys)
        numbers = {
            key: self._index_of.setdefault(levels, len(self._index_of)) for key, levels in levels_of(set(column))
        }
        self.levels = list(self._index_of)
        return [*map(numbers.__getitem__, column)]

    def _left_out(self, policy_and_task: tuple[int, int]) -> frozenset[str]:
        return self._names.pooled.get(policy_and_task, _NOTHING)

    def _of_sets(self, keys: Collection[Any]) -> Iterable[tuple[Any, Levels]]:
        known: dict[int | None, Levels] = {None: ()}
        for number in {number for _, number in keys} - {None}:
            conditions = self._names.condition_sets[number].items()
            known[number] = tuple((name, level_of(value)) for name, value in conditions)
        for key in keys:
            policy_and_task, number = key
            left_out = self._left_out(policy_and_task)
            levels = known[number]
            yield key, tuple(pair for pair in levels if pair[0] not in left_out) if left_out else levels

    def _of_numbers(self, keys: Collection[Any]) -> Iterable[tuple[Any, Levels]]:
        same_names: dict[tuple[tuple[int, int], int], list[Any]] = {}
        for key in keys:
            policy_and_task, number, numbers = key
            names = () if number is None or numbers is None else self._names.name_sets[number]
            if self._left_out(policy_and_task).issuperset(names):
                yield key, ()
            else:
                same_names.setdefault((policy_and_task, number), []).append(key)
        for (policy_and_task, number), of_names in same_names.items():
            left_out, names = self._left_out(policy_and_task), self._names.name_sets[number]
            columns = unpack([numbers for _, _, numbers in of_names], len(names)).T
            kept = [
                [(name, level_of(value)) for value in column.tolist()]
                for name, column in zip(names, columns, strict=True)
                if name not in left_out
            ]
            yield from zip(of_names, zip(*kept, strict=True), strict=True)

    def _joined(self, keys: Collection[Any]) -> Iterable[tuple[Any, Levels]]:
        levels = self.levels
        for named, measured in keys:
            yield (named, measured), tuple(sorted(levels[named] + levels[measured]))
