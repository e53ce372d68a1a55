"""Failed episodes of a side into a side of the ledger, with the rows that stand behind each category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.statistics.causes import ledger
from gapwatch.statistics.causes.attribution import (
    FailedEpisode,
    Level,
    UsualRange,
    attribute,
)
from gapwatch.statistics.causes.label_balance import even_out
from gapwatch.statistics.causes.weighing import (
    CONTRACT_SIGNAL,
    FailedBatch,
    Weights,
    ledger_side,
    usual_ranges,
    weigh,
)
from gapwatch.statistics.estimates.sketches import Sketch, bin_index
from gapwatch.store.read.sides import FailedRows, Signature
from gapwatch.taxonomy import Taxonomy

Suspects = Collection[tuple[str, Level]]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """What the record is held against: the project's words, what is usual in sim, and where real fails more.

    `differing`: in how many fields the contract of the real side differs from that of sim.
    """

    taxonomy: Taxonomy
    usual: Mapping[str, UsualRange]
    suspects: Suspects
    differing: int = 0


@dataclass(frozen=True)
class Behind:
    """One failed episode behind a category, with its share and the sentences that say why."""

    id: str
    weight: float
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Weighed:
    """`rows` are the episodes that were read, `counts` how many failures each stands for, and after those the
    failures of which none was read; `side` is what the ledger takes."""

    side: ledger.LedgerSide
    rows: FailedRows
    counts: Array
    weights: Weights
    contract: Mapping[str, float]

    def episodes_of(self, category: str) -> int:
        """How many failed episodes carry some weight of it."""
        return round(float(self.counts[self.weights.of(category) > 0].sum()))

    def behind(self, category: str, evidence: Evidence, most: int) -> tuple[Behind, ...]:
        """The episodes with the largest share first, the newest of equals first."""
        shares = self.weights.of(category)[: len(self.rows)]
        named = np.flatnonzero(shares > 0)
        # Rows are the newest first, and the sort leaves equals in their order.
        order = named[np.argsort(-shares[named], kind="stable")].tolist()
        found = []
        for place in order[:most]:
            record = self._record(place, _names(evidence))
            lines = attribute(record, evidence.taxonomy, evidence.usual, evidence.suspects).evidence
            why = tuple(_worded(line.sentence, evidence) for line in lines if category in line.categories)
            found.append(Behind(self.rows.ids[place], float(shares[place]), why))
        return tuple(found)

    def _record(self, row: int, conditions: Collection[str]) -> FailedEpisode:
        said = self.rows.signatures[self.rows.said[row]]
        return FailedEpisode(
            said.category,
            said.labels,
            said.phase,
            {**self.rows.signals_of(row), **self.contract},
            {name: self.rows.levels(name)[row] for name in conditions},
        )


def usual_of(sim: ComparisonSide, real: ComparisonSide, differing: int) -> dict[str, UsualRange]:
    """What each signal is like in sim successes, and how far values outside can be blamed.

    A contract that differs is a signal as well: 0 in every sim episode, the number of differing fields in real.
    """
    sketches: list[dict[str, Sketch]] = []
    for half in (sim, real):
        for outcome, count in (("success", half.successes), ("failure", half.failures)):
            found = _sketches(half, outcome)
            if differing:
                of_side = Sketch(zero=count) if half is sim else Sketch({bin_index(differing): count})
                found = found | {CONTRACT_SIGNAL: of_side}
            sketches.append(found)
    sim_successes, sim_failures, real_successes, real_failures = sketches
    return usual_ranges(
        sim_successes,
        sim_failures=sim_failures,
        real_successes=real_successes,
        real_failures=real_failures,
    )


def weigh_sides(
    sim: ComparisonSide, real: ComparisonSide, evidence: Evidence
) -> tuple[Weighed, Weighed, str | None]:
    """Both sides, as if they were labelled alike, and the side that had to be evened out for that."""
    read = [_read(half, evidence) for half in (sim, real)]
    plain = [weigh(batch, evidence.taxonomy, evidence.usual, evidence.suspects) for batch in read]
    in_sim, in_real, evened = even_out(read[0], plain[0], read[1], plain[1])
    return _weighed(sim, read[0], in_sim, evidence), _weighed(real, read[1], in_real, evidence), evened


def _read(half: ComparisonSide, evidence: Evidence) -> FailedBatch:
    """The failures of a side as the evidence takes them."""
    rows = half.failed
    said = [rows.signatures[place] for place in rows.said.tolist()]
    conditions: dict[str, list[Level]] = {name: [*rows.levels(name)] for name in _names(evidence)}
    signals = rows.signals | {name: np.full(len(rows), value) for name, value in _contract(half, evidence).items()}
    counts, sessions = _counts(half), [*rows.sessions]
    if len(rows) < half.failures:
        unread, more = _unread(half)
        said += unread
        counts = np.concatenate([counts, more])
        sessions += [None] * len(unread)
        conditions = {name: [*levels, *[None] * len(unread)] for name, levels in conditions.items()}
        nothing = np.full(len(unread), np.nan)
        signals = {name: np.concatenate([column, nothing]) for name, column in signals.items()}
    return FailedBatch(
        counts,
        [one.category for one in said],
        [one.labels for one in said],
        [one.phase for one in said],
        conditions,
        signals,
        sessions,
    )


def _names(evidence: Evidence) -> set[str]:
    return {name for name, _ in evidence.suspects}


def _contract(half: ComparisonSide, evidence: Evidence) -> dict[str, float]:
    """In how many fields an episode's contract differs, as the signal that it is; none where no field does."""
    differing = evidence.differing if half.scope.domain == "real" else 0
    return {CONTRACT_SIGNAL: float(differing)} if evidence.differing else {}


