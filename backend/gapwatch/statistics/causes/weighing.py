"""Weights of failed episodes over gap categories, by their words alone; and the side of a ledger that they make.

`responsibility.weigh_failures` weighs where two sides are compared. Words alone are weighed where there is nothing
to compare with: one episode without a deployment, lists of many deployments, a whole fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.evidence_claims import PARTS, UNIT, Units, add_labels, add_phases, whole_parts
from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch
from gapwatch.statistics.causes.ledger import LedgerSession, LedgerSide
from gapwatch.taxonomy import CATEGORIES, UNATTRIBUTED, Taxonomy


@dataclass(frozen=True)
class Strengths:
    """How much of an episode labels may claim, and a phase where no label does; a person's category claims all."""

    label: float = 1.0
    phase: float = 1.0


DEFAULT_STRENGTHS = Strengths()
# For pages that read nothing but words: what a person or a label decided is exact, the rest is unattributed.
LABELS_ONLY = Strengths(phase=0.0)


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

    def row(self, row: int) -> dict[str, float]:
        """The categories with weight in one row, heaviest first, `unattributed` last."""
        weights = {
            name: part / PARTS for name, part in zip(self.names, self.parts[row].tolist(), strict=True) if part
        }
        return dict(sorted(weights.items(), key=lambda item: (item[0] == UNATTRIBUTED, -item[1])))


def weigh(batch: FailedBatch, taxonomy: Taxonomy, strengths: Strengths = DEFAULT_STRENGTHS) -> Weights:
    """Split every failure of a batch over categories by what was written about it.

    Rule: a person's category gets everything; else labels that point somewhere, shared equally; else the phase.
    A word that points to several categories is shared equally. Claims are whole numbers, added and divided without
    rounding, so a row's weights do not depend on the other rows, nor on the order in which words are written.
    Without any word everything is unattributed; without rows the matrix is empty.
    """
    strange = sorted({c for c in batch.category if c is not None} - {*CATEGORIES, UNATTRIBUTED})
    names = (*CATEGORIES, *strange, UNATTRIBUTED)
    column = {name: index for index, name in enumerate(names)}
    claims = np.zeros((len(batch), len(names)), dtype=np.int64)
    labelled = add_labels(claims, batch.labels, taxonomy, column, strengths.label)
    chosen = np.array([category is not None for category in batch.category], dtype=bool)
    decided = labelled | chosen
    most = np.where(decided, 0, int(UNIT * strengths.phase))
    add_phases(claims, batch.phase, taxonomy, column, most)
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
