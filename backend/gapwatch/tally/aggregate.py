"""Episodes into sums: columns for what is counted, matrices for what is measured. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import level_of
from gapwatch.statistics.sketches import signed_bins, step_sums
from gapwatch.tally.sums import DAY_S, Key, Levels, Scope, Sums
from gapwatch.tally.values import ValueSum

PLACE = {"success": 0, "failure": 1, "aborted": 2, "abandoned": 3}
JUDGED = ("success", "failure")
# A one-dimensional float8[] as Postgres sends it: 20 bytes of header, then length and value of each element.
_HEADER = 20
_ELEMENT = np.dtype([("length", ">i4"), ("value", ">f8")])
_NOTHING: frozenset[str] = frozenset()
# Wider than any log-bin index, so that a place and a bin fit into one integer.
_SPAN = 1 << 18


class Row(NamedTuple):
    """What folding needs of an episode; names and condition sets by number, arrays as Postgres sends them."""

    sign: int
    domain: str
    policy_id: int
    task_id: int
    source_id: int
    hour: int
    robot_id: int | None
    site_id: int | None
    stage: str | None
    condition_set_id: int | None
    number_names_id: int | None
    numbers: bytes | None
    outcome: str
    phase: str | None
    labels: list[str] | None
    category: str | None
    session: str | None
    contract_id: int | None
    duration_s: float | None
    reward: float | None
    signal_names_id: int | None
    signals: bytes | None
    metric_names_id: int | None
    metrics: bytes | None


class Names(NamedTuple):
    """What the numbers of one project's rows stand for."""

    condition_sets: Mapping[int, Mapping[str, Any]]
    name_sets: Mapping[int, Sequence[str]]
    # Conditions that are left out of cells, by policy and task.
    pooled: Mapping[tuple[int, int], frozenset[str]]


def aggregate(rows: Sequence[tuple[Any, ...]], names: Names) -> Sums:
    """The sums of rows in the order of `Row`; a row with sign −1 is taken away."""
    sums = _tally([row for row in rows if row[0] > 0], names)
    gone = [row for row in rows if row[0] < 0]
    if gone:
        sums.add(_tally(gone, names), -1)
    return sums


def _tally(rows: Sequence[tuple[Any, ...]], names: Names) -> Sums:
    """Columns, not rows: `Counter` goes through a zip of columns without a step of Python for each episode."""
    sums = Sums()
    if not rows:
        return sums
    columns: Any = Row._make(zip(*rows, strict=True))
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
    _count_values(sums, columns, scopes, days, names)
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


def _count_values(sums: Sums, columns: Any, scopes: Sequence[Scope], days: Sequence[int], names: Names) -> None:
    """Moments and bins of successes and failures: by set of names, so that each set is one matrix."""
    keys = list(zip(scopes, days, columns.outcome, strict=True))
    groups = dict.fromkeys(keys)
    place = {key: number for number, key in enumerate(groups)}
    group = np.fromiter(map(place.__getitem__, keys), dtype=np.int64, count=len(keys))
    judged = np.array([outcome in JUDGED for outcome in columns.outcome])
    ordered = list(groups)
    for name in ("duration_s", "reward"):
        given = np.array(getattr(columns, name), dtype=float)  # None becomes NaN, which no episode has
        wanted = judged & ~np.isnan(given)
        if wanted.any():
            _measure(sums, ordered, "metric", (name,), group[wanted], given[wanted][:, None])
    for kind, numbers, packed in (
        ("signal", columns.signal_names_id, columns.signals),
        ("metric", columns.metric_names_id, columns.metrics),
    ):
        for number in set(numbers) - {None}:
            mine = np.array([each == number for each in numbers]) & judged
            if not mine.any():
                continue
            labels = names.name_sets[number]
            # A sender's own metric of that name would be counted beside the record's field.
            taken = {"duration_s", "reward"} if kind == "metric" else set()
            matrix = _unpack(list(compress(packed, mine.tolist())), len(labels))
            kept = [column for column, label in enumerate(labels) if label not in taken]
            _measure(sums, ordered, kind, [labels[column] for column in kept], group[mine], matrix[:, kept])


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
            values = _unpack([numbers], len(names))[0].tolist()
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


def _unpack(blobs: Sequence[bytes], width: int) -> NDArray[np.float64]:
    """Arrays of one length as Postgres sends them, into a matrix."""
    row = np.dtype([("header", "V", _HEADER), ("elements", _ELEMENT, (width,))])
    found = np.frombuffer(b"".join(blobs), dtype=row)
    return found["elements"]["value"].astype(np.float64).reshape(len(blobs), width)


def _measure(
    sums: Sums,
    places: Sequence[tuple[Scope, int, str]],
    kind: str,
    names: Sequence[str],
    group: NDArray[np.int64],
    matrix: NDArray[np.float64],
) -> None:
    """Add moments and bins of every (group, column) at once: few large steps instead of many small ones."""
    totals, squares = step_sums(matrix, group, len(places))
    for number, count in enumerate(np.bincount(group, minlength=len(places)).tolist()):
        if not count:
            continue
        scope, day, outcome = places[number]
        for name, total, total_sq in zip(names, totals[number], squares[number], strict=True):
            value = _value(sums, scope, day, kind, outcome, name)
            value.n += count
            value.total += total
            value.total_sq += total_sq
    _count_bins(sums, places, kind, names, group, matrix)


def _count_bins(
    sums: Sums,
    places: Sequence[tuple[Scope, int, str]],
    kind: str,
    names: Sequence[str],
    group: NDArray[np.int64],
    matrix: NDArray[np.float64],
) -> None:
    side, index = signed_bins(matrix)
    column = np.arange(len(names))[None, :]
    key = ((group[:, None] * len(names) + column) * 3 + side + 1) * _SPAN + index + _SPAN // 2
    found, times = np.unique(key, return_counts=True)
    rest, shifted = np.divmod(found, _SPAN)
    indices, counts = (shifted - _SPAN // 2).tolist(), times.tolist()
    for start, end in pairwise(_edges(rest)):
        place, which = divmod(int(rest[start]), 3)
        number, name = divmod(place, len(names))
        scope, day, outcome = places[number]
        value = sums.values[scope, day, kind, outcome][names[name]]
        if which == 1:
            value.zero += counts[start]
        else:
            bins = value.bins if which == 2 else value.negative  # noqa: PLR2004
            for index, count in zip(indices[start:end], counts[start:end], strict=True):
                bins[index] = bins.get(index, 0) + count


def _edges(ordered: NDArray[np.int64]) -> list[int]:
    """Where runs of equal numbers begin, and the end."""
    return [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]


def _value(sums: Sums, scope: Scope, day: int, kind: str, outcome: str, name: str) -> ValueSum:
    named = sums.values.setdefault((scope, day, kind, outcome), {})
    found = named.get(name)
    if found is None:
        found = named[name] = ValueSum()
    return found
