"""Episodes into sums, by columns: what is counted here, what is measured in `measure.py`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress
from typing import Any

from gapwatch.levels import level_of
from gapwatch.tally.measure import measure
from gapwatch.tally.rows import JUDGED, Names, Row, unpack
from gapwatch.tally.sums import DAY_S, Key, Levels, Scope, Sums, Values, add_named

PLACE = {"success": 0, "failure": 1, "aborted": 2, "abandoned": 3}
_NOTHING: frozenset[str] = frozenset()


class Episodes:
    """Rows in the order of `Row`; one with sign −1 is taken away."""

    def __init__(self, rows: Sequence[tuple[Any, ...]], names: Names) -> None:
        self._names = names
        self._given = _columns([row for row in rows if row[0] > 0])
        self._taken = _columns([row for row in rows if row[0] < 0])

    def counted(self) -> Sums:
        """All sums but the values."""
        sums = _count(self._given, self._names) if self._given else Sums()
        if self._taken:
            sums.add(_count(self._taken, self._names), -1)
        return sums

    def measured(self) -> Values:
        values = measure(self._given, self._names) if self._given else {}
        if self._taken:
            add_named(values, measure(self._taken, self._names), -1)
        return values


def aggregate(rows: Sequence[tuple[Any, ...]], names: Names) -> Sums:
    episodes = Episodes(rows, names)
    sums = episodes.counted()
    sums.values = episodes.measured()
    return sums


def _columns(rows: Sequence[tuple[Any, ...]]) -> Any:
    return Row._make(zip(*rows, strict=True)) if rows else None


def _count(columns: Any, names: Names) -> Sums:
    """Columns, not rows: `Counter` goes through a zip of columns without a step of Python for each episode."""
    sums = Sums()
    scopes = list(zip(columns.domain, columns.policy_id, columns.task_id, columns.source_id, strict=True))
    days = [hour - hour % DAY_S for hour in columns.hour]
    for (scope, hour, outcome), count in Counter(zip(scopes, columns.hour, columns.outcome, strict=True)).items():
        sums.hours.setdefault((scope, hour), [0, 0, 0, 0])[PLACE[outcome]] += count
    kept = _KeptLevels(columns, names)
    places = list(zip(scopes, days, columns.robot_id, columns.site_id, columns.stage, kept.numbers, strict=True))
    for ((scope, day, *where, number), outcome), count in Counter(
        zip(places, columns.outcome, strict=True)
    ).items():
        cell = (*where, kept.levels[number])
        sums.cells.setdefault((scope, day, cell), [0, 0, 0, 0])[PLACE[outcome]] += count
    for (scope, day, contract), count in Counter(zip(scopes, days, columns.contract_id, strict=True)).items():
        sums.contracts[scope, day, contract or 0] = count
    _count_failures(sums, columns, places, kept)
    _count_sessions(sums, columns, scopes, days)
    return sums


def _count_failures(sums: Sums, columns: Any, places: Sequence[tuple[Any, ...]], kept: _KeptLevels) -> None:
    failed = [outcome == "failure" for outcome in columns.outcome]
    said = zip(
        compress(places, failed),
        compress(columns.phase, failed),
        (tuple(labels) if labels else () for labels in compress(columns.labels, failed)),
        compress(columns.category, failed),
        strict=True,
    )
    for ((scope, day, *where, number), phase, labels, category), count in Counter(said).items():
        key = (scope, day, (*where, kept.levels[number]), (phase, tuple(sorted(set(labels))), category))
        sums.failures[key] = sums.failures.get(key, 0) + count


def _count_sessions(sums: Sums, columns: Any, scopes: Sequence[Scope], days: Sequence[int]) -> None:
    found = Counter(zip(scopes, days, columns.session, columns.outcome, strict=True))
    for (scope, day, session, outcome), count in found.items():
        if session is not None and outcome in JUDGED:
            sums.sessions.setdefault((scope, day, session), [0, 0])[PLACE[outcome]] += count


class _KeptLevels:
    """The conditions of each row as the number of its levels, without those that are left out of cells.

    Rows are numbered by distinct contents, found a column at a time: many rows share theirs.
    """

    def __init__(self, columns: Any, names: Names) -> None:
        self._names = names
        self._found: dict[Levels, int] = {}
        self.levels: list[Levels] = []
        places = list(zip(columns.policy_id, columns.task_id, strict=True))
        named = self._number(zip(places, columns.condition_set_id, strict=True), self._of_sets)
        measured = self._number(
            zip(places, columns.number_names_id, columns.numbers, strict=True), self._of_numbers
        )
        self.numbers = self._number(zip(named, measured, strict=True), self._joined)

    def _number(
        self, keys: Iterable[Key], levels_of: Callable[[Collection[Key]], Iterable[tuple[Key, Levels]]]
    ) -> list[int]:
        """For each key the number of the levels that it stands for."""
        column = list(keys)
        numbers = {key: self._found.setdefault(levels, len(self._found)) for key, levels in levels_of(set(column))}
        self.levels = list(self._found)
        return [*map(numbers.__getitem__, column)]

    def _left_out(self, place: tuple[int, int]) -> frozenset[str]:
        return self._names.pooled.get(place, _NOTHING)

    def _of_sets(self, keys: Collection[Any]) -> Iterable[tuple[Any, Levels]]:
        known: dict[int | None, Levels] = {None: ()}
        for number in {number for _, number in keys} - {None}:
            given = self._names.condition_sets[number].items()
            known[number] = tuple((name, level_of(value)) for name, value in given)
        for key in keys:
            left_out = self._left_out(key[0])
            levels = known[key[1]]
            yield key, tuple(pair for pair in levels if pair[0] not in left_out) if left_out else levels

    def _of_numbers(self, keys: Collection[Any]) -> Iterable[tuple[Any, Levels]]:
        for key in keys:
            place, number, numbers = key
            if number is None or numbers is None:
                yield key, ()
                continue
            left_out = self._left_out(place)
            names = self._names.name_sets[number]
            if left_out.issuperset(names):
                yield key, ()
                continue
            values = unpack([numbers], len(names))[0].tolist()
            yield (
                key,
                tuple(
                    (name, level_of(value))
                    for name, value in zip(names, values, strict=True)
                    if name not in left_out
                ),
            )

    def _joined(self, keys: Collection[Any]) -> Iterable[tuple[Any, Levels]]:
        levels = self.levels
        for named, measured in keys:
            yield (named, measured), tuple(sorted(levels[named] + levels[measured]))
