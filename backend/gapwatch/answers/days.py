"""Real episodes by day, as the search for an onset takes them, bounded however long the history is."""

from __future__ import annotations

from datetime import UTC, date, timedelta

from gapwatch.answers.comparison import Comparison
from gapwatch.statistics.change.onset import (
    DayCount,
    DayEvent,
    Onset,
    find_onset,
)

# The search compares every day with every other; a longer history is taken by the week, and then by four weeks.
MOST_DAYS = 400
STEPS_DAYS = (1, 7, 28, 112)


def onset_of(comparison: Comparison) -> tuple[Onset, int]:
    """The onset, and how many days were taken together."""
    return comparison.once("onset", lambda: _onset(comparison))


def _onset(comparison: Comparison) -> tuple[Onset, int]:
    versions, sim = comparison.versions, comparison.sim
    judged = [bucket for bucket in comparison.days if bucket.successes or bucket.failures]
    days = {bucket.bucket_at: bucket.bucket_at.astimezone(UTC).date() for bucket in judged}
    step = _step({*days.values()})
    first = {at: day - timedelta(days=day.toordinal() % step) for at, day in days.items()}
    counts = [
        DayCount(
            first[at],
            successes,
            successes + failures,
            (cell.site or "") if cell else "",
            (cell.robot or "") if cell else "",
            versions.get(policy, ""),
        )
        for at, _, policy, _, cell, successes, failures, _, _ in judged
    ]
    happened = [DayEvent(event.at.astimezone(UTC).date(), event.kind, event.title) for event in comparison.events]
    return find_onset(counts, sim.successes, sim.n, happened), step


def _step(days: set[date]) -> int:
    if not days:
        return 1
    span = (max(days) - min(days)).days + 1
    return next((step for step in STEPS_DAYS if span <= MOST_DAYS * step), STEPS_DAYS[-1])
