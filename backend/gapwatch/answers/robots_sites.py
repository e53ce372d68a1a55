"""Is it one robot, or one site: real success of each beside the others, and what happened to the odd one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import sqrt
from statistics import median
from typing import Literal

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.statistics.causes.slices import newcombe
from gapwatch.statistics.change.dispersion import pearson_dispersion
from gapwatch.statistics.estimates.odd_ones import FEWEST, Member, odd_ones
from gapwatch.statistics.estimates.rates import Z_95, SessionSums, wilson
from gapwatch.statistics.estimates.worst_first import surest_first
from gapwatch.store.read.directory import DatedEvent
from gapwatch.store.read.sides import Cell
from gapwatch.tally.presents import StoredPresent

NEEDS = ANSWER_FIELDS | Need.CELLS | Need.DAYS

Kind = Literal["robot", "site"]
MOST_UNITS = 200
MOST_EVENTS = 5
MOST_NAMED = 3
# With many episodes robots differ by a point or two for certain. That is no reason to speak of one of them.
RELEVANT = 0.05
FEWEST_DAYS = 5
DAY_S = 86_400.0


@dataclass(frozen=True)
class UnitEvent:
    """Something that happened to one robot or site, and how many days ago."""

    kind: str
    at: datetime
    title: str
    age_days: float


@dataclass(frozen=True)
class UnitRate:
    """One robot or site. `lost` is what it loses against the others that do not stand out.

    `few`: it has under 20 episodes and is not compared. `events` are there where it stands out, newest first.
    """

    name: str
    n: int
    successes: int
    value: float
    interval: Interval
    lost: float | None
    lost_interval: Interval | None
    stands_out: bool
    verdict: str
    few: bool
    events: tuple[UnitEvent, ...] = ()


@dataclass(frozen=True)
class PooledRate:
    """Those that do not stand out, together."""

    units: int
    n: int
    successes: int
    value: float
    interval: Interval


@dataclass(frozen=True)
class UnitGroup:
    """All robots, or all sites. `unnamed` real episodes name none; `left_out` units had the fewest episodes."""

    by: Kind
    units: tuple[UnitRate, ...]
    others: PooledRate | None
    unnamed: int
    left_out: int
    design_effect: float

    @property
    def odd(self) -> list[UnitRate]:
        return [unit for unit in self.units if unit.stands_out]

    @property
    def worse(self) -> list[UnitRate]:
        return [unit for unit in self.odd if unit.verdict == "worse"]


@dataclass(frozen=True, kw_only=True)
class RobotsAnswer(Answer):
    """A group is null where there is only one robot, or one site. `sentence` says who does worse, if anybody."""

    robots: UnitGroup | None
    sites: UnitGroup | None
    sentence: str | None
    method: str
    fewest: int = FEWEST

    @property
    def groups(self) -> list[UnitGroup]:
        return [group for group in (self.robots, self.sites) if group is not None]


def answer_robots(sides: Sides) -> RobotsAnswer:
    robots = _group(sides, "robot", lambda cell: cell.robot)
    sites = _group(sides, "site", lambda cell: cell.site)
    alike = robots is None and sites is None
    return RobotsAnswer(
        **answer_fields(sides, "The real episodes name no two robots and no two sites." if alike else None),
        robots=robots,
        sites=sites,
        sentence=odd_sentence(robots, sites),
        method=(
            "score test of each against the others together, Bonferroni at 5 %, the farthest taken out first; "
            "Wilson, Newcombe; episodes worth what the days of one robot allow"
        ),
    )


def odd_sentence(robots: UnitGroup | None, sites: UnitGroup | None) -> str | None:
    """Who stands out, for the headline of page and report, and for messages; None where nobody does.

    A site before its robots, unless a single robot is what makes the site stand out. Only who does worse: one that
    does better calls for nothing, and the figure shows it.
    """
    worse_robots = [] if robots is None else robots.worse
    if sites is not None and sites.worse and len(worse_robots) != 1:
        return _sentence(sites)
    return _sentence(robots) if robots is not None and worse_robots else None


def compare_units(
    counts: Mapping[str, tuple[int, int]], by: Kind, *, unnamed: int = 0, design_effect: float = 1.0
) -> UnitGroup | None:
    """Return each beside the others; None where there are not two. `counts`: successes and episodes by name."""
    tried = {name: count for name, count in counts.items() if count[1]}
    if len(tried) <= 1:
        return None
    judged = odd_ones([Member(name, k, n) for name, (k, n) in sorted(tried.items())], design_effect)
    found = {one.name for one in judged if one.stands_out is not None}
    usual = {name: count for name, count in tried.items() if count[1] >= FEWEST and name not in found}
    rate = _rate(_sum(usual.values()))
    found = {name for name in found if abs(rate - _rate(tried[name])) >= RELEVANT}
    usual = {name: count for name, count in tried.items() if count[1] >= FEWEST and name not in found}
    units = [
        _unit(name, count, _others(usual, name), is_odd=name in found, design_effect=design_effect)
        for name, count in tried.items()
    ]
    units.sort(key=lambda unit: (not unit.stands_out, _surest(unit), unit.name))
    kept = units
    if len(units) > MOST_UNITS:
        least = sorted((unit.n for unit in units if not unit.stands_out), reverse=True)[MOST_UNITS - 1]
        kept = [unit for unit in units if unit.stands_out or unit.n >= least][:MOST_UNITS]
    k, n = _sum(usual.values())
    others = PooledRate(len(usual), n, k, k / n, wilson(k, n, _z(design_effect))) if n else None
    return UnitGroup(by, tuple(kept), others, unnamed, len(units) - len(kept), design_effect)


def compare_present_robots(present: StoredPresent, unnamed: int = 0) -> UnitGroup | None:
    """The robots of a present beside one another: each one's newest episodes of the regime."""
    counts = {one.robot: (one.successes, one.n) for one in present.robots}
    return compare_units(counts, "robot", unnamed=unnamed, design_effect=present.design_effect)


