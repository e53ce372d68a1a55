"""Failed episodes of both sides weighed over gap categories: once, for the ledger, the groups and the lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import Sides
from gapwatch.answers.slices import suspects_of
from gapwatch.statistics.causes.evidence_sentences import EvidenceSentence, evidence_sentences
from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch, FailedEpisode, Level
from gapwatch.statistics.causes.label_balance import LabelBalance, balance_weights, compare_labelling
from gapwatch.statistics.causes.ledger import LedgerSide
from gapwatch.statistics.causes.signal_ranges import CONTRACT_SIGNAL, UsualRange, usual_ranges
from gapwatch.statistics.causes.weighing import LABELS_ONLY, Weights, ledger_side, weigh
from gapwatch.statistics.estimates.sketches import Sketch, bin_index
from gapwatch.store.read.sides import Domain, FailedRows, FailureCount, Signature
from gapwatch.taxonomy import Taxonomy

NEEDS = Need.CELLS | Need.CONTRACTS | Need.SESSIONS | Need.FAILURE_COUNTS | Need.FAILED_EPISODES | Need.SIGNALS


@dataclass(frozen=True)
class EvidenceBasis:
    """What failures are weighed with: the project's words, what is usual in sim, and where real fails more.

    `differing`: in how many fields the contract of the real side differs from that of sim. `balance`: what the
    side that is labelled far less is evened out with.
    """

    taxonomy: Taxonomy
    usual: Mapping[str, UsualRange] = field(default_factory=dict)
    suspects: Collection[tuple[str, Level]] = ()
    differing: int = 0
    balance: LabelBalance | None = None

    @property
    def conditions(self) -> set[str]:
        """The conditions that have a suspect level."""
        return {name for name, _ in self.suspects}

    def contract_signal(self, domain: str) -> dict[str, float]:
        """In how many fields an episode's contract differs, as the signal that it is; none where no field does."""
        if not self.differing:
            return {}
        return {CONTRACT_SIGNAL: float(self.differing) if domain == "real" else 0.0}

    def weigh(self, batch: FailedBatch, domain: str) -> Weights:
        """The weights of failures of a side, as if both sides were labelled alike."""
        weights = weigh(batch, self.taxonomy, self.usual, self.suspects)
        balance = self._balance_of(domain)
        return weights if balance is None else balance_weights(batch, weights, balance)

    def sentences(
        self, episode: FailedEpisode, weights: Mapping[str, float], domain: str
    ) -> tuple[EvidenceSentence, ...]:
        """Why one failure of a side has these weights."""
        return evidence_sentences(
            episode, weights, self.taxonomy, self.usual, self.suspects, self._balance_of(domain)
        )

    def _balance_of(self, domain: str) -> LabelBalance | None:
        return self.balance if self.balance is not None and self.balance.side == domain else None


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

    domain: str
    rows: FailedRows
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
            {**self.rows.signals_of(row), **basis.contract_signal(self.domain)},
            {name: self.rows.levels(name)[row] for name in basis.conditions},
        )
        sentences = basis.sentences(episode, self.weights.row(row), self.domain)
        return tuple(sentence.text for sentence in sentences if category in sentence.categories)


@dataclass(frozen=True)
class WeighedSides:
    basis: EvidenceBasis
    sim: WeighedSide
    real: WeighedSide


def weigh_sides(sides: Sides) -> WeighedSides:
    """The failures of both sides over the categories, for every answer that shows them."""
    basis = basis_of(sides)
    return WeighedSides(basis, _weighed(sides.sim, basis), _weighed(sides.real, basis))


def basis_of(sides: Sides) -> EvidenceBasis:
    sim, real = sides.sim, sides.real
    differing = sides.contract.differing
    return EvidenceBasis(
        sides.taxonomy,
        _signal_ranges(sim, real, differing),
        suspects_of(sides),
        differing,
        _label_balance(sim.failure_counts, real.failure_counts, sides.taxonomy),
    )


def signature_batch(counts: Mapping[Signature, float]) -> FailedBatch:
    """What was said of failures as rows, without their signals and conditions."""
    return FailedBatch(
        np.array([*counts.values()], dtype=float),
        [signature.category for signature in counts],
        [signature.labels for signature in counts],
        [signature.phase for signature in counts],
    )


def _label_balance(
    sim: Iterable[FailureCount], real: Iterable[FailureCount], taxonomy: Taxonomy
) -> LabelBalance | None:
    """From what was said of all failures, so that a single episode is evened out as the ledger's rows are."""
    in_sim, in_real = (signature_batch(_by_signature(counts)) for counts in (sim, real))
    of_sim, of_real = (weigh(batch, taxonomy, strengths=LABELS_ONLY) for batch in (in_sim, in_real))
    return compare_labelling(in_sim, of_sim, in_real, of_real)


def _signal_ranges(sim: ComparisonSide, real: ComparisonSide, differing: int) -> dict[str, UsualRange]:
    """What each signal is like in sim successes, and how far values outside can be blamed.

    A contract that differs is a signal as well: 0 in every sim episode, the number of differing fields in real.
    """
    sketches: list[dict[str, Sketch]] = []
    for side in (sim, real):
        for outcome, count in (("success", side.successes), ("failure", side.failures)):
            of_side = _sketches(side, outcome)
            if differing:
                of_contract = Sketch(zero=count) if side is sim else Sketch({bin_index(differing): count})
                of_side = of_side | {CONTRACT_SIGNAL: of_contract}
            sketches.append(of_side)
    sim_successes, sim_failures, real_successes, real_failures = sketches
    return usual_ranges(
        sim_successes,
        sim_failures=sim_failures,
        real_successes=real_successes,
        real_failures=real_failures,
    )


def _weighed(side: ComparisonSide, basis: EvidenceBasis) -> WeighedSide:
    domain: Domain = side.role
    rows = side.failed
    signatures = [rows.signatures[index] for index in rows.signature_index.tolist()]
    conditions: dict[str, list[Level]] = {name: [*rows.levels(name)] for name in basis.conditions}
    signals = rows.signals | {
        name: np.full(len(rows), value) for name, value in basis.contract_signal(domain).items()
    }
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
    totals = ledger_side(side.n, side.failures, batch, weights, _sittings(side))
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


def _sittings(side: ComparisonSide) -> dict[str, tuple[int, int]]:
    """Episodes and failures of each session, for intervals that know of sittings.

    Only where every failure was read: a row that stands for ten would put ten failures into one sitting.
    """
    if len(side.failed) < side.failures:
        return {}
    merged: dict[str, tuple[int, int]] = {}
    for session in side.sessions:
        episodes, failures = merged.get(session.session, (0, 0))
        merged[session.session] = (
            episodes + session.successes + session.failures,
            failures + session.failures,
        )
    return merged


def _sketches(side: ComparisonSide, outcome: str) -> dict[str, Sketch]:
    return {
        name: rollup.sketch
        for name, outcomes in side.signals.items()
        for seen, rollup in outcomes.items()
        if seen == outcome
    }
