"""Real episodes by day, as the search for an onset takes them, bounded however long the history is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, timedelta

from gapwatch.statistics.onset import DayCount, Event, Onset, find_onset
from gapwatch.store.directory import DatedEvent
from gapwatch.store.sides import BucketCount

# The search compares every day with every other; a longer history is taken by the week, and then by four weeks.
MOST_DAYS = 400
STEPS_DAYS = (1, 7, 28, 112)


def onset_of(
    buckets: Iterable[BucketCount],
    versions: Mapping[int, str],
    k_sim: int,
    n_sim: int,
    events: Iterable[DatedEvent] = (),
) -> tuple[Onset, int]:
    """The onset, and how many days were taken together."""
    counts: dict[tuple[date, str, str, str], list[int]] = {}
    for bucket in buckets:
        n = bucket.successes + bucket.failures
        if n:
            cell = bucket.cell
            key = (
                bucket.bucket_at.astimezone(UTC).date(),
                (cell.site or "") if cell else "",
                (cell.robot or "") if cell else "",
                versions.get(bucket.policy_id, ""),
            )
            total = counts.setdefault(key, [0, 0])
            total[0] += bucket.successes
            total[1] += n
    step = _step({key[0] for key in counts})
    merged: dict[tuple[date, str, str, str], list[int]] = {}
    for (day, site, robot, version), (successes, n) in counts.items():
        first = day - timedelta(days=day.toordinal() % step)
        total = merged.setdefault((first, site, robot, version), [0, 0])
        total[0] += successes
        total[1] += n
    days = [DayCount(key[0], k, n, key[1], key[2], key[3]) for key, (k, n) in merged.items()]
    happened = [Event(event.at.astimezone(UTC).date(), event.kind, event.title) for event in events]
    return find_onset(days, k_sim, n_sim, happened), step


def _step(days: set[date]) -> int:
    if not days:
        return 1
    span = (max(days) - min(days)).days + 1
    return next((step for step in STEPS_DAYS if span <= MOST_DAYS * step), STEPS_DAYS[-1])
