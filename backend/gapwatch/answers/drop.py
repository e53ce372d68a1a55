"""How much is lost: one metric on both sides, the drop between them, a verdict, and what would settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.metric_drop import compare_metric, paired_reward
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.filters import DropFilter
from gapwatch.statistics.estimates import drops, verdicts
from gapwatch.store.read.sides import PairRow

NEEDS = ANSWER_FIELDS | Need.DROP

FEWEST_PAIRS = 10
# Real episodes after which Wilson's interval is no wider than ± 10 points at any rate: where to start.
EPISODES_TO_START = 93


@dataclass(frozen=True)
class SideValue:
    """One side of the metric. Aborted and abandoned attempts are counted apart and are in no value."""

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
    """Sim minus real in the direction that is worse; relative is the share of sim's value that is lost."""

    value: float | None
    interval: Interval | None
    relative: float | None
    relative_interval: Interval | None = None


@dataclass(frozen=True)
class PairedValue:
    """The drop over pairs that started from the same state."""

    value: float | None
    interval: Interval | None
    pairs: int
    method: str


@dataclass(frozen=True)
class UnfinishedValue:
    """The same had every aborted and abandoned attempt failed. Sessions are not looked at."""

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
    found = drops.rate_drop(sim.drop_side, real.drop_side)
    shared = answer_fields(sides, found.reason)
    paired = paired_success(sides.pairs)
    value, method = _exact_drop(sim, real), found.method
    interval: Interval | None = (found.low, found.high) if value is not None else None
    if paired is not None and paired.interval is not None and paired.pairs == sim.n == real.n:
        # Every attempt of either side has its partner: the same drop, and an interval that knows of it.
        interval, method = paired.interval, paired.method
    low, high = interval or (None, None)
    word = verdicts.verdict(low, high, value, smallest)
    needed = _needed(sides, smallest) if word == "too few episodes" else verdicts.EpisodesNeeded(0)
    return DropAnswer(
        **shared,
        metric="success",
        sim=side_value(sim, real),
        real=side_value(real, sim),
        drop=DropValue(value, interval, found.relative, interval_of(found.relative_low, found.relative_high)),
        paired=paired,
        verdict=word,
        smallest_that_matters=smallest,
        episodes_needed=needed.more,
        episodes_needed_reason=needed.reason,
        episodes_for_precision=_for_precision(sides),
        if_unfinished_failed=_if_unfinished_failed(sim, real, smallest),
        better="higher",
        direction="default",
        method=method,
    )


def side_value(side: ComparisonSide, other: ComparisonSide) -> SideValue:
    """A success rate with the limits with which it enters the drop; alone, with Wilson's or the sessions'."""
    interval: Interval | None = None
    if side.n:
        limits = drops.side_limits(side.drop_side, other.drop_side if other.n else side.drop_side)
        interval = (limits.low, limits.high)
    value = side.successes / side.n if side.n else None
    return SideValue(
        side.n, value, interval, side.aborted, side.abandoned, side.session_effect.sessions, side.successes
    )


def _if_unfinished_failed(sim: ComparisonSide, real: ComparisonSide, smallest: float) -> UnfinishedValue | None:
    """None where every attempt succeeded or failed."""
    attempts = [drops.Side(side.successes, side.n + side.aborted + side.abandoned) for side in (sim, real)]
    if (attempts[0].n, attempts[1].n) == (sim.n, real.n):
        return None
    found = drops.rate_drop(*attempts)
    interval = None if found.value is None else interval_of(found.low, found.high)
    relative = interval_of(found.relative_low, found.relative_high)
    low, high = interval or (None, None)
    rates = [side.successes / side.n if side.n else None for side in attempts]
    return UnfinishedValue(
        attempts[0].n,
        attempts[1].n,
        rates[0],
        rates[1],
        DropValue(found.value, interval, found.relative, relative),
        verdicts.verdict(low, high, found.value, smallest),
        found.method,
    )


def paired_success(pairs: Sequence[PairRow]) -> PairedValue | None:
    """None below ten pairs, where nothing is gained."""
    if len(pairs) < FEWEST_PAIRS:
        return None
    counts = [
        sum(pair.sim_success is in_sim and pair.real_success is in_real for pair in pairs)
        for in_sim, in_real in ((True, True), (True, False), (False, True), (False, False))
    ]
    found = drops.paired_drop(*counts)
    return PairedValue(found.value, (found.low, found.high), found.pairs, found.method)


def _metric(sides: Sides) -> DropAnswer:
    name = sides.question.metric
    found = compare_metric(sides, name)
    sim, real = sides.sim, sides.real
    return DropAnswer(
        **answer_fields(sides, found.reason),
        metric=name,
        sim=_metric_side(sim, found.sim),
        real=_metric_side(real, found.real),
        drop=DropValue(found.value, found.interval, found.relative),
        paired=_paired_metric(sides, name, found.better),
        verdict=found.verdict,
        smallest_that_matters=found.smallest,
        episodes_needed=found.episodes_needed if found.value is not None else EPISODES_TO_START,
        episodes_needed_reason=None if found.value is not None else "to begin with",
        better=found.better,
        direction=found.direction,
        method=found.method,
    )


def _metric_side(side: ComparisonSide, measured: tuple[int, float | None, Interval | None]) -> SideValue:
    return SideValue(*measured, side.aborted, side.abandoned, sampled=side.is_sampled)


def _paired_metric(sides: Sides, name: str, better: Literal["higher", "lower"]) -> PairedValue | None:
    if name != "reward":
        return None
    found = paired_reward(sides.pairs, better)
    return None if found is None else PairedValue(*found, "t of the differences")


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
    found = verdicts.episodes_needed(sim.drop_side, real.drop_side, smallest)
    return _at_size(found, real)


def _for_precision(sides: Sides) -> int | None:
    wanted, sim, real = sides.question.precision, sides.sim, sides.real
    if wanted is None or not sim.n or not real.n:
        return None
    return _at_size(verdicts.episodes_for_precision(sim.drop_side, real.drop_side, wanted), real).more


def _at_size(found: verdicts.EpisodesNeeded, real: ComparisonSide) -> verdicts.EpisodesNeeded:
    """A side of effective counts asks for effective episodes; as many more real ones are needed."""
    more = None if found.more is None else round(found.more * real.session_effect.design_effect)
    return verdicts.EpisodesNeeded(more, found.reason)


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
