"""What was done about a drop, measured before and after; and what could be done next, with what to collect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gapwatch.answers.answer import Interval
from gapwatch.answers.ledger import LedgerAnswer
from gapwatch.answers.trend import Step
from gapwatch.statistics.causes.slices import newcombe
from gapwatch.statistics.estimates.worst_first import surest_first
from gapwatch.store.read.directory import DatedEvent
from gapwatch.taxonomy import BY_ID

# Long enough for some episodes, short enough that little else changed.
DAYS_AROUND = 14
MOST_SUGGESTED = 3
# What a category loses for certain must be worth somebody's week: half a point.
LEAST_SUGGESTED = 0.005


@dataclass(frozen=True)
class DaysAround:
    """Real attempts of the two weeks on one side of an event."""

    successes: int
    n: int

    @property
    def value(self) -> float | None:
        return self.successes / self.n if self.n else None


@dataclass(frozen=True)
class Mitigation:
    """Real success in the two weeks before and after; `change` is positive when it got better."""

    title: str
    at: datetime
    before: DaysAround
    after: DaysAround
    change: float | None
    interval: tuple[float, float] | None
    verdict: str


@dataclass(frozen=True)
class Suggestion:
    category: str
    contribution: float
    interval: Interval
    do: str
    collect: str


def measure_mitigations(events: Sequence[DatedEvent], steps: Sequence[Step]) -> list[Mitigation]:
    """Real success around each mitigation, the newest first."""
    return [_measure(event, steps) for event in events if event.kind == "mitigation"][::-1]


def suggestions(ledger: LedgerAnswer) -> list[Suggestion]:
    """For the categories that surely lose most: what usually helps, and what would make the next answer better.

    By the lower end of the interval, and none below half a point.
    """
    sure = [
        (part, part.interval)
        for part in ledger.categories
        if part.interval is not None and part.interval[0] >= LEAST_SUGGESTED and part.category in BY_ID
    ]
    sure.sort(key=lambda pair: (surest_first(pair[1][0]), pair[0].category))
    return [
        Suggestion(
            part.category,
            part.contribution,
            interval,
            BY_ID[part.category].mitigation,
            BY_ID[part.category].collect,
        )
        for part, interval in sure[:MOST_SUGGESTED]
    ]


def _measure(event: DatedEvent, steps: Sequence[Step]) -> Mitigation:
    """The day of the event itself belongs to neither side."""
    span = timedelta(days=DAYS_AROUND)
    day = event.at.replace(hour=0, minute=0, second=0, microsecond=0)
    before = _sum(step for step in steps if day - span <= step.at < day)
    after = _sum(step for step in steps if day < step.at <= day + span)
    if not before.n or not after.n:
        return Mitigation(event.title, event.at, before, after, None, None, "too few episodes")
    lost, (low, high) = newcombe(before.successes, before.n, after.successes, after.n)
    verdict = "better" if high < 0 else "worse" if low > 0 else "too few episodes"
    return Mitigation(event.title, event.at, before, after, -lost, (-high, -low), verdict)


def _sum(steps: Iterable[Step]) -> DaysAround:
    counts = [(step.successes, step.n) for step in steps]
    return DaysAround(sum(successes for successes, _ in counts), sum(n for _, n in counts))
