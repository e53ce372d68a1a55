"""Advice that fits the evidence: for categories that surely lose, what to do, collect, and how much it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from gapwatch.answers import ledger
from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer, answer_ledger
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import question_of
from gapwatch.answers.subjects import deployment_subject
from gapwatch.closing.advice_content import ADVICE
from gapwatch.closing.closures import FixAnswer, answer_fixes
from gapwatch.closing.fix import FIX_KINDS
from gapwatch.closing.fix_table import FixTableRow, fix_table
from gapwatch.filters import StatisticsFilter
from gapwatch.statistics.estimates.worst_first import surest_first
from gapwatch.store.core.database import Connection
from gapwatch.taxonomy import BY_ID, joint_words

# What a category loses for certain must be worth somebody's week: half a point.
LEAST_ADVISED = 0.005
MOST_KINDS = 3


@dataclass(frozen=True)
class KindExperience:
    """What the team's own fixes of one kind closed against a category. Points are percentage points."""

    kind: str
    kind_name: str
    fixes: int
    decided: int
    points: float | None
    points_interval: Interval | None
    points_per_robot_hour: float | None
    points_per_robot_hour_interval: Interval | None
    did_nothing_share: float | None
    # About how many hours would close what is surely lost here, at that rate; null without one above zero.
    robot_hours_needed: int | None


@dataclass(frozen=True)
class AdviceItem:
    """`contribution` and `interval` are the ledger's, as fractions."""

    category: str
    name: str
    contribution: float
    interval: Interval
    recommend: str
    collect: str
    kinds: tuple[str, ...]
    experience: tuple[KindExperience, ...]
    size: str


@dataclass(frozen=True)
class LogFirst:
    """What cannot be known from what is sent: `points` of the drop, and what to log so that it can."""

    category: str
    name: str
    contribution: float
    interval: Interval | None
    why: str
    log: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AdviceAnswer(Answer):
    """`advice` only for categories whose lower end is above half a point, the surest loss first."""

    advice: tuple[AdviceItem, ...]
    log_first: tuple[LogFirst, ...]


def answer_advice(
    connection: Connection, project_id: int, slug: str, asked: StatisticsFilter, now: datetime
) -> AdviceAnswer:
    subject = deployment_subject(connection, project_id, slug)
    sides = load_sides(connection, project_id, subject, question_of(asked, now), ledger.NEEDS)
    parts = answer_ledger(sides, condition_shares=False)
    own = answer_fixes(connection, project_id, now)
    shared = {name: getattr(parts, name) for name in Answer.__dataclass_fields__}
    return AdviceAnswer(**shared, advice=advise(parts, own), log_first=log_first(parts))


def advise(parts: LedgerAnswer, own: Sequence[FixAnswer]) -> tuple[AdviceItem, ...]:
    """For the categories that surely lose more than half a point, the surest first."""
    table = fix_table(own)
    sure = [
        (part, part.interval)
        for part in parts.categories
        if part.interval is not None and part.interval[0] > LEAST_ADVISED and part.category in ADVICE
    ]
    sure.sort(key=lambda pair: (surest_first(pair[1][0]), pair[0].category))
    return tuple(_item(part, interval, table) for part, interval in sure)


def log_first(parts: LedgerAnswer) -> tuple[LogFirst, ...]:
    """Where the cause cannot be known: what nothing explains, and causes that nothing tells apart."""
    found = []
    rest = parts.unattributed
    if rest is not None and _is_sure(rest) and parts.headline is not None and parts.headline.category is None:
        why = "Nothing that is sent explains it."
        found.append(LogFirst(rest.category, rest.name, rest.contribution, rest.interval, why, parts.headline.log))
    for part in parts.categories:
        if "+" in part.category and _is_sure(part):
            names = part.category.split("+")
            log = tuple(BY_ID[name].collect for name in names if name in BY_ID)
            why = f"Nothing that is sent tells {joint_words(part.category, lower=True).replace(' or ', ' from ')}."
            found.append(LogFirst(part.category, part.name, part.contribution, part.interval, why, log))
    return tuple(found)


def _is_sure(part: CategoryPart) -> bool:
    return part.interval is not None and part.interval[0] > LEAST_ADVISED


def _item(part: CategoryPart, interval: Interval, table: Sequence[FixTableRow]) -> AdviceItem:
    content = ADVICE[part.category]
    rows = [row for row in table if row.category == part.category]
    experience = tuple(_experience(row, interval[0]) for row in rows[:MOST_KINDS])
    return AdviceItem(
        part.category,
        BY_ID[part.category].name,
        part.contribution,
        interval,
        content.recommend,
        content.collect,
        content.kinds,
        experience,
        size_words(experience),
    )


def _experience(row: FixTableRow, surely_lost: float) -> KindExperience:
    rate = row.points_per_robot_hour
    low = None if row.points_per_robot_hour_interval is None else row.points_per_robot_hour_interval[0]
    hours = ceil(100 * surely_lost / rate) if rate is not None and low is not None and low > 0 else None
    return KindExperience(
        row.kind,
        row.kind_name,
        row.fixes,
        row.decided,
        row.points,
        row.points_interval,
        rate,
        row.points_per_robot_hour_interval,
        row.did_nothing_share,
        hours,
    )


def size_words(experience: Sequence[KindExperience]) -> str:
    """How much it takes, by the team's own fixes where they say it."""
    decided = [one for one in experience if one.decided]
    if not decided:
        return "No fix of yours against it has been measured yet: the amounts are the field's."
    best = decided[0]
    name = FIX_KINDS[best.kind]
    fixes = f"{best.decided} {name} fix{'es' if best.decided > 1 else ''} of yours"
    if best.points is None or best.points_interval is None:
        return f"{fixes} {'were' if best.decided > 1 else 'was'} measured."
    low, high = best.points_interval
    words = f"{fixes} closed {best.points:.1f} points on average ({low:.1f} to {high:.1f})"
    if best.did_nothing_share:
        words += f", {round(100 * best.did_nothing_share)} % did nothing"
    if best.points_per_robot_hour is not None:
        words += f"; {best.points_per_robot_hour:.2g} points per robot-hour"
    if best.robot_hours_needed is not None:
        words += f", so about {best.robot_hours_needed} robot-hours for what is surely lost here"
    return words + "."
