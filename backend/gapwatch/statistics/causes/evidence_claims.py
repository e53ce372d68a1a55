"""What the evidence of many failed episodes claims: whole units a row and category, then parts of 1024."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.attribution import (
    FEWEST_SUCCESSES,
    PARTS,
    UNIT,
    Level,
    UsualRange,
)
from gapwatch.taxonomy import Taxonomy

Array = NDArray[np.float64]
Units = NDArray[np.int64]


def add_labels(
    claims: Units,
    rows: Sequence[Sequence[str]],
    taxonomy: Taxonomy,
    column: Mapping[str, int],
    strength: float,
) -> NDArray[np.bool_]:
    """Returns which rows are decided by a label."""
    decided = np.zeros(len(rows), dtype=bool)
    known: dict[tuple[str, ...], Units | None] = {}
    for row, labels in enumerate(rows):
        if labels:
            key = tuple(labels)
            if key not in known:
                known[key] = _label_claims(key, taxonomy, column, strength)
            found = known[key]
            if found is not None:
                decided[row] = True
                claims[row] = found
    return decided


def _label_claims(
    labels: tuple[str, ...], taxonomy: Taxonomy, column: Mapping[str, int], strength: float
) -> Units | None:
    found = [c for label in dict.fromkeys(labels) if (c := taxonomy.categories_of("labels", label))]
    if not found:
        return None
    claims = np.zeros(len(column), dtype=np.int64)
    for categories in found:
        for category in categories:
            claims[column[category]] += int(UNIT * strength) // len(found) // len(categories)
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

    Symptoms share what causes leave. Returns what was claimed.
    """
    claimed = np.zeros(len(claims), dtype=np.int64)
    left = np.full(len(claims), most, dtype=np.int64)
    for is_symptom in (False, True):
        farthest: dict[tuple[str, ...], Units] = {}
        for name, values in signals.items():
            found = taxonomy.categories_of("signals", name)
            if found and taxonomy.is_symptom(name) is is_symptom:
                far = far_out(values, usual[name])
                farthest[found] = np.maximum(farthest[found], far) if found in farthest else far
        if not farthest:
            continue
        stack = np.array(list(farthest.values()))
        total = np.maximum(stack.sum(axis=0), 1)
        together = left * stack.max(axis=0) // UNIT
        for found, far in farthest.items():
            claim = together * far // total
            claimed += claim
            for category in found:
                claims[:, column[category]] += claim // len(found)
        left = left - together
    return claimed


def far_out(values: Array, usual: UsualRange) -> Units:
    """`attribution.unusual` of every value, in units; 0 inside the usual range and where there is no value."""
    far = np.zeros(len(values), dtype=np.int64)
    if usual.n < FEWEST_SUCCESSES:
        return far
    there = np.isfinite(values)
    x = np.where(there, values, usual.median)
    for limit, beyond, credit in (
        (usual.low, usual.low - x, usual.below),
        (usual.high, x - usual.high, usual.above),
    ):
        outside = beyond > 1e-9 * np.maximum(abs(limit), np.abs(x))
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
    """Suspect levels share `most` equally. Returns what was claimed."""
    hits: list[tuple[tuple[str, ...], NDArray[np.bool_]]] = []
    for name, own in levels.items():
        found = taxonomy.categories_of("conditions", name)
        if found:
            hits.append((found, np.array([(name, level) in suspects for level in own], dtype=bool)))
    if not hits:
        return np.zeros(len(claims), dtype=np.int64)
    count = np.sum([hit for _, hit in hits], axis=0, dtype=np.int64)
    each = most // np.maximum(count, 1)
    for found, hit in hits:
        for category in found:
            claims[hit, column[category]] += each[hit] // len(found)
    return np.asarray(each * count)


def add_phases(
    claims: Units, phases: Sequence[str | None], taxonomy: Taxonomy, column: Mapping[str, int], most: Units
) -> None:
    rows: dict[str, list[int]] = {}
    for row, phase in enumerate(phases):
        if phase is not None:
            rows.setdefault(phase, []).append(row)
    for phase, own in rows.items():
        found = taxonomy.categories_of("phases", phase)
        for category in found:
            claims[own, column[category]] += most[own] // len(found)


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