def _weighed(half: ComparisonSide, batch: FailedBatch, weights: Weights, evidence: Evidence) -> Weighed:
    side = ledger_side(half.n, half.failures, batch, weights, _sittings(half))
    return Weighed(side, half.failed, batch.counts, weights, _contract(half, evidence))


def _counts(half: ComparisonSide) -> Array:
    """How many failures each row stands for, so that they add up to the failures of the cells.

    Where not all failures were read, what was said of all of them (phase, labels, category) is known exactly from
    the rollups: rows of one signature share its count. What signals say of them is then a sample.
    """
    rows = half.failed
    if len(rows) >= half.failures:
        return np.asarray(rows.stands_for * half.failures / rows.stands_for.sum())
    stated = _said_of_all(half)
    scale = half.failures / max(1, stated.total())
    each = np.bincount(rows.said, minlength=len(rows.signatures))
    shares = [stated[one] * scale / max(1, n) for one, n in zip(rows.signatures, each.tolist(), strict=True)]
    return np.array(shares)[rows.said]


def _said_of_all(half: ComparisonSide) -> Counter[Signature]:
    stated: Counter[Signature] = Counter()
    for count in half.failure_counts:
        stated[count.signature] += count.failures
    return stated


def _unread(half: ComparisonSide) -> tuple[list[Signature], list[float]]:
    """What was said of failures of which no such was read, and of how many."""
    stated = _said_of_all(half)
    scale = half.failures / max(1, stated.total())
    read = {*half.failed.signatures}
    found = {one: n * scale for one, n in stated.items() if one not in read}
    return list(found), list(found.values())


def _sittings(half: ComparisonSide) -> dict[str, tuple[int, int]]:
    """Episodes and failures of each session, for intervals that know of sittings.

    Only where every failure was read: a row that stands for ten would put ten failures into one sitting.
    """
    if len(half.failed) < half.failures:
        return {}
    merged: dict[str, tuple[int, int]] = {}
    for session in half.sessions:
        episodes, failures = merged.get(session.session, (0, 0))
        merged[session.session] = (
            episodes + session.successes + session.failures,
            failures + session.failures,
        )
    return merged


def _worded(sentence: str, evidence: Evidence) -> str:
    if not sentence.startswith(f"signal {CONTRACT_SIGNAL} "):
        return sentence
    return f"the contract differs in {evidence.differing} {'field' if evidence.differing == 1 else 'fields'}"


def _sketches(half: ComparisonSide, outcome: str) -> dict[str, Sketch]:
    return {
        name: rollup.sketch
        for name, outcomes in half.signals.items()
        for found, rollup in outcomes.items()
        if found == outcome
    }
