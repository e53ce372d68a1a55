"""The failed episodes of a side into weights over gap categories, all at once, and into a side of the ledger.

The rules are those of `attribution.attribute`, row by row to the last bit; only sentences are left to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapwatch.statistics.attribution import (
    DEFAULT_STRENGTHS,
    FEWEST_SUCCESSES,
    PARTS,
    UNIT,
    FailedEpisode,
    Level,
    Strengths,
    UsualRange,
)
from gapwatch.statistics.blame import Outcomes, blame
from gapwatch.statistics.ledger import Session, Side
from gapwatch.statistics.signals import shape_of
from gapwatch.statistics.sketches import Sketch
from gapwatch.taxonomy import CATEGORIES, UNATTRIBUTED, Taxonomy

Array = NDArray[np.float64]
Units = NDArray[np.int64]
QUANTILES = (0.01, 0.5, 0.99)
# What two sides must agree on is evidence, too: as a signal of this name, in how many fields an episode's contract
# differs from that of the baseline, 0 for sim episodes themselves. The taxonomy knows it as interface_contract.
CONTRACT_SIGNAL = "contract_fields_differing"


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

    The last column is `unattributed`. A category that only a person named stands before it.
    """

    names: tuple[str, ...]
    parts: Units

    @property
    def matrix(self) -> Array:
        return self.parts / PARTS

    def of(self, category: str) -> Array:
        """One category's weight in each row; what no row names is 0 everywhere."""
        if category not in self.names:
            return np.zeros(len(self.parts))
        return np.asarray(self.parts[:, self.names.index(category)] / PARTS)


def batch_of(
    episodes: Sequence[FailedEpisode], counts: Sequence[float] | None = None, sessions: Sequence[str | None] = ()
) -> FailedBatch:
    """The columns of some records; a condition or signal that an episode lacks is None or NaN in its row."""
    size = len(episodes)
    conditions: dict[str, list[Level]] = {}
    signals: dict[str, Array] = {}
    for row, episode in enumerate(episodes):
        for name, level in (episode.conditions or {}).items():
            conditions.setdefault(name, [None] * size)[row] = level
        for name, value in (episode.signals or {}).items():
            if name not in signals:
                signals[name] = np.full(size, np.nan)
            signals[name][row] = value
    return FailedBatch(
        np.ones(size) if counts is None else np.asarray(counts, dtype=float),
        [e.category for e in episodes],
        [e.labels for e in episodes],
        [e.phase for e in episodes],
        conditions,
        signals,
        sessions,
    )


def usual_ranges(
    sim_successes: Mapping[str, Sketch | ArrayLike],
    *,
    sim_failures: Mapping[str, Sketch | ArrayLike] | None = None,
    real_successes: Mapping[str, Sketch | ArrayLike] | None = None,
    real_failures: Mapping[str, Sketch | ArrayLike] | None = None,
) -> dict[str, UsualRange]:
    """Each signal's 1 %, 50 % and 99 % quantiles over sim successes, from a sketch or from numbers.

    With the other three, unusual values have the credit of `blame.blame`; without them, all credit. Signals of
    fewer than 50 sim successes are left out: so few do not show what is usual.
    """
    ranges = {}
    for name, data in sim_successes.items():
        shape = shape_of(data)
        if shape.n < FEWEST_SUCCESSES:
            continue
        places = np.searchsorted(np.cumsum(shape.counts), np.floor(np.array(QUANTILES) * (shape.n - 1)), "right")
        low, median, high = (float(shape.values[place]) for place in places)
        if sim_failures is None or real_successes is None or real_failures is None:
            ranges[name] = UsualRange(low, median, high, int(shape.n))
            continue
        sim = Outcomes(shape, shape_of(sim_failures.get(name, ())))
        real = Outcomes(shape_of(real_successes.get(name, ())), shape_of(real_failures.get(name, ())))
        above, below = (blame(low, median, high, sim, real, side) for side in ("above", "below"))
        ranges[name] = UsualRange(low, median, high, int(shape.n), above=above, below=below)
    return ranges


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
    labelled = _add_labels(claims, batch, taxonomy, column, strengths.label)
    free: list[int] = np.flatnonzero(~labelled).tolist()
    if free:
        claims[free] = _seen(batch, free, taxonomy, column, usual or {}, suspects, strengths)
    parts = _whole_parts(claims, names)
    for row, category in enumerate(batch.category):
        if category is not None:
            parts[row] = 0
            parts[row, column[category]] = PARTS
    return Weights(names, parts)


def ledger_side(
    n: int,
    failures: int,
    batch: FailedBatch,
    weights: Weights,
    sessions: Mapping[str, tuple[int, int]] | None = None,
) -> Side:
    """One side of the ledger: Σw and Σw² of every category with weight, over `n` episodes with `failures` failed.

    `sessions`: session → (episodes, failures), for intervals that know of sittings; the batch must name the
    session of each row. What the rows leave of `failures` is unattributed.
    Where rows are a sample, `counts` = failures / rows keeps the totals right.
    """
    matrix = weights.matrix
    totals, squares = batch.counts @ matrix, batch.counts @ matrix**2
    kept = [i for i, name in enumerate(weights.names) if totals[i] > 0 and name != UNATTRIBUTED]
    parts: list[Session] = []
    if sessions and batch.sessions:
        rows: dict[str, list[int]] = {}
        for row, session in enumerate(batch.sessions):
            if session is not None:
                rows.setdefault(session, []).append(row)
        for session, (episodes, failed) in sessions.items():
            own = rows.get(session, [])
            sums = batch.counts[own] @ matrix[own]
            parts.append(
                Session(episodes, failed, {weights.names[i]: float(sums[i]) for i in kept if sums[i] > 0})
            )
    last = len(weights.names) - 1
    return Side(
        n,
        failures,
        {weights.names[i]: float(totals[i]) for i in kept},
        {weights.names[i]: float(squares[i]) for i in (*kept, last)},
        tuple(parts),
    )


