"""Silences and maintenance windows that come again every week, on the clock of a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from itertools import islice

from pydantic import Field

from gapwatch.watching.working_hours import LOOK_AHEAD, Shift, WorkCalendar, WorkingWindow, ZoneName


class Recurrence(Shift):
    """Days, hours and time zone of a series; an end before the beginning is on the next day."""

    time_zone: ZoneName = Field("UTC", examples=["Europe/Berlin"])

    @cached_property
    def hours(self) -> WorkCalendar:
        shift = Shift.model_validate({"days": self.days, "from": self.start, "to": self.end})
        return WorkCalendar(time_zone=self.time_zone, shifts=(shift,))


def window_at(
    at: datetime, starts_at: datetime, ends_at: datetime | None, recurrence: Recurrence | None
) -> WorkingWindow | None:
    """Return the window that a moment lies in, of a silence that holds once or comes again; None outside it."""
    if at < starts_at or (ends_at is not None and at >= ends_at):
        return None
    window = next(windows_between(at, at + LOOK_AHEAD, starts_at, ends_at, recurrence), None)
    return None if window is None or window.start > at else window


def windows_between(
    since: datetime, until: datetime, starts_at: datetime, ends_at: datetime | None, recurrence: Recurrence | None
) -> Iterator[WorkingWindow]:
    """Yield the windows that overlap a time, cut where the series begins and ends."""
    until = until if ends_at is None else min(until, ends_at)
    since = max(since, starts_at)
    if since >= until:
        return
    if recurrence is None:
        yield WorkingWindow(starts_at, ends_at or until)
        return
    for window in recurrence.hours.windows(since, until):
        end = window.end if ends_at is None else min(window.end, ends_at)
        yield WorkingWindow(max(window.start, starts_at), end)


def next_times(
    after: datetime, starts_at: datetime, ends_at: datetime | None, recurrence: Recurrence, count: int
) -> list[WorkingWindow]:
    """Return the next windows of a series, the present one first."""
    begin = max(after, starts_at)
    return list(islice(windows_between(begin, begin + LOOK_AHEAD, starts_at, ends_at, recurrence), count))
