"""How much is lost: one metric on both sides, the drop between them, a verdict, and what would settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.metric_drop import compare_metric, paired_reward
from gapwatch.answers.needs import Need
from gapwatch.answers.populations import Population, clusters_of_rows
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.filters import DropFilter, PopulationName
from gapwatch.statistics.estimates import drops, rates, verdicts
from gapwatch.store.read.sides import PairRow

NEEDS = ANSWER_FIELDS | Need.DROP

FEWEST_PAIRS = 10
# Real episodes after which Wilson's interval is no wider than ± 10 points at any rate: where to start.
EPISODES_TO_START = 93
POPULATIONS: tuple[PopulationName, ...] = ("these", "any")


@dataclass(frozen=True)
class SideValue:
    """One side of the metric. Aborted and abandoned attempts are counted separately and enter no value."""

    n: int
    value: float | None
    interval: Interval | None
    aborted: int
    abandoned: int
    sessions: int = 0
    successes: int | None = None
    sampled: bool = False


@dataclass(frozen=True)
class DropValue:
    """Sim minus real, positive when real is worse; `relative` is the share of sim's value that is lost."""

    value: float | None
    interval: Interval | None
    relative: float | None
    relative_interval: Interval | None = None


@dataclass(frozen=True)
class PopulationDrop:
    """The drop as it is known of one population: these robots, or any robot of this kind.

    `by` is what differs and is drawn anew, `levels` how many of them were seen.
    """

    population: PopulationName
    words: str
    by: str | None
    levels: int
    interval: Interval | None
    verdict: verdicts.Verdict
    method: str


@dataclass(frozen=True)
class PairedValue:
    """The drop over pairs that started from the same state."""

    value: float | None
    interval: Interval | None
    pairs: int
    method: str


@dataclass(frozen=True)
class UnfinishedValue:
    """The drop if every aborted and abandoned attempt had failed."""

    n_sim: int
    n_real: int
    sim: float | None
    real: float | None
    drop: DropValue
    verdict: verdicts.Verdict
    method: str


@dataclass(frozen=True, kw_only=True)
class DropAnswer(Answer):
    metric: str
    sim: SideValue
    real: SideValue
    drop: DropValue
    # Whom the interval of the drop speaks for, and what is known of either population.
    population: Population
    populations: tuple[PopulationDrop, ...]
    paired: PairedValue | None
    verdict: verdicts.Verdict
    smallest_that_matters: float | None
    episodes_needed: int | None
    episodes_needed_reason: str | None
    episodes_for_precision: int | None = None
    if_unfinished_failed: UnfinishedValue | None = None
    better: Literal["higher", "lower"]
    direction: Literal["project", "default"]
    method: str


def answer_drop(sides: Sides) -> DropAnswer:
    if sides.question.metric == "success":
        return _success(sides)
    return _metric(sides)


def _success(sides: Sides) -> DropAnswer:
    sim, real = sides.sim, sides.real
    smallest = smallest_success(sides.options)
    drop = drops.rate_drop(sim.drop_side, real.drop_side)
    shared = answer_fields(sides, drop.reason)
    population = real.describe(real.population)
    speaking = tuple(_speaking_for(sides, name, smallest) for name in POPULATIONS)
    asked = next(one for one in speaking if one.population == real.population)
    word = asked.verdict
    needed = _needed(sides, smallest) if word == "too few episodes" else verdicts.EpisodesNeeded(0)
    return DropAnswer(
        **shared,
        metric="success",
        sim=side_value(sim, real),
        real=side_value(real, sim),
        drop=DropValue(
            _exact_drop(sim, real),
            asked.interval,
            drop.relative,
            interval_of(drop.relative_low, drop.relative_high),
        ),
        population=population,
        populations=speaking,
        paired=paired_success(sides.pairs, population),
        verdict=word,
        smallest_that_matters=smallest,
        episodes_needed=needed.more,
        episodes_needed_reason=needed.reason,
        episodes_for_precision=_for_precision(sides),
        if_unfinished_failed=_if_unfinished_failed(sim, real, smallest),
        better="higher",
        direction="default",
        method=asked.method,
    )


def _speaking_for(sides: Sides, name: PopulationName, smallest: float) -> PopulationDrop:
    sim, real = sides.sim.speaking_for(name), sides.real.speaking_for(name)
    drop = drops.rate_drop(sim.drop_side, real.drop_side)
    population = real.describe(name)
    value, method = _exact_drop(sim, real), drop.method
    interval: Interval | None = (drop.low, drop.high) if value is not None else None
    paired = paired_success(sides.pairs, population)
    if paired is not None and paired.interval is not None and paired.pairs == sim.n == real.n:
        # Every attempt has its partner: the drop is the same, and the paired interval accounts for it.
        interval, method = paired.interval, paired.method
    low, high = interval or (None, None)
    word = verdicts.verdict(low, high, value, smallest)
    return PopulationDrop(name, population.words, population.by, population.levels, interval, word, method)


def side_value(side: ComparisonSide, other: ComparisonSide) -> SideValue:
    """A success rate with the limits it enters the drop with; without another side, Wilson's or the sessions'."""
    interval: Interval | None = None
    if side.n:
        limits = drops.side_limits(side.drop_side, other.drop_side if other.n else side.drop_side)
        interval = (limits.low, limits.high)
    value = side.successes / side.n if side.n else None
    return SideValue(
        side.n, value, interval, side.aborted, side.abandoned, len(side.session_counts), side.successes
    )