def _add_labels(
    claims: Units, batch: FailedBatch, taxonomy: Taxonomy, column: Mapping[str, int], strength: float
) -> NDArray[np.bool_]:
    """Returns which rows are decided by a label or by a person."""
    decided = np.zeros(len(batch), dtype=bool)
    known: dict[tuple[str, ...], Units | None] = {}
    for row, labels in enumerate(batch.labels):
        if batch.category[row] is not None:
            decided[row] = True
        elif labels:
            key = tuple(labels)
            if key not in known:
                known[key] = _label_claims(key, taxonomy, column, strength)
            found = known[key]
            if found is not None:
                decided[row] = True
                claims[row] = found
    return decided


def _label_claims(
    labels: tuple[str, ...], taxonomy: Taxonomy, column: Mapping[str, int], strength: float
) -> Units | None:
    found = [c for label in dict.fromkeys(labels) if (c := taxonomy.categories_of("labels", label))]
    if not found:
        return None
    claims = np.zeros(len(column), dtype=np.int64)
    for categories in found:
        for category in categories:
            claims[column[category]] += int(UNIT * strength) // len(found) // len(categories)
    return claims


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
    left = UNIT - _add_signals(claims, signals, taxonomy, column, usual, int(UNIT * strengths.signal))
    names = dict.fromkeys(name for name, _ in suspects if name in batch.conditions)
    levels = {name: [batch.conditions[name][row] for row in rows] for name in names}
    most = (left * strengths.condition).astype(np.int64)
    left = left - _add_conditions(claims, levels, taxonomy, column, suspects, most)
    most = (left * strengths.phase).astype(np.int64)
    _add_phases(claims, [batch.phase[row] for row in rows], taxonomy, column, most)
    return claims


def _add_signals(
    claims: Units,
    signals: Mapping[str, Array],
    taxonomy: Taxonomy,
    column: Mapping[str, int],
    usual: Mapping[str, UsualRange],
    most: int,
) -> Units:
    """The farthest signal of a set of categories speaks for it; together they claim as much as the farthest.

    Symptoms share what causes leave. Returns what was claimed.
    """
    claimed = np.zeros(len(claims), dtype=np.int64)
    left = np.full(len(claims), most, dtype=np.int64)
    for is_symptom in (False, True):
        farthest: dict[tuple[str, ...], Units] = {}
        for name, values in signals.items():
            found = taxonomy.categories_of("signals", name)
            if found and taxonomy.is_symptom(name) is is_symptom:
                far = far_out(values, usual[name])
                farthest[found] = np.maximum(farthest[found], far) if found in farthest else far
        if not farthest:
            continue
        stack = np.array(list(farthest.values()))
        total = np.maximum(stack.sum(axis=0), 1)
        together = left * stack.max(axis=0) // UNIT
        for found, far in farthest.items():
            claim = together * far // total
            claimed += claim
            for category in found:
                claims[:, column[category]] += claim // len(found)
        left = left - together
    return claimed


def far_out(values: Array, usual: UsualRange) -> Units:
    """`attribution.unusual` of every value, in units; 0 inside the usual range and where there is no value."""
    far = np.zeros(len(values), dtype=np.int64)
    if usual.n < FEWEST_SUCCESSES:
        return far
    there = np.isfinite(values)
    x = np.where(there, values, usual.median)
    for limit, beyond, credit in (
        (usual.low, usual.low - x, usual.below),
        (usual.high, x - usual.high, usual.above),
    ):
        outside = beyond > 1e-9 * np.maximum(abs(limit), np.abs(x))
        room = abs(limit - usual.median)
        degree = np.minimum(1.0, 2 * beyond / room) if room > 0 else np.ones(len(x))
        far = np.where(outside & there, (UNIT * (degree * credit)).astype(np.int64), far)
    return far


def _add_conditions(
    claims: Units,
    levels: Mapping[str, Sequence[Level]],
    taxonomy: Taxonomy,
    column: Mapping[str, int],
    suspects: Collection[tuple[str, Level]],
    most: Units,
) -> Units:
    """Suspect levels share `most` equally. Returns what was claimed."""
    hits: list[tuple[tuple[str, ...], NDArray[np.bool_]]] = []
    for name, own in levels.items():
        found = taxonomy.categories_of("conditions", name)
        if found:
            hits.append((found, np.array([(name, level) in suspects for level in own], dtype=bool)))
    if not hits:
        return np.zeros(len(claims), dtype=np.int64)
    count = np.sum([hit for _, hit in hits], axis=0, dtype=np.int64)
    each = most // np.maximum(count, 1)
    for found, hit in hits:
        for category in found:
            claims[hit, column[category]] += each[hit] // len(found)
    return np.asarray(each * count)


def _add_phases(
    claims: Units, phases: Sequence[str | None], taxonomy: Taxonomy, column: Mapping[str, int], most: Units
) -> None:
    rows: dict[str, list[int]] = {}
    for row, phase in enumerate(phases):
        if phase is not None:
            rows.setdefault(phase, []).append(row)
    for phase, own in rows.items():
        found = taxonomy.categories_of("phases", phase)
        for category in found:
            claims[own, column[category]] += most[own] // len(found)


def _whole_parts(claims: Units, names: tuple[str, ...]) -> Units:
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
