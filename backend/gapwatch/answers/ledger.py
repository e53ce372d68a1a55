"""Why it is lost: the success drop over gap categories, and the same drop as off-support, mix and rate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from gapwatch.answers.answer import Answer, Caution, Interval
from gapwatch.answers.failure_weights import (
    Behind,
    Evidence,
    Weighed,
    usual_of,
    weigh_sides,
)
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.answers.slices import suspects_of
from gapwatch.answers.strata import Strata, condition_strata, task_strata
from gapwatch.statistics.causes.decomposition import (
    Counts,
    Decomposition,
    decompose,
    part_intervals,
)
from gapwatch.statistics.causes.ledger import Entry, make_ledger
from gapwatch.statistics.causes.shapley import ConditionShares, shapley_over_conditions
from gapwatch.taxonomy import BY_ID, CATEGORIES, UNATTRIBUTED

NEEDS = (
    ANSWER_FIELDS
    | Need.CELLS
    | Need.SESSIONS
    | Need.FAILURE_COUNTS
    | Need.FAILED_EPISODES
    | Need.SIGNALS
    | Need.TASKS
)

MOST_LISTED = 5
MOST_NAMED = 50


@dataclass(frozen=True)
class EpisodesBehind:
    """How many real and sim failures carry weight of a category, and the real ones that carry most."""

    count: int
    sim_count: int
    top: tuple[Behind, ...]


@dataclass(frozen=True)
class CategoryPart:
    category: str
    name: str
    headline: bool
    contribution: float
    interval: Interval | None
    real_weight: float
    sim_weight: float
    episodes: EpisodesBehind


@dataclass(frozen=True)
class Part:
    """A part of the drop; `contribution` and `value` are the same number."""

    contribution: float
    value: float
    interval: Interval | None


@dataclass(frozen=True)
class StratumNames:
    """Which strata stand behind off-support, mix and rate. Lists end after fifty; the counts do not."""

    names: tuple[str, ...]
    left_out: tuple[str, ...]
    common: int
    sim_only: tuple[str, ...]
    sim_only_count: int
    real_only: tuple[str, ...]
    real_only_count: int
    pooled: int


@dataclass(frozen=True)
class PooledEffect:
    """Mantel and Haenszel's difference over the strata, to be read when the sign of the crude drop turns."""

    difference: float
    odds_ratio: float | None
    odds_interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class LedgerAnswer(Answer):
    drop: float | None
    categories: tuple[CategoryPart, ...]
    unattributed: CategoryPart | None
    off_support: Part | None
    mix: Part | None
    rate: Part | None
    reverses: bool
    mantel_haenszel: PooledEffect | None
    strata: StratumNames | None
    shapley: ConditionShares | None
    failures_read: Mapping[str, int]
    suspects: tuple[str, ...]
    method: str
    split_method: str | None


def answer_ledger(sides: Sides, *, condition_shares: bool = True) -> LedgerAnswer:
    """`condition_shares`: also share the mix out over single conditions, which a page does not show."""
    sim, real = sides.sim, sides.real
    shared = answer_fields(sides)
    if not sim.n or not real.n:
        return LedgerAnswer(
            **shared, drop=None, categories=(), unattributed=None, off_support=None, mix=None, rate=None,
            reverses=False, mantel_haenszel=None, strata=None, shapley=None, failures_read={}, suspects=(),
            method="none", split_method=None,
        )  # fmt: skip
    suspects = suspects_of(sides)
    differing = sides.contract.differing
    evidence = Evidence(sides.taxonomy, usual_of(sim, real, differing), suspects, differing)
    in_sim, in_real, evened = weigh_sides(sim, real, evidence)
    made = make_ledger(in_sim.side, in_real.side, CATEGORIES)
    split = _split(sides, condition_shares=condition_shares)
    if evened is not None:
        shared["warnings"] = (*shared["warnings"], _evened(evened))
    if split.parts.reverses:
        shared["warnings"] = (*shared["warnings"], _simpson(split.parts))
    rest = None if made.unattributed is None else _part(made.unattributed, in_sim, in_real, evidence)
    return LedgerAnswer(
        **shared,
        drop=made.drop,
        categories=tuple(_part(entry, in_sim, in_real, evidence) for entry in made.entries),
        unattributed=rest,
        off_support=split.part("off_support"),
        mix=split.part("mix"),
        rate=split.part("rate"),
        reverses=split.parts.reverses,
        mantel_haenszel=split.pooled_effect,
        strata=split.names,
        shapley=split.shapley,
        failures_read={"sim": len(in_sim.rows), "real": len(in_real.rows)},
        suspects=tuple(f"{name}: {level}" for name, level in suspects),
        method=made.method,
        split_method=split.method,
    )


