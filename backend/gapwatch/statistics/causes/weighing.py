"""The failed episodes of a side into weights over gap categories, all at once, and into a side of the ledger.

The rules are those of `attribution.attribute`, row by row to the last bit; only sentences are left to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.attribution import (
    DEFAULT_STRENGTHS,
    PARTS,
    UNIT,
    Level,
    Strengths,
    UsualRange,
)
from gapwatch.statistics.causes.evidence_claims import (
    Array,
    Units,
    add_conditions,
    add_labels,
    add_phases,
    add_signals,
    whole_parts,
)
from gapwatch.statistics.causes.ledger import LedgerSession, LedgerSide
from gapwatch.statistics.causes.signal_ranges import CONTRACT_SIGNAL, usual_ranges
from gapwatch.taxonomy import CATEGORIES, UNATTRIBUTED, Taxonomy

__all__ = ["CONTRACT_SIGNAL", "FailedBatch", "Weights", "ledger_side", "usual_ranges", "weigh"]


@dataclass(frozen=True)
class FailedBatch:
    """Failed episodes of one side as columns, all of one length.

    `counts`: how many episodes a row stands for. `conditions`: name → the level of each row, written as in the
    suspects. `signals`: name → one number a row, NaN where the episode has none. `sessions` may be left out.
    """

    counts: Array
    category: Sequence[str | None]
    labels: Sequence[Sequence[str]]
    phase: Sequence[str | None]
    conditions: Mapping[str, Sequence[Level]] = field(default_factory=dict)
    signals: Mapping[str, Array] = field(default_factory=dict)
    sessions: Sequence[str | None] = ()

    def __len__(self) -> int:
        return len(self.counts)


@dataclass(frozen=True)
class Weights:
    """`parts[row, column]`, whole parts of 1024 that sum to 1024 in each row; `names` are the columns' categories.

    The last column is `unattributed`. A category that only a person named stands before it. `decided` are the rows
    that a person's category or a label decided.
    """

    names: tuple[str, ...]
    parts: Units
    decided: NDArray[np.bool_]

    @property
    def matrix(self) -> Array:
        return self.parts / PARTS

    def of(self, category: str) -> Array:
        """One category's weight in each row; what no row names is 0 everywhere."""
        if category not in self.names:
            return np.zeros(len(self.parts))
        return np.asarray(self.parts[:, self.names.index(category)] / PARTS)


def weigh(
    batch: FailedBatch,
    taxonomy: Taxonomy,
    usual: Mapping[str, UsualRange] | None = None,
    suspects: Collection[tuple[str, Level]] = (),
    strengths: Strengths = DEFAULT_STRENGTHS,
) -> Weights:
    """The weights that `attribute` gives to each row, for all rows at once.

    Claims are whole numbers, added and divided without rounding, so a row's weights do not depend on the other
    rows. Smallest n: none; without rows the matrix is empty.
    """
    strange = sorted({c for c in batch.category if c is not None} - {*CATEGORIES, UNATTRIBUTED})
    names = (*CATEGORIES, *strange, UNATTRIBUTED)
    column = {name: place for place, name in enumerate(names)}
    claims = np.zeros((len(batch), len(names)), dtype=np.int64)
    labelled = add_labels(claims, batch.labels, taxonomy, column, strengths.label)
    chosen = np.array([category is not None for category in batch.category], dtype=bool)
    decided = labelled | chosen
    free: list[int] = np.flatnonzero(~decided).tolist()
    if free:
        claims[free] = _seen(batch, free, taxonomy, column, usual or {}, suspects, strengths)
    parts = whole_parts(claims, names)
    for row, category in enumerate(batch.category):
        if category is not None:
            parts[row] = 0
            parts[row, column[category]] = PARTS
    return Weights(names, parts, decided)


def ledger_side(
    n: int,
    failures: int,
    batch: FailedBatch,
    weights: Weights,
    sessions: Mapping[str, tuple[int, int]] | None = None,
) -> LedgerSide:
    """One side of the ledger: Σw and Σw² of every category with weight, over `n` episodes with `failures` failed.

    `sessions`: session → (episodes, failures), for intervals that know of sittings; the batch must name the
    session of each row. What the rows leave of `failures` is unattributed.
    Where rows are a sample, `counts` = failures / rows keeps the totals right.
    """
    matrix = weights.matrix
    totals, squares = batch.counts @ matrix, batch.counts @ matrix**2
    kept = [i for i, name in enumerate(weights.names) if totals[i] > 0 and name != UNATTRIBUTED]
    parts: list[LedgerSession] = []
    if sessions and batch.sessions:
        rows: dict[str, list[int]] = {}
        for row, session in enumerate(batch.sessions):
            if session is not None:
                rows.setdefault(session, []).append(row)
        for session, (episodes, failed) in sessions.items():
            own = rows.get(session, [])
            sums = batch.counts[own] @ matrix[own]
            parts.append(
                LedgerSession(episodes, failed, {weights.names[i]: float(sums[i]) for i in kept if sums[i] > 0})
            )
    last = len(weights.names) - 1
    return LedgerSide(
        n,
        failures,
        {weights.names[i]: float(totals[i]) for i in kept},
        {weights.names[i]: float(squares[i]) for i in (*kept, last)},
        tuple(parts),
    )


def _seen(
    batch: FailedBatch,
    rows: list[int],
    taxonomy: Taxonomy,
    column: Mapping[str, int],
    usual: Mapping[str, UsualRange],
    suspects: Collection[tuple[str, Level]],
    strengths: Strengths,
) -> Units:
    """The claims of what was seen: signals, then suspect levels of what is left, then the phase of the rest."""
    claims = np.zeros((len(rows), len(column)), dtype=np.int64)
    signals = {name: values[rows] for name, values in batch.signals.items() if name in usual}
    left = UNIT - add_signals(claims, signals, taxonomy, column, usual, int(UNIT * strengths.signal))
    names = dict.fromkeys(name for name, _ in suspects if name in batch.conditions)
    levels = {name: [batch.conditions[name][row] for row in rows] for name in names}
    most = (left * strengths.condition).astype(np.int64)
    left = left - add_conditions(claims, levels, taxonomy, column, suspects, most)
    most = (left * strengths.phase).astype(np.int64)
    add_phases(claims, [batch.phase[row] for row in rows], taxonomy, column, most)
    return claims
