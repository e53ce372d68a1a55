"""What the words of many failed episodes claim: whole units a row and category, then parts of 1024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

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
