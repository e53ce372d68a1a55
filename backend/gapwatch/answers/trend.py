"""Is it getting worse: the real success rate step by step beside the baseline, and where it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise, zip_longest

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.drop import SideValue, side_value
from gapwatch.answers.needs import Need
from gapwatch.answers.question import Tier, trend_tier
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.filters import TrendFilter
from gapwatch.statistics.change.level_steps import find_steps
from gapwatch.statistics.change.onset import Onset
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.store.read.directory import DatedEvent

NEEDS = ANSWER_FIELDS | Need.SESSIONS | Need.TREND

# So many steps are still readable as a line.
MOST_STEPS = 400


@dataclass(frozen=True)
class Step:
    """One hour, day or month of one policy version. `current` is the version that the deployment runs now."""

    at: datetime
    version: str
    current: bool
    n: int
    successes: int
    value: float | None
    interval: Interval | None
    drop: float | None
    aborted: int
    abandoned: int


@dataclass(frozen=True)
class ChangePoint:
    """Where success fell for good; the change lies on one of the plausible days with 95 % confidence."""

    day: date
    plausible: tuple[date, date] | None
    change: float | None
    kind: str
    sentence: str


@dataclass(frozen=True)
class TrendLevel:
    """Days of one version at one level, from `since` until the next step; the last one is open."""

    since: datetime
    until: datetime | None
    version: str
    n: int
    successes: int
    value: float
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class TrendAnswer(Answer):
    metric: str
    tier: Tier
    sim: SideValue
    steps: tuple[Step, ...]
    change_points: tuple[ChangePoint, ...]
    events: tuple[DatedEvent, ...]
    method: str
    # Empty where steps are hours.
    levels: tuple[TrendLevel, ...] = ()


def answer_trend(sides: Sides) -> TrendAnswer:
    tier = trend_tier(sides.question)
    steps = _steps(sides, by_month=False)
    if sides.question.tier is None and tier == "day" and len(steps) > MOST_STEPS:
        tier, steps = "month", _steps(sides, by_month=True)
    return TrendAnswer(
        **answer_fields(sides),
        metric="success",
        tier=tier,
        sim=side_value(sides.sim, sides.real),
        steps=steps,
        change_points=_changes(sides.onset.onset) if tier != "hour" else (),
        events=sides.events,
        method="wilson per step; change points by binomial models of the days; levels by binary segmentation",
        levels=_levels(sides) if tier != "hour" else (),
    )


def _levels(sides: Sides) -> tuple[TrendLevel, ...]:
    """The days of each version, split where success stepped. The change that the present begins with is one.

    What drifts since then has no level, and is not searched for steps.
    """
    present = sides.subject.surroundings.present
    known, drifts = None, False
    if present is not None and present.since is not None and present.why in ("change", "baseline", "drifting"):
        known, drifts = _nearest_midnight(present.since), present.why == "drifting"
    counted: dict[int, dict[datetime, tuple[int, int]]] = {}
    for bucket in sides.days:
        days = counted.setdefault(bucket.policy_id, {})
        k, n = days.get(bucket.bucket_at, (0, 0))
        days[bucket.bucket_at] = (k + bucket.successes, n + bucket.successes + bucket.failures)
    effect = 1.0 if present is None else present.design_effect
    runs: list[tuple[str, list[tuple[datetime, tuple[int, int]]]]] = []
    for policy_id, days in counted.items():
        of_version = [(at, count) for at, count in sorted(days.items()) if count[1]]
        is_own = policy_id == sides.subject.policy_id
        parts = [of_version]
        if is_own and known is not None:
            parts = [[day for day in of_version if day[0] < known], [day for day in of_version if day[0] >= known]]
        for place, part in enumerate(parts):
            searched = not (drifts and is_own and place == 1)
            starts = find_steps([count for _, count in part], effect) if searched else []
            for first, last in pairwise([0, *starts, len(part)]):
                if first < last:
                    runs.append((sides.versions[policy_id], part[first:last]))
    runs.sort(key=lambda run: run[1][0][0])
    levels = []
    for (version, run), follower in zip_longest(runs, runs[1:]):
        k, n = (sum(count[side] for _, count in run) for side in (0, 1))
        until = None if follower is None else follower[1][0][0]
        levels.append(TrendLevel(run[0][0], until, version, n, k, k / n, wilson(k, n)))
    return tuple(levels)


def _nearest_midnight(at: datetime) -> datetime:
    """A day is counted whole: with what is most of it."""
    return (at.astimezone(UTC) + timedelta(hours=12)).replace(hour=0, minute=0, second=0, microsecond=0)


def _steps(sides: Sides, *, by_month: bool) -> tuple[Step, ...]:
    sim, versions = sides.sim, sides.versions
    base = sim.successes / sim.n if sim.n else None
    # Robots and sites together: a line knows none.
    counted: dict[tuple[datetime, int], list[int]] = {}
    for bucket in sides.trend:
        total = counted.setdefault((bucket.bucket_at, bucket.policy_id), [0, 0, 0, 0])
        total[0] += bucket.successes
        total[1] += bucket.failures
        total[2] += bucket.aborted
        total[3] += bucket.abandoned
    if by_month:
        counted = _months(counted)
    steps = []
    for (at, policy_id), (k, failures, aborted, abandoned) in sorted(counted.items()):
        n = k + failures
        current = policy_id == sides.subject.policy_id
        value = k / n if n else None
        drop = base - value if current and base is not None and value is not None else None
        interval = wilson(k, n) if n else None
        steps.append(Step(at, versions[policy_id], current, n, k, value, interval, drop, aborted, abandoned))
    return tuple(steps)


def _months(counted: Mapping[tuple[datetime, int], list[int]]) -> dict[tuple[datetime, int], list[int]]:
    months: dict[tuple[datetime, int], list[int]] = {}
    for (at, policy_id), counts in counted.items():
        total = months.setdefault((at.replace(day=1), policy_id), [0, 0, 0, 0])
        for index, count in enumerate(counts):
            total[index] += count
    return months


def _changes(onset: Onset) -> tuple[ChangePoint, ...]:
    if onset.change_day is None or onset.verdict not in ("step_change", "release_regression"):
        return ()
    plausible = (onset.plausible_days[0], onset.plausible_days[-1]) if onset.plausible_days else None
    return (ChangePoint(onset.change_day, plausible, onset.change, onset.verdict, onset.reason),)


def table_rows(answer: TrendAnswer) -> list[TableRow]:
    return [
        ["at", "version", "n", "successes", "value", "low", "high", "aborted", "abandoned"],
        *(
            [
                step.at.isoformat(),
                step.version,
                step.n,
                step.successes,
                step.value,
                *(step.interval or (None, None)),
                step.aborted,
                step.abandoned,
            ]
            for step in answer.steps
        ),
    ]


KIND = AnswerKind(
    name="trend",
    answer_type=TrendAnswer,
    answer=answer_trend,
    needs=NEEDS,
    summary="Is it getting worse",
    gives="Success over time.",
    description=(
        "The real success rate by hour, day or month beside the baseline, with the point where it fell for "
        "good, and the `levels` between its steps: where it stepped a line must break.\n\n"
        "Steps are whole: the first and the last one reach beyond a window that begins or ends within them. "
        "Versions of the policy stand apart; `current` marks the one that runs now."
    ),
    filter=TrendFilter,
    table=AnswerTable("trend", table_rows),
)
