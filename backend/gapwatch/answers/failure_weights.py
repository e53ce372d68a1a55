"""Failed episodes of both sides weighed over gap categories: once, for the ledger, the groups and the lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import Sides
from gapwatch.statistics.causes.cause_candidates import CONTRACT_SIGNAL
from gapwatch.statistics.causes.evidence_sentences import EvidenceSentence, evidence_sentences, word_sentences
from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch, FailedEpisode, Level
from gapwatch.statistics.causes.failure_model import FittedModel
from gapwatch.statistics.causes.ledger import LedgerSide
from gapwatch.statistics.causes.responsibility import Responsibility, find_responsibility, weigh_failures
from gapwatch.statistics.causes.side_sample import SideSample, SuccessBatch
from gapwatch.statistics.causes.term_facts import TermFact, term_facts
from gapwatch.statistics.causes.weighing import Weights, ledger_side, weigh
from gapwatch.statistics.causes.weight_uncertainty import Uncertainty, weight_uncertainties
from gapwatch.store.read.sides import Domain, FailureCount, SampledRows, Signature
from gapwatch.taxonomy import Taxonomy

NEEDS = Need.CELLS | Need.CONTRACTS | Need.SESSIONS | Need.FAILURE_COUNTS | Need.FAILED_EPISODES | Need.DAYS
# More conditions than a model can tell apart with the episodes that are read.
MOST_CONDITIONS = 24


def _none_differs(_: Mapping[str, Any] | None) -> int:
    return 0


@dataclass(frozen=True)
class EvidenceBasis:
    """What failures are weighed with: the project's words, and what a model fitted on both sides says.

    `differing`: in how many fields each real contract differs from that of sim, by its number; empty where none
    does. `fields_differing` says the same of a contract itself. Without `responsibility` there is nothing to
    compare with, and words alone are weighed.
    """

    taxonomy: Taxonomy
    responsibility: Responsibility | None = None
    facts: tuple[TermFact, ...] = ()
    conditions: tuple[str, ...] = ()
    differing: Mapping[int, int] = field(default_factory=dict)
    fields_differing: Callable[[Mapping[str, Any] | None], int] = _none_differs

    def contract_signal(self, domain: str, fields: int) -> dict[str, float]:
        """In how many fields an episode's contract differs, as the signal that it is; none where no field does."""
        return {CONTRACT_SIGNAL: float(fields) if domain == "real" else 0.0} if self.differing else {}

    def contract_signals(self, domain: str, contracts: Sequence[int]) -> dict[str, Array]:
        """The same of many episodes, by the numbers of their contracts."""
        if not self.differing:
            return {}
        is_real = domain == "real"
        return {
            CONTRACT_SIGNAL: np.array([self.differing.get(one, 0) * is_real for one in contracts], dtype=float)
        }

    def weigh(self, batch: FailedBatch, domain: Domain) -> Weights:
        """The weights of failures of a side."""
        if self.responsibility is None:
            return weigh(batch, self.taxonomy)
        return weigh_failures(self.responsibility, batch, domain)

    def sentences(
        self, episode: FailedEpisode, weights: Mapping[str, float], domain: Domain
    ) -> tuple[EvidenceSentence, ...]:
        """Why one failure of a side has these weights."""
        if self.responsibility is None:
            return word_sentences(episode, weights, self.taxonomy)
        return evidence_sentences(episode, weights, domain, self.responsibility, self.facts)


@dataclass(frozen=True)
class CategoryEpisode:
    """One failed episode that carries weight of a category, and the sentences that say why."""

    id: str
    weight: float
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class WeighedSide:
    """`rows` are the episodes that were read. `batch` has those first, then what was said of failures of which no
    such was read; `signatures` and `weights` stand beside it, and `totals` is what the ledger takes.
    """

    domain: Domain
    rows: SampledRows
    signatures: Sequence[Signature]
    batch: FailedBatch
    weights: Weights
    totals: LedgerSide

    def episodes_of(self, category: str) -> int:
        """How many failed episodes carry some weight of it."""
        return round(float(self.batch.counts[self.weights.of(category) > 0].sum()))

    def heaviest(self, category: str, basis: EvidenceBasis, most: int) -> tuple[CategoryEpisode, ...]:
        """The episodes with the largest share first, the newest of equals first."""
        shares = self.weights.of(category)[: len(self.rows)]
        named = np.flatnonzero(shares > 0)
        # Rows are the newest first, and the sort leaves equals in their order.
        order = named[np.argsort(-shares[named], kind="stable")].tolist()
        return tuple(
            CategoryEpisode(self.rows.ids[row], float(shares[row]), self._reasons(row, category, basis))
            for row in order[:most]
        )

    def failures_by_signature(self) -> dict[Signature, dict[str, float]]:
        """The failures of each signature over the categories; the same sums as the ledger's, only grouped."""
        rows_of: dict[Signature, list[int]] = {}
        for row, signature in enumerate(self.signatures):
            rows_of.setdefault(signature, []).append(row)
        matrix = self.weights.matrix
        return {
            signature: {
                name: total
                for name, total in zip(
                    self.weights.names, (self.batch.counts[rows] @ matrix[rows]).tolist(), strict=True
                )
                if total
            }
            for signature, rows in rows_of.items()
        }

    def _reasons(self, row: int, category: str, basis: EvidenceBasis) -> tuple[str, ...]:
        signature = self.signatures[row]
        episode = FailedEpisode(
            signature.category,
            signature.labels,
            signature.phase,
            {**self.rows.signals_of(row), **self._contract_signal(row, basis)},
            {name: self.rows.levels(name)[row] for name in basis.conditions},
        )
        sentences = basis.sentences(episode, self.weights.row(row), self.domain)
        return tuple(sentence.text for sentence in sentences if category in sentence.categories)

    def _contract_signal(self, row: int, basis: EvidenceBasis) -> dict[str, float]:
        return basis.contract_signal(self.domain, basis.differing.get(self.rows.contracts[row], 0))


