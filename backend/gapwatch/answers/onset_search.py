"""The onset of a loss in the real days, bounded however long the history is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, timedelta
from typing import NamedTuple

from gapwatch.answers.comparison_side import Outcomes
from gapwatch.statistics.change.onset import (
    DayCount,
    DayEvent,
    Onset,
    find_onset,
)
from gapwatch.store.read.directory import DatedEvent
from gapwatch.store.read.sides import BucketCount

# The search compares every day with every other; a longer history is taken by the week, and then by four weeks.
MOST_DAYS = 400
STEPS_DAYS = (1, 7, 28, 112)


class DatedOnset(NamedTuple):
    """`step_days`: how many days were taken together."""

    onset: Onset
    step_days: int


def search_onset(
    buckets: Sequence[BucketCount], versions: Mapping[int, str], sim: Outcomes, events: Sequence[DatedEvent]
) -> DatedOnset:
    judged = [bucket for bucket in buckets if bucket.successes or bucket.failures]
    days = {bucket.bucket_at: bucket.bucket_at.astimezone(UTC).date() for bucket in judged}
    step = _step({*days.values()})
    first = {at: day - timedelta(days=day.toordinal() % step) for at, day in days.items()}
    counts = [
        DayCount(
            first[bucket.bucket_at],
            bucket.successes,
            bucket.successes + bucket.failures,
            (bucket.cell.site or "") if bucket.cell else "",
            (bucket.cell.robot or "") if bucket.cell else "",
            versions.get(bucket.policy_id, ""),
        )
        for bucket in judged
    ]
    happened = [DayEvent(event.at.astimezone(UTC).date(), event.kind, event.title) for event in events]
    return DatedOnset(find_onset(counts, sim.successes, sim.n, happened), step)


def _step(days: set[date]) -> int:
    if not days:
        return 1
    span = (max(days) - min(days)).days + 1
    return next((step for step in STEPS_DAYS if span <= MOST_DAYS * step), STEPS_DAYS[-1])
