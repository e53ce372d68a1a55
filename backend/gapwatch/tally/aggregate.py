"""Episodes into sums: columns for what is counted, matrices for what is measured. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress, pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import level_of
from gapwatch.statistics.sketches import signed_bins, whole_steps
from gapwatch.tally.sums import DAY_S, CellContent, Scope, Sums
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
    cells = _Cells(names)
    places = list(zip(scopes, days, columns.robot_id, columns.site_id, columns.stage, columns.condition_set_id,
                      columns.number_names_id, columns.numbers, strict=True))  # fmt: skip
    for ((scope, day, *refers), outcome), count in Counter(zip(places, columns.outcome, strict=True)).items():
        cell = cells.content(scope, *refers)
        sums.cells.setdefault((scope, day, cell), [0, 0, 0, 0])[PLACE[outcome]] += count
    for (scope, day, contract), count in Counter(zip(scopes, days, columns.contract_id, strict=True)).items():
        sums.contracts[scope, day, contract or 0] = count
    _count_failures(sums, columns, places, cells)
    _count_sessions(sums, columns, scopes, days)
    _count_values(sums, columns, scopes, days, names)
    return sums


def _count_failures(sums: Sums, columns: Any, places: Sequence[tuple[Any, ...]], cells: _Cells) -> None:
    failed = [outcome == "failure" for outcome in columns.outcome]
    said = zip(
        compress(places, failed),
        compress(columns.phase, failed),
        (tuple(labels) if labels else () for labels in compress(columns.labels, failed)),
        compress(columns.category, failed),
        strict=True,
    )
    for ((scope, day, *refers), phase, labels, category), count in Counter(said).items():
        key = (scope, day, cells.content(scope, *refers), (phase, tuple(sorted(set(labels))), category))
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


class _Cells:
    """The content of a cell, found once for rows that refer to the same things."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._levels: dict[int, tuple[tuple[str, str], ...]] = {}
        self._found: dict[tuple[Any, ...], CellContent] = {}

    def content(
        self,
        scope: Scope,
        robot: int | None,
        site: int | None,
        stage: str | None,
        condition_set: int | None,
        number_names: int | None,
        numbers: bytes | None,
    ) -> CellContent:
        pooled = self._names.pooled.get((scope[1], scope[2]), _NOTHING)
        key = (pooled, robot, site, stage, condition_set, number_names, numbers)
        content = self._found.get(key)
        if content is None:
            pairs = list(self._set(condition_set)) if condition_set is not None else []
            if number_names is not None and numbers is not None:
                labels = self._names.name_sets[number_names]
                pairs += zip(labels, map(level_of, _unpack([numbers], len(labels))[0].tolist()), strict=True)
            kept = tuple(sorted(pair for pair in pairs if pair[0] not in pooled))
            content = self._found[key] = (robot, site, stage, kept)
        return content

    def _set(self, number: int) -> tuple[tuple[str, str], ...]:
        if number not in self._levels:
            levels = self._names.condition_sets[number].items()
            self._levels[number] = tuple((name, level_of(value)) for name, value in levels)
        return self._levels[number]


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
    order = np.argsort(group, kind="stable")
    group, matrix = group[order], matrix[order]
    edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
    for column, name in enumerate(names):
        steps = whole_steps(matrix[:, column])
        for start, end in pairwise(edges):
            scope, day, outcome = places[group[start]]
            value = _value(sums, scope, day, kind, outcome, name)
            part = steps[start:end]
            value.n += end - start
            value.total += sum(part)
            value.total_sq += sum(map(mul, part, part))
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
    found, counts = np.unique(key, return_counts=True)
    for code, count in zip(found.tolist(), counts.tolist(), strict=True):
        rest, shifted = divmod(code, _SPAN)
        rest, which = divmod(rest, 3)
        number, name = divmod(rest, len(names))
        scope, day, outcome = places[number]
        value = sums.values[scope, day, kind, outcome][names[name]]
        if which == 1:
            value.zero += count
        else:
            bins = value.bins if which == 2 else value.negative  # noqa: PLR2004
            bins[shifted - _SPAN // 2] = bins.get(shifted - _SPAN // 2, 0) + count


def _value(sums: Sums, scope: Scope, day: int, kind: str, outcome: str, name: str) -> ValueSum:
    named = sums.values.setdefault((scope, day, kind, outcome), {})
    found = named.get(name)
    if found is None:
        found = named[name] = ValueSum()
    return found
