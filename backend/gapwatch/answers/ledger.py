"""Why it is lost: the success drop over gap categories, and the same drop as off-support, mix and rate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from gapwatch.answers.answer import Answer, Caution, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.failure_weights import NEEDS as WEIGHING_NEEDS
from gapwatch.answers.failure_weights import CategoryEpisode, WeighedSides, weigh_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.answers.strata import Strata, condition_strata, task_strata
from gapwatch.filters import AgainstFilter
from gapwatch.statistics.causes.decomposition import (
    Counts,
    Decomposition,
    decompose,
    part_intervals,
)
from gapwatch.statistics.causes.label_balance import LabelBalance
from gapwatch.statistics.causes.ledger import Entry, make_ledger
from gapwatch.statistics.causes.shapley import ConditionShares, shapley_over_conditions
from gapwatch.taxonomy import BY_ID, CATEGORIES, UNATTRIBUTED

NEEDS = ANSWER_FIELDS | WEIGHING_NEEDS | Need.TASKS

MOST_LISTED = 5
MOST_NAMED = 50


@dataclass(frozen=True)
class CategoryEpisodes:
    """How many real and sim failures carry weight of a category, and the real ones that carry most."""

    count: int
    sim_count: int
    top: tuple[CategoryEpisode, ...]


@dataclass(frozen=True)
class CategoryPart:
    category: str
    name: str
    headline: bool
    contribution: float
    interval: Interval | None
    real_weight: float
    sim_weight: float
    episodes: CategoryEpisodes


@dataclass(frozen=True)
class DropPart:
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
    off_support: DropPart | None
    mix: DropPart | None
    rate: DropPart | None
    reverses: bool
    mantel_haenszel: PooledEffect | None
    strata: StratumNames | None
    shapley: ConditionShares | None
    failures_read: Mapping[str, int]
    suspects: tuple[str, ...]
    method: str
    split_method: str | None


def answer_ledger(
    sides: Sides, weighed: WeighedSides | None = None, *, condition_shares: bool = True
) -> LedgerAnswer:
    """`weighed`: the failures of both sides, where the caller has weighed them already. `condition_shares`: also
    share the mix out over single conditions, which a page does not show."""
    sim, real = sides.sim, sides.real
    shared = answer_fields(sides)
    if not sim.n or not real.n:
        return LedgerAnswer(
            **shared, drop=None, categories=(), unattributed=None, off_support=None, mix=None, rate=None,
            reverses=False, mantel_haenszel=None, strata=None, shapley=None, failures_read={}, suspects=(),
            method="none", split_method=None,
        )  # fmt: skip
    weighed = weighed or weigh_sides(sides)
    made = make_ledger(weighed.sim.totals, weighed.real.totals, CATEGORIES)
    split = _split(sides, condition_shares=condition_shares)
    if weighed.basis.balance is not None:
        shared["warnings"] = (*shared["warnings"], _evened(weighed.basis.balance))
    if split.parts.reverses:
        shared["warnings"] = (*shared["warnings"], _simpson(split.parts))
    rest = None if made.unattributed is None else _part(made.unattributed, weighed)
    return LedgerAnswer(
        **shared,
        drop=made.drop,
        categories=tuple(_part(entry, weighed) for entry in made.entries),
        unattributed=rest,
        off_support=split.part("off_support"),
        mix=split.part("mix"),
        rate=split.part("rate"),
        reverses=split.parts.reverses,
        mantel_haenszel=split.pooled_effect,
        strata=split.names,
        shapley=split.shapley,
        failures_read={"sim": len(weighed.sim.rows), "real": len(weighed.real.rows)},
        suspects=tuple(f"{name}: {level}" for name, level in weighed.basis.suspects),
        method=made.method,
        split_method=split.method,
    )


def leading_part(ledger: LedgerAnswer) -> CategoryPart | None:
    """The category that loses most; None where none loses anything."""
    first = max(ledger.categories, key=lambda part: part.contribution, default=None)
    return first if first is not None and first.contribution > 0 else None


def _part(entry: Entry, weighed: WeighedSides) -> CategoryPart:
    known = BY_ID.get(entry.category)
    name = "Unattributed" if entry.category == UNATTRIBUTED else entry.category
    heaviest = weighed.real.heaviest(entry.category, weighed.basis, MOST_LISTED) if entry.real_weight else ()
    return CategoryPart(
        entry.category,
        name if known is None else known.name,
        known is not None and known.is_headline,
        entry.contribution,
        entry.interval,
        entry.real_weight,
        entry.sim_weight,
        CategoryEpisodes(
            weighed.real.episodes_of(entry.category), weighed.sim.episodes_of(entry.category), heaviest
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

    def part(self, name: str) -> DropPart | None:
        value = getattr(self.parts, name)
        return None if value is None else DropPart(value, value, self.intervals.get(name))

    @property
    def pooled_effect(self) -> PooledEffect | None:
        effect = self.parts.mantel_haenszel
        if effect is None:
            return None
        return PooledEffect(effect.difference, effect.odds_ratio, effect.odds_interval)

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
    limits = part_intervals(
        _merged(counts), design_effects=(sim.session_effect.inflation, real.session_effect.inflation)
    )
    intervals = (
        {} if limits is None else {"off_support": limits.off_support, "mix": limits.mix, "rate": limits.rate}
    )
    shared_out = len(strata.names) > 1 and condition_shares
    return _Split(
        parts,
        intervals,
        None if limits is None else limits.method,
        strata,
        shapley_over_conditions(strata.names, strata.counts) if shared_out else None,
    )


def _merged(counts: Mapping[Hashable, Counts]) -> dict[Hashable, Counts]:
    """All strata of one side only as one: they enter the components by their sum, and may be thousands."""
    merged: dict[Hashable, Counts] = {}
    for key, c in counts.items():
        stratum = key if c[1] and c[3] else "(sim only)" if c[1] else "(real only)"
        before = merged.get(stratum, (0, 0, 0, 0))
        merged[stratum] = (before[0] + c[0], before[1] + c[1], before[2] + c[2], before[3] + c[3])
    return merged


def _words(key: object) -> str:
    return " × ".join(str(part) for part in key) if isinstance(key, tuple) else str(key)


def _evened(balance: LabelBalance) -> Caution:
    side, other = balance.side, balance.other
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


def table_rows(answer: LedgerAnswer) -> list[TableRow]:
    parts = [*answer.categories, *([answer.unattributed] if answer.unattributed else [])]
    return [
        ["category", "contribution", "low", "high", "real_weight", "sim_weight", "real_episodes", "sim_episodes"],
        *(
            [
                part.category,
                part.contribution,
                *(part.interval or (None, None)),
                part.real_weight,
                part.sim_weight,
                part.episodes.count,
                part.episodes.sim_count,
            ]
            for part in parts
        ),
    ]


KIND = AnswerKind(
    name="ledger",
    answer_type=LedgerAnswer,
    answer=answer_ledger,
    needs=NEEDS,
    summary="Why it is lost",
    gives="The drop by gap category.",
    description=(
        "The success drop over gap categories by the evidence of failed episodes, and as off-support, mix, "
        "rate.\n\n"
        "Contributions and `unattributed` add up to `drop`; so do `off_support`, `mix` and `rate`. A category "
        "without evidence is 0 and has no interval. `episodes.top` are the real failures that carry most of "
        "one."
    ),
    filter=AgainstFilter,
    table=AnswerTable("ledger", table_rows),
)
