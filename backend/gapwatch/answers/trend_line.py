"""The real success rate as a line: a week's window with its interval, which never spans a change."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from gapwatch.answers.answer import Interval
from gapwatch.answers.trend import Step, TrendAnswer
from gapwatch.statistics.estimates.rates import wilson

WINDOW_DAYS = 7
SAME_CHANGE = timedelta(days=3)
# A longer silence cuts the line.
MOST_SILENT, MOST_SILENT_MONTHS = timedelta(days=14), timedelta(days=62)


@dataclass(frozen=True)
class LinePoint:
    """Real success in the window that ends at a step, with Wilson's interval."""

    at: datetime
    n: int
    value: float
    interval: Interval


def trend_line(answer: TrendAnswer, changed_at: datetime | None = None) -> list[list[LinePoint]]:
    """Runs of the line. A day's window holds seven days of one version and ends where another level begins.

    `changed_at`: an alert knows itself when something changed; else the answer's levels and change points count.
    """
    changes = _changes(answer) if changed_at is None else [changed_at]
    span = timedelta(days=WINDOW_DAYS) if answer.tier == "day" else timedelta(0)
    silence = MOST_SILENT_MONTHS if answer.tier == "month" else MOST_SILENT
    runs: list[list[LinePoint]] = []
    window: deque[Step] = deque()
    k = n = 0
    for step in (step for step in answer.steps if step.n):
        if not runs or _is_cut(window[-1], step, changes, silence):
            runs.append([])
            window.clear()
            k = n = 0
        while window and step.at - window[0].at >= span:
            gone = window.popleft()
            k, n = k - gone.successes, n - gone.n
        window.append(step)
        k, n = k + step.successes, n + step.n
        runs[-1].append(LinePoint(step.at, n, k / n, wilson(k, n)))
    return runs


def _changes(answer: TrendAnswer) -> list[datetime]:
    """Where levels begin; a change point beside one is the same change, dated otherwise."""
    starts = [level.since for level in answer.levels[1:]]
    points = [_midnight(point.day) for point in answer.change_points]
    return starts + [at for at in points if not any(abs(at - start) <= SAME_CHANGE for start in starts)]


def _is_cut(last: Step, step: Step, changes: Sequence[datetime], silence: timedelta) -> bool:
    return (
        step.version != last.version
        or any(last.at < change <= step.at for change in changes)
        or step.at - last.at > silence
    )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
