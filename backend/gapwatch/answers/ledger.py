"""Why it is lost: the success drop over gap categories, and the same drop as off-support, mix and rate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from gapwatch.answers.answer import Answer, Caution, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.before_words import all_told_of_before, cautions_of_before, told_of_before
from gapwatch.answers.failure_weights import NEEDS as WEIGHING_NEEDS
from gapwatch.answers.failure_weights import CategoryEpisode, EvidenceBasis, WeighedSides, weigh_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.answers.slices import suspects_of
from gapwatch.answers.strata import Strata, condition_strata, task_strata
from gapwatch.filters import AgainstFilter
from gapwatch.statistics.causes.decomposition import (
    Counts,
    Decomposition,
    decompose,
    part_intervals,
)
from gapwatch.statistics.causes.ledger import Entry, leading, make_ledger
from gapwatch.statistics.causes.responsibility import joint_name
from gapwatch.statistics.causes.shapley import ConditionShares, shapley_over_conditions
from gapwatch.statistics.causes.term_facts import TermFact
from gapwatch.taxonomy import BY_ID, CATEGORIES, UNATTRIBUTED, joint_words

NEEDS = ANSWER_FIELDS | WEIGHING_NEEDS | Need.TASKS

MOST_LISTED = 5
MOST_NAMED = 50
MOST_WORTH_LOGGING = 3


@dataclass(frozen=True)
class CategoryEpisodes:
    """How many real and sim failures carry weight of a category, and the real ones that carry most."""

    count: int
    sim_count: int
    top: tuple[CategoryEpisode, ...]


@dataclass(frozen=True)
class CategoryPart:
    """One bar. `why`: a sentence for each thing that its weight comes from. Of the points that the model explains,
    `mix` is because real meets more of a cause, `rate` because the cause costs more in real. `unsure` is what only
    a phase speaks for, or a cause that was just told from chance.
    """

    category: str
    name: str
    headline: bool
    contribution: float
    interval: Interval | None
    real_weight: float
    sim_weight: float
    episodes: CategoryEpisodes
    why: tuple[str, ...] = ()
    mix: float = 0.0
    rate: float = 0.0
    unsure: float = 0.0


@dataclass(frozen=True)
class ModelAnswer:
    """The model of failure behind the weights. `base`: the chance to fail at what is usual in sim.

    `being_real`: points that only being real explains. `looked_at`: candidates, of which `terms` were told from
    chance. `explained`: the share of the deviance that the model takes away.
    """

    terms: tuple[TermFact, ...]
    base: float
    being_real: float
    looked_at: int
    episodes: int
    explained: float
    method: str


@dataclass(frozen=True)
class LedgerHeadline:
    """`category` is named only if its lower end is above zero and what is known of it is more than the rest.

    Otherwise `log` are three things that would tell more.
    """

    category: str | None
    sentence: str
    log: tuple[str, ...]


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
    headline: LedgerHeadline | None = None
    model: ModelAnswer | None = None


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
            method="none", split_method=None, headline=None, model=None,
        )  # fmt: skip
    weighed = weighed or weigh_sides(sides)
    made = make_ledger(weighed.sim.totals, weighed.real.totals, CATEGORIES, uncertainties=weighed.uncertainties)
    split = _split(sides, condition_shares=condition_shares)
    shared["warnings"] = (*shared["warnings"], *_one_sided_records(weighed.basis))
    if split.parts.reverses:
        shared["warnings"] = (*shared["warnings"], _simpson(split.parts))
    rest = None if made.unattributed is None else _part(made.unattributed, weighed)
    parts = tuple(_part(entry, weighed) for entry in made.entries)
    answer = LedgerAnswer(
        **shared,
        drop=made.drop,
        categories=parts,
        unattributed=rest,
        off_support=split.part("off_support"),
        mix=split.part("mix"),
        rate=split.part("rate"),
        reverses=split.parts.reverses,
        mantel_haenszel=split.pooled_effect,
        strata=split.names,
        shapley=split.shapley,
        failures_read={"sim": len(weighed.sim.rows), "real": len(weighed.real.rows)},
        suspects=tuple(f"{name}: {level}" for name, level in suspects_of(sides)),
        method=f"{made.method}, widened by what the model of failure does not know",
        split_method=split.method,
        headline=_headline(made.drop, parts, rest, weighed),
        model=_model_answer(weighed),
    )
    return _told_of_before(answer) if sides.sim.is_before else answer


def leading_part(ledger: LedgerAnswer) -> CategoryPart | None:
    """The category that loses most, if it is known to lose anything and is more than what nothing explains."""
    return leading(ledger.categories, ledger.unattributed)


def _headline(
    drop: float | None, parts: Sequence[CategoryPart], rest: CategoryPart | None, weighed: WeighedSides
) -> LedgerHeadline | None:
    if drop is None or drop <= 0:
        return None
    lead = leading(parts, rest)
    if lead is not None:
        low, high = lead.interval or (lead.contribution, lead.contribution)
        sentence = (
            f"{lead.name}: {100 * lead.contribution:.1f} of {100 * drop:.1f} points"
            f" ({100 * low:.1f} to {100 * high:.1f})."
        )
        return LedgerHeadline(lead.category, sentence, ())
    return LedgerHeadline(None, "Most of it is not explained by what is logged.", _worth_logging(parts, weighed))


def _worth_logging(parts: Sequence[CategoryPart], weighed: WeighedSides) -> tuple[str, ...]:
    """What to collect for the categories that the phases point to, then for those of which nothing is logged."""
    logged = set()
    if weighed.fitted is not None:
        logged = {name for candidate in weighed.fitted.rows.candidates for name in candidate.categories}
    bare = [part for part in parts if part.category in BY_ID and part.category not in logged]
    rest = [part for part in parts if part.category in BY_ID and part.category in logged]
    return tuple(BY_ID[part.category].collect for part in [*bare, *rest][:MOST_WORTH_LOGGING])


def _model_answer(weighed: WeighedSides) -> ModelAnswer | None:
    fitted = weighed.fitted
    if fitted is None:
        return None
    before, after = fitted.null_log_likelihood, fitted.fit.log_likelihood
    return ModelAnswer(
        weighed.basis.facts,
        fitted.base,
        fitted.points_of_being_real,
        fitted.model.looked_at,
        len(fitted.rows.failed),
        max(0.0, 1 - after / before) if before < 0 else 0.0,
        "logistic regression of failure on both sides; causes by score tests, 5 % of models with a false one",
    )


def _part(entry: Entry, weighed: WeighedSides) -> CategoryPart:
    known = BY_ID.get(entry.category)
    name = "Unattributed" if entry.category == UNATTRIBUTED else joint_words(entry.category)
    facts = [fact for fact in weighed.basis.facts if entry.category in _bars_of(fact)]
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
        (*(fact.sentence for fact in facts), *_spoken_for(entry, facts, heaviest)),
        sum(fact.mix / len(_bars_of(fact)) for fact in facts),
        sum(fact.rate / len(_bars_of(fact)) for fact in facts),
        entry.unsure,
    )


def _bars_of(fact: TermFact) -> tuple[str, ...]:
    return (joint_name(fact.categories),) if fact.one_of_these else fact.categories


def _spoken_for(entry: Entry, facts: Sequence[TermFact], heaviest: Sequence[CategoryEpisode]) -> tuple[str, ...]:
    """What else its weight comes from, by the failures that carry most of it."""
    if entry.category == UNATTRIBUTED:
        return ("what chance explains on both sides, and what only being real does",) if entry.real_weight else ()
    said = [text for episode in heaviest for text in episode.evidence]
    known = {fact.name for fact in facts}
    others = [text for text in dict.fromkeys(said) if not any(name in text for name in known)]
    return tuple(others[:MOST_LISTED])


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


def _one_sided_records(basis: EvidenceBasis) -> list[Caution]:
    """What one side writes down and the other hardly does, and what that is taken to mean; it is no gap."""
    if basis.responsibility is None:
        return []
    records, cautions = basis.responsibility.records, []
    for kind, lacking in (("labelled", records.labels_lacking), ("phases", records.phases_lacking)):
        if lacking is None:
            continue
        other = "real" if lacking == "sim" else "sim"
        what = "labelled" if kind == "labelled" else "given a phase"
        cautions.append(
            Caution(
                f"{kind}-on-one-side",
                f"Failures in {other} are {what} far more often than in {lacking}. What one side alone writes down"
                f" is no gap: it only shares out the failures that real has above sim."
                " The same records on both sides would say it exactly.",
            )
        )
    if records.other_units:
        names = ", ".join(records.other_units)
        cautions.append(
            Caution(
                "other-units",
                f"Real's numbers are sim's times a thousand or a thousandth for {names}: the two sides seem to log"
                " other units. No cause is read from them until both log the same.",
            )
        )
    unsimulated = [fact for fact in basis.facts if fact.never_simulated]
    for fact in unsimulated:
        what = fact.name if fact.level is None else f"{fact.name} = {fact.level}"
        cautions.append(
            Caution(
                "never-simulated",
                f"{what} costs {100 * fact.cost:.0f} points in real and is not in the sim episodes: it is judged"
                f" by real episodes alone. Simulate it, or log {fact.name} in sim as well.",
            )
        )
    return cautions


def _simpson(parts: Decomposition) -> Caution:
    crude, rate = 100 * (parts.crude or 0.0), 100 * (parts.rate or 0.0)
    return Caution(
        "sign-turns",
        f"The crude drop is {crude:+.1f} points, but where both sides were tried it is {rate:+.1f}: "
        "the two were not tried on the same things. Read the rate.",
    )


def _told_of_before(answer: LedgerAnswer) -> LedgerAnswer:
    """The same, where what was before stands in the place of sim."""

    def retold(part: CategoryPart) -> CategoryPart:
        top = tuple(replace(one, evidence=all_told_of_before(one.evidence)) for one in part.episodes.top)
        return replace(
            part,
            why=all_told_of_before(part.why),
            episodes=replace(part.episodes, top=top),
        )

    model = answer.model
    if model is not None:
        terms = tuple(replace(fact, sentence=told_of_before(fact.sentence)) for fact in model.terms)
        model = replace(model, terms=terms)
    return replace(
        answer,
        categories=tuple(map(retold, answer.categories)),
        unattributed=None if answer.unattributed is None else retold(answer.unattributed),
        warnings=cautions_of_before(answer.warnings),
        model=model,
    )


def table_rows(answer: LedgerAnswer) -> list[TableRow]:
    parts = [*answer.categories, *([answer.unattributed] if answer.unattributed else [])]
    return [
        [
            "category",
            "contribution",
            "low",
            "high",
            "real_weight",
            "sim_weight",
            "real_episodes",
            "sim_episodes",
            "why",
        ],
        *(
            [
                part.category,
                part.contribution,
                *(part.interval or (None, None)),
                part.real_weight,
                part.sim_weight,
                part.episodes.count,
                part.episodes.sim_count,
                "; ".join(part.why),
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
