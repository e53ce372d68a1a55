"""Episodes into sums: one pass for what is counted, matrices for what is measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import level_of
from gapwatch.statistics.sketches import signed_bins, whole_steps
from gapwatch.tally.sums import DAY_S, CellContent, Scope, Sums
from gapwatch.tally.values import ValueSum

PLACE = {"success": 0, "failure": 1, "aborted": 2, "abandoned": 3}
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
    numbers: list[float] | None
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


def aggregate(rows: Iterable[tuple[Any, ...]], names: Names) -> Sums:
    """The sums of rows in the order of `Row`; a row with sign −1 is taken away."""
    sums = Sums()
    cells = _Cells(names)
    measured = _Measured()
    hours, counted, failures = sums.hours, sums.cells, sums.failures
    sessions, contracts = sums.sessions, sums.contracts
    for row in rows:
        (sign, domain, policy, task, source, hour, robot, site, stage, condition_set, number_names, numbers,
         outcome, phase, labels, category, session, contract, *_) = row  # fmt: skip
        scope: Scope = (domain, policy, task, source)
        day = hour - hour % DAY_S
        place = PLACE[outcome]
        key = (scope, hour)
        if key not in hours:
            hours[key] = [0, 0, 0, 0]
        hours[key][place] += sign
        cell = cells.content(policy, task, robot, site, stage, condition_set, number_names, numbers)
        in_cell = (scope, day, cell)
        if in_cell not in counted:
            counted[in_cell] = [0, 0, 0, 0]
        counted[in_cell][place] += sign
        owner = (scope, day, contract or 0)
        contracts[owner] = contracts.get(owner, 0) + sign
        if place > 1:
            continue
        if place == 1:
            said = (scope, day, cell, (phase, tuple(sorted(set(labels or ()))), category))
            failures[said] = failures.get(said, 0) + sign
        if session is not None:
            sitting = (scope, day, session)
            if sitting not in sessions:
                sessions[sitting] = [0, 0]
            sessions[sitting][place] += sign
        measured.take(sign, scope, day, outcome, row)
    measured.add_to(sums, names)
    return sums


class _Cells:
    """The content of a cell, found once for rows that refer to the same things."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._levels: dict[int, tuple[tuple[str, str], ...]] = {}
        self._found: dict[tuple[Any, ...], CellContent] = {}

    def content(
        self,
        policy: int,
        task: int,
        robot: int | None,
        site: int | None,
        stage: str | None,
        condition_set: int | None,
        number_names: int | None,
        numbers: Sequence[float] | None,
    ) -> CellContent:
        levels = tuple(level_of(number) for number in numbers) if numbers else ()
        pooled = self._names.pooled.get((policy, task), _NOTHING)
        key = (pooled, robot, site, stage, condition_set, number_names, levels)
        content = self._found.get(key)
        if content is None:
            pairs = list(self._set(condition_set)) if condition_set is not None else []
            if number_names is not None:
                pairs += zip(self._names.name_sets[number_names], levels, strict=True)
            kept = tuple(sorted(pair for pair in pairs if pair[0] not in pooled))
            content = self._found[key] = (robot, site, stage, kept)
        return content

    def _set(self, number: int) -> tuple[tuple[str, str], ...]:
        if number not in self._levels:
            levels = self._names.condition_sets[number].items()
            self._levels[number] = tuple((name, level_of(value)) for name, value in levels)
        return self._levels[number]


class _Measured:
    """Numbers waiting to become moments and bins: by set of names, so that each set is one matrix."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Scope, int, str], int] = {}
        self._plain: dict[str, tuple[list[int], list[int], list[float]]] = {
            "duration_s": ([], [], []),
            "reward": ([], [], []),
        }
        self._arrays: dict[tuple[str, int], tuple[list[int], list[int], list[bytes]]] = {}

    def take(self, sign: int, scope: Scope, day: int, outcome: str, row: Sequence[Any]) -> None:
        duration, reward, signal_names, signals, metric_names, metrics = row[18:24]
        group = self._groups.setdefault((scope, day, outcome), len(self._groups))
        for name, value in (("duration_s", duration), ("reward", reward)):
            if value is not None:
                groups, signs, values = self._plain[name]
                groups.append(group)
                signs.append(sign)
                values.append(value)
        for kind, number, packed in (("signal", signal_names, signals), ("metric", metric_names, metrics)):
            if number is not None and packed is not None:
                groups, signs, blobs = self._arrays.setdefault((kind, number), ([], [], []))
                groups.append(group)
                signs.append(sign)
                blobs.append(packed)

    def add_to(self, sums: Sums, names: Names) -> None:
        places = list(self._groups)
        for name, (groups, signs, values) in self._plain.items():
            if values:
                matrix = np.array(values, dtype=float)[:, None]
                _measure(sums, places, "metric", (name,), groups, signs, matrix)
        for (kind, number), (groups, signs, blobs) in self._arrays.items():
            labels = names.name_sets[number]
            # A sender's own metric of that name would be counted beside the record's field.
            taken = {"duration_s", "reward"} if kind == "metric" else set()
            matrix = _unpack(blobs, len(labels))
            kept = [place for place, label in enumerate(labels) if label not in taken]
            _measure(sums, places, kind, [labels[i] for i in kept], groups, signs, matrix[:, kept])


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
    groups: Sequence[int],
    signs: Sequence[int],
    matrix: NDArray[np.float64],
) -> None:
    """Add moments and bins of every (group, column) at once: few large steps instead of many small ones."""
    order = np.argsort(groups, kind="stable")
    group, sign, matrix = np.asarray(groups)[order], np.asarray(signs)[order], matrix[order]
    edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
    plus = bool((sign > 0).all())
    for column, name in enumerate(names):
        steps = whole_steps(matrix[:, column])
        weighted = steps if plus else [s * w for s, w in zip(steps, sign.tolist(), strict=True)]
        for start, end in pairwise(edges):
            scope, day, outcome = places[group[start]]
            named = sums.values.setdefault((scope, day, kind, outcome), {})
            value = named.get(name)
            if value is None:
                value = named[name] = ValueSum()
            value.n += int(sign[start:end].sum())
            value.total += sum(weighted[start:end])
            value.total_sq += sum(map(mul, weighted[start:end], steps[start:end]))
    _count_bins(sums, places, kind, names, group, sign, matrix)


def _count_bins(
    sums: Sums,
    places: Sequence[tuple[Scope, int, str]],
    kind: str,
    names: Sequence[str],
    group: NDArray[np.int64],
    sign: NDArray[np.int64],
    matrix: NDArray[np.float64],
) -> None:
    side, index = signed_bins(matrix)
    column = np.arange(len(names))[None, :]
    key = ((group[:, None] * len(names) + column) * 3 + side + 1) * _SPAN + index + _SPAN // 2
    found, place = np.unique(key, return_inverse=True)
    weights = np.broadcast_to(sign[:, None], key.shape).ravel()
    counts = np.bincount(place.ravel(), weights=weights, minlength=found.size)
    for code, count in zip(found.tolist(), counts.tolist(), strict=True):
        rest, shifted = divmod(code, _SPAN)
        rest, which = divmod(rest, 3)
        number, name = divmod(rest, len(names))
        scope, day, outcome = places[number]
        value = sums.values[scope, day, kind, outcome][names[name]]
        if which == 1:
            value.zero += int(count)
        else:
            bins = value.bins if which == 2 else value.negative  # noqa: PLR2004
            bins[shifted - _SPAN // 2] = bins.get(shifted - _SPAN // 2, 0) + int(count)