def _if_unfinished_failed(sim: ComparisonSide, real: ComparisonSide, smallest: float) -> UnfinishedValue | None:
    """None where every attempt succeeded or failed."""
    attempts = [
        drops.Side(side.successes, side.n + side.aborted + side.abandoned, worth_one=side.cluster_effect.worth_one)
        for side in (sim, real)
    ]
    if (attempts[0].n, attempts[1].n) == (sim.n, real.n):
        return None
    drop = drops.rate_drop(*attempts)
    interval = None if drop.value is None else interval_of(drop.low, drop.high)
    relative = interval_of(drop.relative_low, drop.relative_high)
    low, high = interval or (None, None)
    rates = [side.successes / side.n if side.n else None for side in attempts]
    return UnfinishedValue(
        attempts[0].n,
        attempts[1].n,
        rates[0],
        rates[1],
        DropValue(drop.value, interval, drop.relative, relative),
        verdicts.verdict(low, high, drop.value, smallest),
        drop.method,
    )


def paired_success(pairs: Sequence[PairRow], population: Population) -> PairedValue | None:
    """None below ten pairs, where pairing gains nothing."""
    if len(pairs) < FEWEST_PAIRS:
        return None
    counts = [
        sum(pair.sim_success is in_sim and pair.real_success is in_real for pair in pairs)
        for in_sim, in_real in ((True, True), (True, False), (False, True), (False, False))
    ]
    alike, by = None, population.by
    if by is not None:
        lost = [float(pair.sim_success) - float(pair.real_success) for pair in pairs]
        alike = rates.likeness_of(clusters_of_rows(pairs, lost, by), counts[1] + counts[2])
    drop = drops.paired_drop(*counts, alike=alike, by=by or "session")
    return PairedValue(drop.value, (drop.low, drop.high), drop.pairs, drop.method)


def _metric(sides: Sides) -> DropAnswer:
    name = sides.question.metric
    compared = {
        one: compare_metric(
            replace(sides, sim=sides.sim.speaking_for(one), real=sides.real.speaking_for(one)), name
        )
        for one in POPULATIONS
    }
    sim, real = sides.sim, sides.real
    comparison = compared[real.population]
    populations = []
    for one, drop in compared.items():
        told = real.describe(one)
        populations.append(
            PopulationDrop(one, told.words, told.by, told.levels, drop.interval, drop.verdict, drop.method)
        )
    return DropAnswer(
        **answer_fields(sides, comparison.reason),
        metric=name,
        sim=_metric_side(sim, comparison.sim),
        real=_metric_side(real, comparison.real),
        drop=DropValue(comparison.value, comparison.interval, comparison.relative),
        population=real.describe(real.population),
        populations=tuple(populations),
        paired=_paired_metric(sides, name, comparison.better),
        verdict=comparison.verdict,
        smallest_that_matters=comparison.smallest,
        episodes_needed=comparison.episodes_needed if comparison.value is not None else EPISODES_TO_START,
        episodes_needed_reason=None if comparison.value is not None else "to begin with",
        better=comparison.better,
        direction=comparison.direction,
        method=comparison.method,
    )


def _metric_side(side: ComparisonSide, measured: tuple[int, float | None, Interval | None]) -> SideValue:
    return SideValue(*measured, side.aborted, side.abandoned, sampled=side.is_sampled)


def _paired_metric(sides: Sides, name: str, better: Literal["higher", "lower"]) -> PairedValue | None:
    if name != "reward":
        return None
    by = sides.real.describe(sides.real.population).by
    paired = paired_reward(sides.pairs, better, by)
    clustered = "" if by is None else f", clustered by {by}"
    return None if paired is None else PairedValue(*paired, f"t of the differences{clustered}")


def smallest_success(options: Mapping[str, Any]) -> float:
    """The loss of success that matters to a project, as a fraction."""
    asked = options.get("metrics", {}).get("success", {}).get("smallest_that_matters")
    return float(asked) if asked is not None else verdicts.SMALLEST_THAT_MATTERS


def _exact_drop(sim: ComparisonSide, real: ComparisonSide) -> float | None:
    return sim.successes / sim.n - real.successes / real.n if sim.n and real.n else None


def _needed(sides: Sides, smallest: float) -> verdicts.EpisodesNeeded:
    sim, real = sides.sim, sides.real
    if not real.n:
        return verdicts.EpisodesNeeded(EPISODES_TO_START, "to know the real rate within 10 points")
    if not sim.n:
        return verdicts.EpisodesNeeded(None, "no sim episodes to compare with")
    needed = verdicts.episodes_needed(sim.drop_side, real.drop_side, smallest)
    return _at_size(needed, real)


def _for_precision(sides: Sides) -> int | None:
    wanted, sim, real = sides.question.precision, sides.sim, sides.real
    if wanted is None or not sim.n or not real.n:
        return None
    return _at_size(verdicts.episodes_for_precision(sim.drop_side, real.drop_side, wanted), real).more


def _at_size(needed: verdicts.EpisodesNeeded, real: ComparisonSide) -> verdicts.EpisodesNeeded:
    """Episodes needed are effective ones; the design effect turns them into real ones."""
    more = None if needed.more is None else round(needed.more * real.cluster_effect.design_effect)
    return verdicts.EpisodesNeeded(more, needed.reason)


def interval_of(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else (low, high)


KIND = AnswerKind(
    name="drop",
    answer_type=DropAnswer,
    answer=answer_drop,
    needs=NEEDS,
    summary="How much is lost",
    gives="The metric on both sides and the drop.",
    description=(
        "One metric in sim and in real, the drop with its 95 % interval, a verdict, and what would settle it.\n\n"
        "A drop is positive when reality is worse. Sides that cannot be compared give nulls and a `reason`, "
        "with 200. Read `warnings` first: contracts that differ come before any statistics."
    ),
    filter=DropFilter,
)
