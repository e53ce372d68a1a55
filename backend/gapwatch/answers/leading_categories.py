"""The category that leads each deployment's drop, by labels only: cheap enough for a whole fleet.

What a person or a label decided is weighed as in the ledger, sim taken away and sides that are labelled
differently evened out. A deployment's own page also weighs signals, conditions and phases. A category is named
here only where labels alone explain half of the drop: by less, that page would often name another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from gapwatch.answers.failure_weights import signature_batch
from gapwatch.answers.fleet import FleetRow
from gapwatch.answers.question import Question
from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch
from gapwatch.statistics.causes.label_balance import even_out, labelled_unevenly
from gapwatch.statistics.causes.weighing import LABELS_ONLY, Weights, weigh
from gapwatch.store.core.database import Connection
from gapwatch.store.read import fleet
from gapwatch.store.read.directory import Deployment
from gapwatch.store.read.fleet import FailureWords, WordKey
from gapwatch.taxonomy import UNATTRIBUTED, Taxonomy

# What labels leave unexplained could outweigh any less.
LEAST_SHARE = 0.5


@dataclass(frozen=True)
class LeadingCategory:
    """`contribution` of the whole drop, both as fractions of episodes; `by` says what was weighed."""

    category: str
    contribution: float
    by: Literal["labels"] = "labels"


def leading_categories(
    connection: Connection,
    project_id: int,
    known: Sequence[Deployment],
    rows: Sequence[FleetRow],
    taxonomy: Taxonomy,
    question: Question,
) -> dict[str, LeadingCategory]:
    """Of those whose drop is established; of others the words are not read."""
    lossy = [
        (deployment, row)
        for deployment, row in zip(known, rows, strict=True)
        if row.verdict in ("large", "small") and row.real.n and row.sim.n
    ]
    if not lossy:
        return {}
    since: datetime | None | dict[int, datetime | None] = question.window.since
    if question.asked_window == "now":
        since = {deployment.id: row.now.since for deployment, row in lossy}
    words = fleet.failure_words(connection, project_id, [deployment for deployment, _ in lossy], since)
    labelled = _LabelledFailures(words, taxonomy)
    real_keys, sim_keys = [], []
    for deployment, row in lossy:
        runs = (deployment.policy_id, deployment.task_id)
        simulator_id = words.simulators.get((row.simulator, row.simulator_version), 0)
        real_keys.append(labelled.first_of(("real", deployment.id, *runs)))
        # The fleet takes the whole baseline where no sim episode lies in the window, and so do its words.
        sim_keys.append(labelled.first_of(("sim", simulator_id, *runs), ("sim of all time", simulator_id, *runs)))
    real = _LabelledSides(labelled, real_keys, [row.real.n for _, row in lossy])
    sim = _LabelledSides(labelled, sim_keys, [row.sim.n for _, row in lossy])
    least = LEAST_SHARE * np.array([row.drop.value or 0.0 for _, row in lossy])
    leads = _leads(sim, real, least)
    return {row.slug: lead for (_, row), lead in zip(lossy, leads, strict=True) if lead is not None}


def _leads(sim: _LabelledSides, real: _LabelledSides, least: Array) -> list[LeadingCategory | None]:
    """For each deployment the category that real loses most by above sim, if it is at least so much."""
    excess = real.shares - sim.shares
    largest = excess.max(axis=1)
    # Evening out sim only raises what sim loses. Where that is too little already, it need not be done.
    is_possible = (largest >= least) | (sim.labelled > real.labelled)
    is_uneven = labelled_unevenly(sim.labelled, real.labelled)
    leads: list[LeadingCategory | None] = [None] * len(least)
    for at in np.flatnonzero(is_possible).tolist():
        lead = _lead_of_evened(sim, real, at) if is_uneven[at] else _largest(real.names, excess[at])
        if lead.contribution >= least[at]:
            leads[at] = lead
    return leads


def _lead_of_evened(sim: _LabelledSides, real: _LabelledSides, at: int) -> LeadingCategory:
    of_sim, of_real, _ = even_out(*sim.weighed(at), *real.weighed(at))
    excess = real.shares_by(of_real, at)
    for name, share in sim.shares_by(of_sim, at).items():
        excess[name] = excess.get(name, 0.0) - share
    excess.pop(UNATTRIBUTED)
    return _largest([*excess], np.array([*excess.values()]))


def _largest(names: Sequence[str], excess: Array) -> LeadingCategory:
    """Of equals the first by name."""
    value = excess.max()
    name = min(name for name, own in zip(names, excess.tolist(), strict=True) if own == value)
    return LeadingCategory(name, float(value))


class _LabelledFailures:
    """The failures of every deployment and baseline by signature. Signatures are weighed once: many share them."""

    def __init__(self, words: FailureWords, taxonomy: Taxonomy) -> None:
        self.signatures = list(dict.fromkeys(words.signatures.values()))
        self.batch = signature_batch(dict.fromkeys(self.signatures, 1.0))
        self.weights = weigh(self.batch, taxonomy, strengths=LABELS_ONLY)
        row_of = {signature: row for row, signature in enumerate(self.signatures)}
        row_of_id = {number: row_of[signature] for number, signature in words.signatures.items()}
        self._index: dict[WordKey, int] = {}
        keys = [self._index.setdefault(key, len(self._index)) for key, _, _ in words.counts]
        # The last row is of those that never failed.
        self.counts = np.zeros((len(self._index) + 1, len(self.signatures)))
        rows = [row_of_id[signature_id] for _, signature_id, _ in words.counts]
        np.add.at(self.counts, (keys, rows), [failures for _, _, failures in words.counts])

    def first_of(self, *keys: WordKey) -> int:
        """The row of the first key that has failures."""
        return next((self._index[key] for key in keys if key in self._index), len(self._index))


class _LabelledSides:
    """One side of many deployments: failures of each category per attempt, and the share that is labelled."""

    def __init__(self, failures: _LabelledFailures, rows: list[int], n: list[int]) -> None:
        self._failures, self._n = failures, np.array(n, dtype=float)
        weights = failures.weights
        self._counts = failures.counts[rows]
        # The last column is `unattributed`.
        self.names = weights.names[:-1]
        self.shares: Array = self._counts @ weights.matrix[:, :-1] / self._n[:, None]
        self.labelled: Array = self._counts @ weights.decided / np.maximum(self._counts.sum(axis=1), 1e-300)

    def weighed(self, at: int) -> tuple[FailedBatch, Weights]:
        """The failures of one deployment."""
        counts, batch, weights = self._counts[at], self._failures.batch, self._failures.weights
        rows = np.flatnonzero(counts).tolist()
        return (
            FailedBatch(
                counts[rows],
                [batch.category[row] for row in rows],
                [batch.labels[row] for row in rows],
                [batch.phase[row] for row in rows],
            ),
            Weights(weights.names, weights.parts[rows], weights.decided[rows]),
        )

    def shares_by(self, weights: Weights, at: int) -> dict[str, float]:
        """Failures of each category per attempt of one deployment, by other weights."""
        counts = self._counts[at]
        shares = counts[counts > 0] @ weights.matrix / self._n[at]
        return dict(zip(weights.names, shares.tolist(), strict=True))
