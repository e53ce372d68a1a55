"""Is it getting worse: the real success rate step by step beside the baseline, and where it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.comparison import Comparison
from gapwatch.answers.days import onset_of
from gapwatch.answers.drop import SideValue, side_value
from gapwatch.answers.question import Tier
from gapwatch.errors import Fault, Invalid
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.store.read import sides
from gapwatch.store.read.directory import DatedEvent
from gapwatch.store.read.sides import BucketCount, Window

# So many steps are still readable as a line.
MOST_STEPS = 400
MOST_HOURS = timedelta(days=31)
FEW_DAYS = timedelta(days=4)


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


@dataclass(frozen=True, kw_only=True)
class TrendAnswer(Answer):
    metric: str
    tier: Tier
    sim: SideValue
    steps: tuple[Step, ...]
    change_points: tuple[ChangePoint, ...]
    events: tuple[DatedEvent, ...]
    method: str


def answer_trend(comparison: Comparison) -> TrendAnswer:
    real, question = comparison.real, comparison.question
    filtered = not question.wanted.is_open
    asked = question.tier
    if asked == "hour" and filtered:
        message = "Hours are not counted apart for conditions, robots, sites or stages; ask for days."
        raise Invalid(message, errors=[Fault(pointer="/query/tier", code="not-filterable", message=message)])
    window = real.window
    tier: Tier = asked or _finest(window, question.now, filtered)
    if tier == "hour":
        until = window.until or question.now
        window = Window(max(window.since or until - MOST_HOURS, until - MOST_HOURS), window.until)
    versions = comparison.versions
    if tier == "day":
        kept = comparison.days
    else:
        scope = sides.Scope("real", tuple(versions), real.scope.task_ids, real.scope.source_ids)
        buckets = sides.bucket_counts(comparison.connection, comparison.project_id, scope, window, tier, filtered)
        kept = [bucket for bucket in buckets if bucket.cell is None or real.wanted.matches(bucket.cell)]
    steps = _steps(comparison, kept, versions, by_month=False)
    if asked is None and tier == "day" and len(steps) > MOST_STEPS:
        tier, steps = "month", _steps(comparison, kept, versions, by_month=True)
    changes = _changes(comparison) if tier != "hour" else ()
    return TrendAnswer(
        **comparison.told(),
        metric="success",
        tier=tier,
        sim=side_value(comparison.sim, real),
        steps=steps,
        change_points=changes,
        events=comparison.events,
        method="wilson per step; change points by binomial models of the days",
    )


def _finest(window: Window, now: datetime, filtered: bool) -> Tier:
    """Days of a long window too: there may be few in it, and they are read for the change points anyway."""
    if window.since is None or filtered:
        return "day"
    return "hour" if (window.until or now) - window.since <= FEW_DAYS else "day"


def _steps(
    comparison: Comparison, buckets: Sequence[BucketCount], versions: Mapping[int, str], *, by_month: bool
) -> tuple[Step, ...]:
    sim = comparison.sim
    base = sim.successes / sim.n if sim.n else None
    # Robots and sites together: a line knows none.
    counted: dict[tuple[datetime, int], list[int]] = {}
    for at, _, policy_id, _, _, successes, failures, aborted, abandoned in buckets:
        total = counted.setdefault((at, policy_id), [0, 0, 0, 0])
        total[0] += successes
        total[1] += failures
        total[2] += aborted
        total[3] += abandoned
    if by_month:
        counted = _months(counted)
    steps = []
    for (at, policy_id), (k, failures, aborted, abandoned) in sorted(counted.items()):
        n = k + failures
        current = policy_id == comparison.subject.policy_id
        value = k / n if n else None
        drop = base - value if current and base is not None and value is not None else None
        interval = wilson(k, n) if n else None
        steps.append(Step(at, versions[policy_id], current, n, k, value, interval, drop, aborted, abandoned))
    return tuple(steps)


def _months(counted: Mapping[tuple[datetime, int], list[int]]) -> dict[tuple[datetime, int], list[int]]:
    months: dict[tuple[datetime, int], list[int]] = {}
    for (at, policy_id), counts in counted.items():
        total = months.setdefault((at.replace(day=1), policy_id), [0, 0, 0, 0])
        for place, count in enumerate(counts):
            total[place] += count
    return months


def _changes(comparison: Comparison) -> tuple[ChangePoint, ...]:
    found, _ = onset_of(comparison)
    if found.change_day is None or found.verdict not in ("step_change", "release_regression"):
        return ()
    plausible = (found.plausible_days[0], found.plausible_days[-1]) if found.plausible_days else None
    return (ChangePoint(found.change_day, plausible, found.change, found.verdict, found.reason),)