def _group(sides: Sides, by: Kind, name_of: Callable[[Cell], str | None]) -> UnitGroup | None:
    counts: dict[str, tuple[int, int]] = {}
    unnamed = 0
    for count in sides.real.cells:
        name, n = name_of(count.cell), count.successes + count.failures
        if name:
            before = counts.get(name, (0, 0))
            counts[name] = (before[0] + count.successes, before[1] + n)
        else:
            unnamed += n
    present = sides.subject.surroundings.present
    if by == "robot" and present is not None and sides.question.asked_window == "now" and sides.is_unfiltered:
        # The same episodes and the same effect as those of the present, so that nothing is said of it twice.
        group = compare_present_robots(present, unnamed)
    elif len(counts) > 1:
        group = compare_units(counts, by, unnamed=unnamed, design_effect=_design_effect(sides, name_of))
    else:
        group = None
    return None if group is None else _with_events(group, sides)


def _design_effect(sides: Sides, name_of: Callable[[Cell], str | None]) -> float:
    """How many episodes are worth one, by how much the days of one robot differ: the median of robots.

    Pearson's χ² over its degrees of freedom. Of one robot's own days, so that a difference between robots does not
    hide itself; and the median, so that neither does the robot that changed on one of them.
    """
    days: dict[str, dict[datetime, tuple[int, int]]] = {}
    for bucket in sides.days:
        name = name_of(bucket.cell) if bucket.cell is not None else None
        n = bucket.successes + bucket.failures
        if name and n and bucket.policy_id == sides.subject.policy_id:
            of_day = days.setdefault(name, {})
            k, before = of_day.get(bucket.bucket_at, (0, 0))
            of_day[bucket.bucket_at] = (k + bucket.successes, before + n)
    effects = []
    for by_day in days.values():
        if len(by_day) >= FEWEST_DAYS:
            sums = SessionSums()
            for k, n in by_day.values():
                sums.add(k, n)
            effects.append(pearson_dispersion(sums) / (len(by_day) - 1))
    return max(1.0, median(effects)) if effects else 1.0


def _with_events(group: UnitGroup, sides: Sides) -> UnitGroup:
    """List what happened to those that stand out, however long ago: a cause may be older than the window."""
    now, until = sides.question.now, sides.question.window.until
    known = [
        event
        for event in sides.subject.surroundings.events
        if event.at <= now and (until is None or event.at < until)
    ]
    units = tuple(
        replace(unit, events=_events_of(unit.name, group.by, known, now)) if unit.stands_out else unit
        for unit in group.units
    )
    return replace(group, units=units)


