"""The category that leads each deployment's drop, by labels only: cheap enough for a whole fleet.

What a person or a label decided is weighed as in the ledger, sim taken away and sides that are labelled
differently evened out. A deployment's own page also weighs signals, conditions and phases. A category is named
here only where labels alone explain half of the drop: by less, that page would often name another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import numpy as np

from gapwatch.answers.failure_weights import signature_batch
from gapwatch.answers.fleet import FleetRow
from gapwatch.statistics.causes.failed_episodes import FailedBatch
from gapwatch.statistics.causes.label_balance import even_out, labelled_share
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
    since: datetime | None,
) -> dict[str, LeadingCategory]:
    """Of those whose drop is established; of others the words are not read."""
    lossy = [
        (deployment, row)
        for deployment, row in zip(known, rows, strict=True)
        if row.verdict in ("large", "small") and row.real.n and row.sim.n
    ]
    words = fleet.failure_words(connection, project_id, [deployment for deployment, _ in lossy], since)
    labelled = _LabelledFailures(words, taxonomy)
    leading = {}
    for deployment, row in lossy:
        runs = (deployment.policy_id, deployment.task_id)
        simulator_id = words.simulators.get((row.simulator, row.simulator_version), 0)
        real = labelled.side(row.real.n, ("real", deployment.id, *runs))
        # The fleet takes the whole baseline where no sim episode lies in the window, and so do its words.
        sim = labelled.side(row.sim.n, ("sim", simulator_id, *runs), ("sim of all time", simulator_id, *runs))
        first = _first(sim, real, LEAST_SHARE * (row.drop.value or 0.0))
        if first is not None:
            leading[row.slug] = first
    return leading


def _first(sim: LabelledSide, real: LabelledSide, least: float) -> LeadingCategory | None:
    """The category that real loses most by above sim, if it is at least so much."""
    # Evening out sim only raises what sim loses. Where that is too much already, it need not be done; over 1,000
    # deployments it would take 0.3 s.
    if sim.labelled <= real.labelled and _largest(sim, real).contribution < least:
        return None
    of_sim, of_real, _ = even_out(sim.batch, sim.weights, real.batch, real.weights)
    first = _largest(replace(sim, weights=of_sim), replace(real, weights=of_real))
    return first if first.contribution >= least else None


def _largest(sim: LabelledSide, real: LabelledSide) -> LeadingCategory:
    in_sim, in_real = sim.shares(), real.shares()
    excess = {name: share - in_sim.get(name, 0.0) for name, share in in_real.items() if name != UNATTRIBUTED}
    name = max(sorted(excess), key=lambda name: excess[name])
    return LeadingCategory(name, excess[name])


@dataclass(frozen=True)
class LabelledSide:
    """The failures of one side by what was said of them, of `n` attempts."""

    batch: FailedBatch
    weights: Weights
    n: int

    @property
    def labelled(self) -> float:
        return labelled_share(self.batch, self.weights)

    def shares(self) -> dict[str, float]:
        """Failures of each category per attempt."""
        totals = self.batch.counts @ self.weights.matrix / self.n
        return dict(zip(self.weights.names, totals.tolist(), strict=True))


class _LabelledFailures:
    """The failures of each deployment and baseline. All signatures are weighed at once: many share them."""

    def __init__(self, words: FailureWords, taxonomy: Taxonomy) -> None:
        signatures = list(words.signatures.values())
        self._batch = signature_batch(dict.fromkeys(signatures, 1.0))
        self._weights = weigh(self._batch, taxonomy, strengths=LABELS_ONLY)
        row_of = {signature: row for row, signature in enumerate(dict.fromkeys(signatures))}
        self._counts: dict[WordKey, dict[int, float]] = {}
        for key, signature_id, failures in words.counts:
            counts = self._counts.setdefault(key, {})
            row = row_of[words.signatures[signature_id]]
            counts[row] = counts.get(row, 0.0) + failures

    def side(self, n: int, *keys: WordKey) -> LabelledSide:
        """Of the first key that has failures."""
        counts: Mapping[int, float] = next((self._counts[key] for key in keys if key in self._counts), {})
        rows = list(counts)
        batch = FailedBatch(
            np.array([*counts.values()], dtype=float),
            [self._batch.category[row] for row in rows],
            [self._batch.labels[row] for row in rows],
            [self._batch.phase[row] for row in rows],
        )
        weights = Weights(self._weights.names, self._weights.parts[rows], self._weights.decided[rows])
        return LabelledSide(batch, weights, n)
