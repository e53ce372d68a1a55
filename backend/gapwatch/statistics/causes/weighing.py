"""The failed episodes of a side into weights over gap categories, all at once, and into a side of the ledger.

Every share of failures that the product shows comes from `weigh`; `evidence_sentences` says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.evidence_claims import (
    PARTS,
    UNIT,
    Units,
    add_conditions,
    add_labels,
    add_phases,
    add_signals,
    whole_parts,
)
from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch, Level
from gapwatch.statistics.causes.ledger import LedgerSession, LedgerSide
from gapwatch.statistics.causes.signal_ranges import UsualRange
from gapwatch.taxonomy import CATEGORIES, UNATTRIBUTED, Taxonomy


@dataclass(frozen=True)
class Strengths:
    """How much of what is left of an episode a kind of evidence may claim; a person's category claims all of it.

    A label decides, a signal says what was unusual, a condition what else was so, a phase only where it failed.
    """

    label: float = 1.0
    phase: float = 1.0
    signal: float = 1.0
    condition: float = 0.5


DEFAULT_STRENGTHS = Strengths()
# For pages that read nothing but words: what a person or a label decided is exact, the rest is unattributed.
LABELS_ONLY = Strengths(phase=0.0, signal=0.0, condition=0.0)


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


def weigh(
    batch: FailedBatch,
    taxonomy: Taxonomy,
    usual: Mapping[str, UsualRange] | None = None,
    suspects: Collection[tuple[str, Level]] = (),
    strengths: Strengths = DEFAULT_STRENGTHS,
) -> Weights:
    """Split every failure of a batch over categories.

    Rule: a person's category gets everything; else labels that point somewhere get everything, shared equally.
    Else unusual signals of what the robot met claim as much as the farthest out of them is far out, times its
    credit, shared by that; unusual symptoms (`Taxonomy.is_symptom`) the same of what is left; suspect condition
    levels half of the rest; the phase what then remains. Without a phase that is unattributed.
    A claim that points to several categories is shared equally. Signals claim once, by the farthest of a category.
    `suspects` are (condition, level), levels written as in `batch.conditions`, whose excess of failures is
    established; other levels are no evidence.
    Claims are whole numbers, added and divided without rounding, so a row's weights do not depend on the other
    rows, nor on the order in which evidence is written.
    Assumes that a measured surprise says more about the cause than the place where it showed: grasps fail for
    dim light, too. It is bookkeeping of evidence, the same for sim and real failures. `bench/attribution.py`
    measures how often it finds the cause in a world where that is known; with the phase first it found a third.
    Smallest n: a signal's range needs 50 sim successes. Without any evidence everything is unattributed; without
    rows the matrix is empty.
    """
    strange = sorted({c for c in batch.category if c is not None} - {*CATEGORIES, UNATTRIBUTED})
    names = (*CATEGORIES, *strange, UNATTRIBUTED)
    column = {name: index for index, name in enumerate(names)}
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
