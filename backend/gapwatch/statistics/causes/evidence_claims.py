"""What the evidence of many failed episodes claims: whole units a row and category, then parts of 1024."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.failed_episodes import Array, Level
from gapwatch.statistics.causes.signal_ranges import AT_THE_LIMIT, FEWEST_SUCCESSES, UsualRange
from gapwatch.taxonomy import Taxonomy

Units = NDArray[np.int64]
# Weights are whole parts of 1024: their sums and sums of squares are exact doubles, in any order, for billions of
# episodes, so a ledger adds up and a replayed rollup is the same to the last bit.
PARTS = 1024
# Claims are whole numbers of this size before they are shared out, so that no order of adding can move a weight.
UNIT = 2**20


def deciding_labels(labels: Sequence[str], taxonomy: Taxonomy) -> dict[str, tuple[str, ...]]:
    """The labels that point somewhere, each once, with their categories; any of them decides an episode."""
    return {
        label: categories
        for label in dict.fromkeys(labels)
        if (categories := taxonomy.categories_of("labels", label))
    }


def add_labels(
    claims: Units,
    rows: Sequence[Sequence[str]],
    taxonomy: Taxonomy,
    column: Mapping[str, int],
    strength: float,
) -> NDArray[np.bool_]:
    """Share `strength` equally among the labels of a row. Return which rows are decided by a label."""
    decided = np.zeros(len(rows), dtype=bool)
    known: dict[tuple[str, ...], Units | None] = {}
    for row, labels in enumerate(rows):
        if labels:
            key = tuple(labels)
            if key not in known:
                known[key] = _label_claims(key, taxonomy, column, strength)
            of_labels = known[key]
            if of_labels is not None:
                decided[row] = True
                claims[row] = of_labels
    return decided


def _label_claims(
    labels: tuple[str, ...], taxonomy: Taxonomy, column: Mapping[str, int], strength: float
) -> Units | None:
    deciding = deciding_labels(labels, taxonomy)
    if not deciding:
        return None
    claims = np.zeros(len(column), dtype=np.int64)
    for categories in deciding.values():
        for category in categories:
            claims[column[category]] += int(UNIT * strength) // len(deciding) // len(categories)
    return claims


def add_signals(
    claims: Units,
    signals: Mapping[str, Array],
    taxonomy: Taxonomy,
    column: Mapping[str, int],
    usual: Mapping[str, UsualRange],
    most: int,
) -> Units:
    """The farthest signal of a set of categories speaks for it; together they claim as much as the farthest.

    Symptoms share what causes leave. Return what was claimed.
    """
    claimed = np.zeros(len(claims), dtype=np.int64)
    left = np.full(len(claims), most, dtype=np.int64)
    for is_symptom in (False, True):
        farthest: dict[tuple[str, ...], Units] = {}
        for name, values in signals.items():
            to = taxonomy.categories_of("signals", name)
            if to and taxonomy.is_symptom(name) is is_symptom:
                far = far_out(values, usual[name])
                farthest[to] = np.maximum(farthest[to], far) if to in farthest else far
        if not farthest:
            continue
        stack = np.array(list(farthest.values()))
        total = np.maximum(stack.sum(axis=0), 1)
        together = left * stack.max(axis=0) // UNIT
        for to, far in farthest.items():
            claim = together * far // total
            claimed += claim
            for category in to:
                claims[:, column[category]] += claim // len(to)
        left = left - together
    return claimed


def far_out(values: Array, usual: UsualRange) -> Units:
    """How far each value lies outside the usual range, in units; 0 inside it and where there is no value.

    Formula: min(1, 2 · distance beyond the limit / distance of the limit from the median), 1 where the usual
    values are all one; times the credit of that side. For a normal signal 1 is reached at 3.5 standard deviations.
    """
    far = np.zeros(len(values), dtype=np.int64)
    if usual.n < FEWEST_SUCCESSES:
        return far
    there = np.isfinite(values)
    x = np.where(there, values, usual.median)
    for limit, beyond, credit in (
        (usual.low, usual.low - x, usual.below),
        (usual.high, x - usual.high, usual.above),
    ):
        outside = beyond > AT_THE_LIMIT * np.maximum(abs(limit), np.abs(x))
        room = abs(limit - usual.median)
        degree = np.minimum(1.0, 2 * beyond / room) if room > 0 else np.ones(len(x))
        far = np.where(outside & there, (UNIT * (degree * credit)).astype(np.int64), far)
    return far


def add_conditions(
    claims: Units,
    levels: Mapping[str, Sequence[Level]],
    taxonomy: Taxonomy,
    column: Mapping[str, int],
    suspects: Collection[tuple[str, Level]],
    most: Units,
) -> Units:
    """Share `most` equally among the suspect levels of a row. Return what was claimed."""
    hits: list[tuple[tuple[str, ...], NDArray[np.bool_]]] = []
    for name, own in levels.items():
        to = taxonomy.categories_of("conditions", name)
        if to:
            hits.append((to, np.array([(name, level) in suspects for level in own], dtype=bool)))
    if not hits:
        return np.zeros(len(claims), dtype=np.int64)
    count = np.sum([hit for _, hit in hits], axis=0, dtype=np.int64)
    each = most // np.maximum(count, 1)
    for to, hit in hits:
        for category in to:
            claims[hit, column[category]] += each[hit] // len(to)
    return np.asarray(each * count)


def add_phases(
    claims: Units, phases: Sequence[str | None], taxonomy: Taxonomy, column: Mapping[str, int], most: Units
) -> None:
    """Give `most` of a row to the categories of its phase."""
    rows: dict[str, list[int]] = {}
    for row, phase in enumerate(phases):
        if phase is not None:
            rows.setdefault(phase, []).append(row)
    for phase, own in rows.items():
        to = taxonomy.categories_of("phases", phase)
        for category in to:
            claims[own, column[category]] += most[own] // len(to)


def whole_parts(claims: Units, names: tuple[str, ...]) -> Units:
    """Claims as whole parts of 1024 a row; what rounding leaves goes to the largest remainders, then by name."""
    total = claims.sum(axis=1)
    whole = np.maximum(total, UNIT)
    shares = claims * PARTS
    shares[:, -1] += (whole - total) * PARTS
    parts, rest = np.divmod(shares, whole[:, None])
    left = PARTS - parts.sum(axis=1)
    by_name = np.argsort(names)
    order = by_name[np.argsort(-rest[:, by_name], axis=1, kind="stable")]
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(names))[None, :].repeat(len(order), axis=0), axis=1)
    parts += rank < left[:, None]
    return np.asarray(parts)
