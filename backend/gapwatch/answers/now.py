"""How a deployment does now: the newest episodes, the regime they belong to, what was before, and the drop."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.drop import DropValue, interval_of, smallest_success
from gapwatch.answers.needs import Need
from gapwatch.answers.robots_sites import compare_present_robots
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.answers.window_words import began, newest_words
from gapwatch.statistics.change.present import MovedWord
from gapwatch.statistics.estimates import drops, verdicts
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.tally.presents import StoredPresent, StoredRate, Why

NEEDS = ANSWER_FIELDS | Need.SESSIONS
METHOD = (
    "estimate: Wilson at z = 2.03 over the newest 100 decided episodes of the policy version, fixed in advance; "
    "regime: scan of splits, Wilson at 99 % where it was chosen from the data; drop: newcombe"
)


@dataclass(frozen=True)
class NowEstimate:
    """The newest episodes of the version, their number fixed in advance; `window` names them."""

    value: float | None
    interval: Interval | None
    n: int
    successes: int
    window: str


@dataclass(frozen=True)
class NowRegime:
    """Everything since `since`. Chosen from the data its interval is 99 %, for what the choice costs."""

    value: float | None
    interval: Interval | None
    n: int
    successes: int
    window: str
    chosen_from_data: bool


@dataclass(frozen=True)
class NowSim:
    n: int
    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class NowBefore:
    value: float | None
    interval: Interval | None
    n: int
    until: datetime | None


@dataclass(frozen=True)
class NowMoved:
    """Now minus before in percentage points, negative when it is worse now."""

    points: float | None
    interval: Interval | None
    verdict: MovedWord


@dataclass(frozen=True)
class NowRobot:
    """The robot's newest episodes of the regime; `than_others` says which way it stands out."""

    robot: str
    value: float | None
    interval: Interval | None
    n: int
    stands_out: bool
    than_others: Literal["below", "above"] | None


@dataclass(frozen=True)
class NowValue:
    """`drop` is sim minus the estimate; `design_effect`: so many episodes are worth one independent."""

    since: datetime | None
    why: Why
    estimate: NowEstimate
    regime: NowRegime
    sim: NowSim
    drop: DropValue
    verdict: verdicts.Verdict
    before: NowBefore | None
    moved: NowMoved
    robots: tuple[NowRobot, ...]
    design_effect: float
    computed_at: datetime


@dataclass(frozen=True, kw_only=True)
class NowAnswer(Answer, NowValue):
    method: str


def answer_now(sides: Sides) -> NowAnswer:
    """The sides come with the window `now`: sim whole."""
    value = now_of(sides)
    return NowAnswer(
        **answer_fields(sides),
        **{name: getattr(value, name) for name in NowValue.__dataclass_fields__},
        method=METHOD,
    )


def now_of(sides: Sides) -> NowValue:
    """The present of a deployment beside the baseline of its sides, from the stored present."""
    around = sides.subject.surroundings
    present, computed_at = around.present, around.computed_at or sides.question.now
    smallest = smallest_success(sides.options)
    sim = drops.Side(sides.sim.successes, sides.sim.n, worth_one=sides.sim.session_effect.worth_one)
    return now_value(present, sim, smallest, sides.subject.version, sides.question.now, computed_at)


def now_value(
    present: StoredPresent | None,
    sim: drops.Side,
    smallest: float,
    version: str,
    now: datetime,
    computed_at: datetime,
) -> NowValue:
    """The present with its sim side. Without one, because nothing is folded yet, everything in it is empty."""
    if present is None:
        nothing = StoredRate(0, 0, None)
        estimate, regime, before = nothing, nothing, None
    else:
        estimate, regime, before = present.estimate, present.regime, present.before
    effect = 1.0 if present is None else present.design_effect
    drop = drops.rate_drop(sim, drops.Side(estimate.successes, estimate.n, worth_one=effect))
    value = (
        None
        if drop.value is None
        else DropValue(
            drop.value,
            (drop.low, drop.high),
            drop.relative,
            interval_of(drop.relative_low, drop.relative_high),
        )
    )
    known = value is not None
    return NowValue(
        since=None if present is None else present.since,
        why="start" if present is None else present.why,
        estimate=NowEstimate(
            estimate.value, estimate.interval, estimate.n, estimate.successes, newest_words(estimate.n)
        ),
        regime=NowRegime(
            regime.value,
            regime.interval,
            regime.n,
            regime.successes,
            began(present, version, now).now_words,
            present is not None and present.is_chosen,
        ),
        sim=NowSim(
            sim.n,
            sim.successes / sim.n if sim.n else None,
            wilson(sim.successes / sim.worth_one, sim.n / sim.worth_one) if sim.n else None,
        ),
        drop=value or DropValue(None, None, None),
        verdict=verdicts.verdict(drop.low if known else None, drop.high if known else None, drop.value, smallest),
        before=None
        if before is None or present is None
        else NowBefore(before.value, before.interval, before.n, present.before_until),
        moved=_moved(present),
        robots=_robots(present),
        design_effect=effect,
        computed_at=computed_at,
    )


def _robots(present: StoredPresent | None) -> tuple[NowRobot, ...]:
    """Who stands out is who does in the answer about robots: also by as much as matters."""
    if present is None:
        return ()
    group = compare_present_robots(present)
    odd = set() if group is None else {unit.name for unit in group.odd}
    return tuple(
        NowRobot(
            one.robot,
            one.successes / one.n if one.n else None,
            one.interval,
            one.n,
            one.robot in odd,
            one.than_others if one.robot in odd else None,
        )
        for one in present.robots
    )


def _moved(present: StoredPresent | None) -> NowMoved:
    if present is None:
        return NowMoved(None, None, "too few episodes")
    moved = present.moved
    interval = None if moved.interval is None else (100 * moved.interval[0], 100 * moved.interval[1])
    return NowMoved(None if moved.change is None else 100 * moved.change, interval, moved.verdict)