def _part(entry: Entry, sim: Weighed, real: Weighed, evidence: Evidence) -> CategoryPart:
    known = BY_ID.get(entry.category)
    name = "Unattributed" if entry.category == UNATTRIBUTED else entry.category
    return CategoryPart(
        entry.category,
        name if known is None else known.name,
        known is not None and known.is_headline,
        entry.contribution,
        entry.interval,
        entry.real_weight,
        entry.sim_weight,
        EpisodesBehind(
            real.episodes_of(entry.category),
            sim.episodes_of(entry.category),
            real.behind(entry.category, evidence, MOST_LISTED) if entry.real_weight else (),
        ),
    )


@dataclass(frozen=True)
class _Split:
    """The drop over strata, with intervals and names."""

    parts: Decomposition
    intervals: Mapping[str, Interval]
    method: str | None
    strata: Strata
    shapley: ConditionShares | None

    def part(self, name: str) -> Part | None:
        value = getattr(self.parts, name)
        return None if value is None else Part(value, value, self.intervals.get(name))

    @property
    def pooled_effect(self) -> PooledEffect | None:
        found = self.parts.mantel_haenszel
        if found is None:
            return None
        return PooledEffect(found.difference, found.odds_ratio, found.odds_interval)

    @property
    def names(self) -> StratumNames:
        parts = self.parts
        sim_only, real_only = ([_words(key) for key in side] for side in (parts.sim_only, parts.real_only))
        return StratumNames(
            self.strata.names,
            self.strata.left_out,
            len(parts.common),
            tuple(sorted(sim_only)[:MOST_NAMED]),
            len(sim_only),
            tuple(sorted(real_only)[:MOST_NAMED]),
            len(real_only),
            len(parts.pooled or {}),
        )


def _split(sides: Sides, *, condition_shares: bool) -> _Split:
    sim, real = sides.sim, sides.real
    if sides.subject.task_ids is None:
        strata = task_strata(sim, real, sides.tasks)
    else:
        strata = condition_strata(sides.table)
    counts: dict[Hashable, Counts] = dict(strata.counts.items())
    parts = decompose(counts)
    found = part_intervals(
        _merged(counts), design_effects=(sim.session_effect.inflation, real.session_effect.inflation)
    )
    intervals = {} if found is None else {"off_support": found.off_support, "mix": found.mix, "rate": found.rate}
    shared_out = len(strata.names) > 1 and condition_shares
    return _Split(
        parts,
        intervals,
        None if found is None else found.method,
        strata,
        shapley_over_conditions(strata.names, strata.counts) if shared_out else None,
    )


def _merged(counts: Mapping[Hashable, Counts]) -> dict[Hashable, Counts]:
    """All strata of one side only as one: they enter the components by their sum, and may be thousands."""
    merged: dict[Hashable, Counts] = {}
    for key, c in counts.items():
        place = key if c[1] and c[3] else "(sim only)" if c[1] else "(real only)"
        before = merged.get(place, (0, 0, 0, 0))
        merged[place] = (before[0] + c[0], before[1] + c[1], before[2] + c[2], before[3] + c[3])
    return merged


def _words(key: object) -> str:
    return " × ".join(str(part) for part in key) if isinstance(key, tuple) else str(key)


def _evened(side: str) -> Caution:
    other = "real" if side == "sim" else "sim"
    return Caution(
        "labelled-on-one-side",
        f"Failures in {other} are labelled far more often than in {side}. Unlabelled ones in {side} are taken to"
        f" be like labelled ones of {other} in the same phase; labels on both sides would say it exactly.",
    )


def _simpson(parts: Decomposition) -> Caution:
    crude, rate = 100 * (parts.crude or 0.0), 100 * (parts.rate or 0.0)
    return Caution(
        "sign-turns",
        f"The crude drop is {crude:+.1f} points, but where both sides were tried it is {rate:+.1f}: "
        "the two were not tried on the same things. Read the rate.",
    )
