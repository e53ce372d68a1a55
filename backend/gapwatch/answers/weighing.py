"""Failed episodes of a side into a side of the ledger, with the rows that stand behind each category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapwatch.answers.half import Half
from gapwatch.statistics import ledger
from gapwatch.statistics.attribution import FailedEpisode, Level, UsualRange, attribute
from gapwatch.statistics.evidence import (
    CONTRACT_SIGNAL,
    FailedBatch,
    Weights,
    batch_of,
    ledger_side,
    usual_ranges,
    weigh,
)
from gapwatch.statistics.labelling import even_out
from gapwatch.statistics.sketches import Sketch, bin_index
from gapwatch.store.sides import FailedRow
from gapwatch.taxonomy import Taxonomy

Suspects = Collection[tuple[str, Level]]


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
    """`rows` are the episodes that were read, `records` what they say, and `side` what the ledger takes."""

    side: ledger.Side
    rows: Sequence[FailedRow]
    records: Sequence[FailedEpisode]
    counts: Sequence[float]
    weights: Weights

    def episodes_of(self, category: str) -> int:
        """How many failed episodes carry some weight of it."""
        return round(float(np.asarray(self.counts)[self.weights.of(category) > 0].sum()))

    def behind(self, category: str, evidence: Evidence, most: int) -> tuple[Behind, ...]:
        """The episodes with the largest share first, the newest of equals first."""
        shares = self.weights.of(category)[: len(self.rows)]
        named = np.flatnonzero(shares > 0).tolist()
        order = sorted(named, key=lambda i: (-shares[i], -self.rows[i].started_at.timestamp()))
        found = []
        for place in order[:most]:
            lines = attribute(self.records[place], evidence.taxonomy, evidence.usual, evidence.suspects).evidence
            why = tuple(_worded(line.sentence, evidence) for line in lines if category in line.categories)
            found.append(Behind(self.rows[place].id, float(shares[place]), why))
        return tuple(found)


def usual_of(sim: Half, real: Half, differing: int) -> dict[str, UsualRange]:
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


def weigh_sides(sim: Half, real: Half, evidence: Evidence) -> tuple[Weighed, Weighed, str | None]:
    """Both sides, as if they were labelled alike, and the side that had to be evened out for that."""
    read = [_read(half, evidence) for half in (sim, real)]
    plain = [weigh(one.batch, evidence.taxonomy, evidence.usual, evidence.suspects) for one in read]
    in_sim, in_real, evened = even_out(read[0].batch, plain[0], read[1].batch, plain[1])
    return _weighed(sim, read[0], in_sim), _weighed(real, read[1], in_real), evened


@dataclass(frozen=True)
class _Read:
    """The failures of a side as the evidence takes them."""

    records: Sequence[FailedEpisode]
    counts: Sequence[float]
    batch: FailedBatch


def _read(half: Half, evidence: Evidence) -> _Read:
    rows, counts = half.failed, _counts(half)
    names = {name for name, _ in evidence.suspects}
    contract = evidence.differing if half.scope.domain == "real" else 0
    beside = {CONTRACT_SIGNAL: float(contract)} if evidence.differing else {}
    records = [
        FailedEpisode(
            row.signature.category,
            row.signature.labels,
            row.signature.phase,
            {**row.signals, **beside} if beside else row.signals,
            {name: row.level(name) for name in names},
        )
        for row in rows
    ]
    sessions: list[str | None] = [row.session for row in rows]
    if len(rows) < half.failures:
        unread, more = _unread(half)
        records, counts = [*records, *unread], [*counts, *more]
        sessions += [None] * len(unread)
    return _Read(records, counts, batch_of(records, counts, sessions))


def _weighed(half: Half, read: _Read, weights: Weights) -> Weighed:
    side = ledger_side(half.n, half.failures, read.batch, weights, _sittings(half))
    return Weighed(side, half.failed, read.records, read.counts, weights)


def _counts(half: Half) -> list[float]:
    """How many failures each row stands for, so that they add up to the failures of the cells.

    Where not all failures were read, what was said of all of them (phase, labels, category) is known exactly from
    the rollups: rows of one signature share its count. What signals say of them is then a sample.
    """
    rows = half.failed
    if len(rows) >= half.failures:
        total = sum(row.stands_for for row in rows)
        return [row.stands_for * half.failures / total for row in rows]
    read = Counter(row.signature for row in rows)
    said: Counter[object] = Counter()
    for count in half.failure_counts:
        said[count.signature] += count.failures
    scale = half.failures / max(1, said.total())
    return [said[row.signature] * scale / read[row.signature] for row in rows]


def _unread(half: Half) -> tuple[list[FailedEpisode], list[float]]:
    """One record a signature of which no episode was read."""
    read = {row.signature for row in half.failed}
    said: dict[FailedEpisode, float] = {}
    scale = half.failures / max(1, sum(count.failures for count in half.failure_counts))
    for count in half.failure_counts:
        if count.signature not in read:
            record = FailedEpisode(count.signature.category, count.signature.labels, count.signature.phase)
            said[record] = said.get(record, 0.0) + count.failures * scale
    return list(said), list(said.values())


def _sittings(half: Half) -> dict[str, tuple[int, int]]:
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


def _sketches(half: Half, outcome: str) -> dict[str, Sketch]:
    return {
        name: rollup.sketch
        for name, outcomes in half.signals.items()
        for found, rollup in outcomes.items()
        if found == outcome
    }