@dataclass(frozen=True)
class WeighedSides:
    """Both sides weighed; `fitted` and `uncertainties` are of the model behind it, None and empty without one."""

    basis: EvidenceBasis
    sim: WeighedSide
    real: WeighedSide
    fitted: FittedModel | None
    uncertainties: Mapping[str, Uncertainty]


def weigh_sides(sides: Sides) -> WeighedSides:
    """The failures of both sides over the categories, for every answer that shows them."""
    basis, fitted, samples = _model(sides)
    sim, real = (_weighed(side, basis) for side in (sides.sim, sides.real))
    uncertainties: Mapping[str, Uncertainty] = {}
    if fitted is not None and basis.responsibility is not None:
        names = tuple(dict.fromkeys([*sim.weights.names[:-1], *real.weights.names]))
        uncertainties = weight_uncertainties(basis.responsibility, fitted, *samples, names)
    return WeighedSides(basis, sim, real, fitted, uncertainties)


def basis_of(sides: Sides) -> EvidenceBasis:
    return _model(sides)[0]


def _model(sides: Sides) -> tuple[EvidenceBasis, FittedModel | None, tuple[SideSample, SideSample]]:
    """Fit a model of failure on the episodes that were read of both sides."""
    differing, fields_differing = sides.contract.differing, sides.contract.fields_differing
    names = tuple(sorted(set.union(*sides.table.reported) - {*sides.pooled}))[:MOST_CONDITIONS]
    words = EvidenceBasis(sides.taxonomy, conditions=names, differing=differing, fields_differing=fields_differing)
    samples = (_sample(sides.sim, words, names), _sample(sides.real, words, names))
    if not sides.sim.n or not sides.real.n:
        return words, None, samples
    responsibility, fitted = find_responsibility(*samples, sides.taxonomy)
    facts = term_facts(fitted, *samples)
    return replace(words, responsibility=responsibility, facts=facts), fitted, samples


def _sample(side: ComparisonSide, basis: EvidenceBasis, names: Sequence[str]) -> SideSample:
    rows, others = side.failed, side.succeeded
    signatures = [rows.signatures[index] for index in rows.signature_index.tolist()]
    domain = side.role
    return SideSample(
        side.n,
        side.failures,
        FailedBatch(
            _counts(side),
            [signature.category for signature in signatures],
            [signature.labels for signature in signatures],
            [signature.phase for signature in signatures],
            {name: rows.levels(name) for name in names},
            rows.signals | basis.contract_signals(domain, rows.contracts),
            rows.sessions,
        ),
        SuccessBatch(
            len(others),
            {name: others.levels(name) for name in names},
            others.signals | basis.contract_signals(domain, others.contracts),
            others.sessions,
        ),
    )


def _weighed(side: ComparisonSide, basis: EvidenceBasis) -> WeighedSide:
    domain: Domain = side.role
    rows = side.failed
    signatures = [rows.signatures[index] for index in rows.signature_index.tolist()]
    conditions: dict[str, list[Level]] = {name: [*rows.levels(name)] for name in basis.conditions}
    signals = rows.signals | basis.contract_signals(domain, rows.contracts)
    counts, sessions = _counts(side), [*rows.sessions]
    if len(rows) < side.failures:
        unread = _unread(side)
        signatures += unread
        counts = np.concatenate([counts, [*unread.values()]])
        sessions += [None] * len(unread)
        conditions = {name: [*levels, *[None] * len(unread)] for name, levels in conditions.items()}
        nothing = np.full(len(unread), np.nan)
        signals = {name: np.concatenate([column, nothing]) for name, column in signals.items()}
    batch = FailedBatch(
        counts,
        [signature.category for signature in signatures],
        [signature.labels for signature in signatures],
        [signature.phase for signature in signatures],
        conditions,
        signals,
        sessions,
    )
    weights = basis.weigh(batch, domain)
    totals = ledger_side(side.n, side.failures, batch, weights)
    return WeighedSide(domain, rows, signatures, batch, weights, totals)


def _counts(side: ComparisonSide) -> Array:
    """How many failures each row stands for, so that they add up to the failures of the cells.

    Where not all failures were read, what was said of all of them (phase, labels, category) is known exactly from
    the rollups: rows of one signature share its count. What signals say of them is then a sample.
    """
    rows = side.failed
    if len(rows) >= side.failures:
        return np.asarray(rows.stands_for * side.failures / rows.stands_for.sum())
    stated = _by_signature(side.failure_counts)
    scale = side.failures / max(1, stated.total())
    read = np.bincount(rows.signature_index, minlength=len(rows.signatures)).tolist()
    shares = [stated[key] * scale / max(1, n) for key, n in zip(rows.signatures, read, strict=True)]
    return np.array(shares)[rows.signature_index]


def _by_signature(counts: Iterable[FailureCount]) -> Counter[Signature]:
    stated: Counter[Signature] = Counter()
    for count in counts:
        stated[count.signature] += count.failures
    return stated


def _unread(side: ComparisonSide) -> dict[Signature, float]:
    """What was said of failures of which no such was read, and of how many."""
    stated = _by_signature(side.failure_counts)
    scale = side.failures / max(1, stated.total())
    read = {*side.failed.signatures}
    return {signature: n * scale for signature, n in stated.items() if signature not in read}