def _events_of(name: str, by: Kind, events: Sequence[DatedEvent], now: datetime) -> tuple[UnitEvent, ...]:
    """Events that say whom they concern, and those whose title names it as a word."""
    named = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    its = [
        event
        for event in events
        if (name in event.robots if by == "robot" else name == event.site) or named.search(event.title)
    ]
    return tuple(
        UnitEvent(event.kind, event.at, event.title, (now - event.at).total_seconds() / DAY_S)
        for event in its[::-1][:MOST_EVENTS]
    )


def _unit(
    name: str, count: tuple[int, int], others: tuple[int, int], *, is_odd: bool, design_effect: float
) -> UnitRate:
    (k, n), few = count, count[1] < FEWEST
    lost: float | None = None
    interval: Interval | None = None
    if others[1]:
        lost, interval = newcombe(*others, k, n, _z(design_effect))
    verdict = "too few episodes"
    if is_odd and lost is not None:
        verdict = "worse" if lost > 0 else "better"
    elif interval is not None and not few and interval[0] > -RELEVANT and interval[1] < RELEVANT:
        verdict = "none"
    value_interval = wilson(k, n, _z(design_effect))
    return UnitRate(name, n, k, k / n, value_interval, lost, interval, is_odd, verdict, few)


def _surest(unit: UnitRate) -> tuple[bool, bool, float]:
    return surest_first(None if unit.lost_interval is None else unit.lost_interval[0], leads=not unit.few)


def _others(usual: Mapping[str, tuple[int, int]], name: str) -> tuple[int, int]:
    return _sum(count for other, count in usual.items() if other != name)


def _sum(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    listed = list(counts)
    return sum(k for k, _ in listed), sum(n for _, n in listed)


def _rate(count: tuple[int, int]) -> float:
    return count[0] / count[1] if count[1] else 0.0


def _z(design_effect: float) -> float:
    """Of episodes that are worth less: Wilson's limits of k/d and n/d are those of k and n with z·√d."""
    return Z_95 * sqrt(design_effect)


def _sentence(group: UnitGroup) -> str | None:
    """osaka-3 alone: 82 %, the others 93 %. And what happened to it, with its age."""
    odd, others = group.worse, group.others
    if not odd or others is None:
        return None
    rest = f"the others {_percent(others.value)}"
    if others.units == 1:
        rest = f"the other {group.by} {_percent(others.value)}"
    if len(odd) == 1:
        alone = odd[0]
        events = "".join(f" {event.title}, {_age(event.age_days)}." for event in alone.events[:1])
        return f"{alone.name} alone: {_percent(alone.value)}, {rest}.{events}"
    listed = ", ".join(f"{unit.name} {_percent(unit.value)}" for unit in odd[:MOST_NAMED])
    more = f" and {len(odd) - MOST_NAMED} more" if len(odd) > MOST_NAMED else ""
    return f"{listed}{more}; {rest}."


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _age(days: float) -> str:
    if days < 1:
        return "within a day"
    return "a day ago" if days < 2 else f"{days:.0f} days ago"  # noqa: PLR2004 - two days are the first plural


def table_rows(answer: RobotsAnswer) -> list[TableRow]:
    return [
        [
            "by",
            "name",
            "n",
            "successes",
            "value",
            "low",
            "high",
            "lost",
            "lost_low",
            "lost_high",
            "verdict",
            "few",
        ],
        *(
            [
                group.by,
                unit.name,
                unit.n,
                unit.successes,
                unit.value,
                *unit.interval,
                unit.lost,
                *(unit.lost_interval or (None, None)),
                unit.verdict,
                unit.few,
            ]
            for group in answer.groups
            for unit in group.units
        ),
    ]


KIND = AnswerKind(
    name="robots",
    answer_type=RobotsAnswer,
    answer=answer_robots,
    needs=NEEDS,
    summary="Is it one robot, or one site",
    gives="Real success of each robot and of each site.",
    description=(
        "Real success of each robot and of each site beside the others, where there is more than one, and which "
        "of them stand out; with the events that name those.\n\n"
        "One stands out if it is 5 points or more away from the others together and a chance of 5 %, shared by "
        "all of them, does not explain it. One with `few` episodes, under 20, is not compared. With `window=now` "
        "the robots are those of the present: the newest hundred episodes of each in the regime."
    ),
    table=AnswerTable("robots", table_rows),
)
