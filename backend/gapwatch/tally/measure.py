"""Moments and bins of what episodes measure: by set of names, so that each set is one matrix. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.estimates.sketches import signed_bins, step_sums
from gapwatch.tally.rows import Columns, Names, numbered, unpack
from gapwatch.tally.sums import JUDGED, EpisodeGroup, Measured
from gapwatch.tally.values import ValueSum

# Wider than any log-bin index, so that a column and a bin fit into one integer.
_SPAN = 1 << 18


def measure(columns: Columns, names: Names) -> Measured:
    """Of successes and failures."""
    sums: Measured = {}
    of = columns.of
    distinct, groups = numbered(zip(columns.scope_index, of.outcome, strict=True))
    ordered = [(*columns.scopes[index], outcome) for index, outcome in distinct]
    group = np.array(groups, dtype=np.int64)
    judged = np.array([outcome in JUDGED for outcome in of.outcome])
    for name in ("duration_s", "reward"):
        values = np.array(getattr(of, name), dtype=float)  # None becomes NaN, which no episode has
        wanted = judged & ~np.isnan(values)
        if wanted.any():
            _measure(sums, ordered, "metric", (name,), group[wanted], values[wanted][:, None])
    for kind, numbers, packed in (
        ("signal", of.signal_names_id, of.signals),
        ("metric", of.metric_names_id, of.metrics),
    ):
        for number in set(numbers) - {None}:
            selected = np.array([each == number for each in numbers]) & judged
            if not selected.any():
                continue
            labels = names.name_sets[number]
            # A sender's own metric of that name would be counted beside the record's field.
            taken = {"duration_s", "reward"} if kind == "metric" else set()
            matrix = unpack(list(compress(packed, selected.tolist())), len(labels))
            kept = [column for column, label in enumerate(labels) if label not in taken]
            _measure(sums, ordered, kind, [labels[column] for column in kept], group[selected], matrix[:, kept])
    return sums


def _measure(
    sums: Measured,
    keys: Sequence[tuple[EpisodeGroup, int, str]],
    kind: str,
    names: Sequence[str],
    group: NDArray[np.int64],
    matrix: NDArray[np.float64],
) -> None:
    """Add moments and bins of every (group, column) at once: few large steps instead of many small ones."""
    totals, squares = step_sums(matrix, group, len(keys))
    for number, count in enumerate(np.bincount(group, minlength=len(keys)).tolist()):
        if not count:
            continue
        scope, day, outcome = keys[number]
        for name, total, total_sq in zip(names, totals[number], squares[number], strict=True):
            value = _value(sums, scope, day, kind, outcome, name)
            value.n += count
            value.total += total
            value.total_sq += total_sq
    _count_bins(sums, keys, kind, names, group, matrix)


def _count_bins(
    sums: Measured,
    keys: Sequence[tuple[EpisodeGroup, int, str]],
    kind: str,
    names: Sequence[str],
    group: NDArray[np.int64],
    matrix: NDArray[np.float64],
) -> None:
    side, index = signed_bins(matrix)
    column = np.arange(len(names))[None, :]
    key = ((group[:, None] * len(names) + column) * 3 + side + 1) * _SPAN + index + _SPAN // 2
    distinct, times = np.unique(key, return_counts=True)
    rest, shifted = np.divmod(distinct, _SPAN)
    indices, counts = (shifted - _SPAN // 2).tolist(), times.tolist()
    for start, end in pairwise(_edges(rest)):
        column_of_group, sign = divmod(int(rest[start]), 3)
        number, name = divmod(column_of_group, len(names))
        scope, day, outcome = keys[number]
        value = sums[scope, day, kind, outcome][names[name]]
        if sign == 1:
            value.zero += counts[start]
        else:
            bins = value.bins if sign == 2 else value.negative  # noqa: PLR2004
            for index, count in zip(indices[start:end], counts[start:end], strict=True):
                bins[index] = bins.get(index, 0) + count


def _edges(ordered: NDArray[np.int64]) -> list[int]:
    """Where runs of equal numbers begin, and the end."""
    return [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]


def _value(sums: Measured, scope: EpisodeGroup, day: int, kind: str, outcome: str, name: str) -> ValueSum:
    named = sums.setdefault((scope, day, kind, outcome), {})
    value_sum = named.get(name)
    if value_sum is None:
        value_sum = named[name] = ValueSum()
    return value_sum
