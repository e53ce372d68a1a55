"""When robots work: weekly shifts on the clock of a time zone, less holidays. Callers say what time it is.

A shift belongs to the day on which it begins, also where it ends after midnight, and holidays take away the shifts
that begin on them. Clock times are turned into instants day by day, so that a change of the clock is inside:
a time that the clock jumps over is that of the hour before the jump, and of a time that comes twice a shift begins
at the first and ends at the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES_A_DAY = 24 * 60
MOST_SHIFTS = 50
MOST_HOLIDAYS = 2000
# Far enough for any window that comes again every week, holidays included.
LOOK_AHEAD = timedelta(days=400)
_ONE_DAY = timedelta(days=1)
_SHORTEST = timedelta(microseconds=1)


class WorkingWindow(NamedTuple):
    """From `start` until before `end`, in UTC."""

    start: datetime
    end: datetime


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def known_zone(name: str) -> str:
    if name not in _zones():
        raise ValueError("not a time zone; write it like Europe/Berlin")
    return name


def _clock_minutes(text: str) -> int:
    hours, colon, minutes = text.partition(":")
    digits = hours + minutes
    is_clock = colon and len(hours) == len(minutes) == 2 and digits.isascii() and digits.isdecimal()  # noqa: PLR2004
    if not is_clock or int(minutes) >= 60 or int(hours) * 60 + int(minutes) > MINUTES_A_DAY:  # noqa: PLR2004
        raise ValueError("not a time of day; write it like 08:00, and the end of the day as 24:00")
    return int(hours) * 60 + int(minutes)


def _clock(text: str) -> str:
    _clock_minutes(text)
    return text


def _day_text(value: Any) -> Any:
    """A date is written 2026-12-25; a number would be taken for seconds since 1970."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str) or len(value) != len("2026-12-25"):
        raise ValueError("not a date; write it like 2026-12-25")
    return value


ZoneName = Annotated[str, Field(max_length=64), AfterValidator(known_zone)]
ClockText = Annotated[str, Field(max_length=5, examples=["08:00"]), AfterValidator(_clock)]
Holiday = Annotated[date, BeforeValidator(_day_text)]


class Shift(BaseModel):
    """Hours of some days of the week; an end before the beginning is on the next day."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    days: Annotated[tuple[Day, ...], Field(max_length=7)] = DAYS
    start: ClockText = Field(alias="from")
    end: ClockText = Field(alias="to")

    @field_validator("days")
    @classmethod
    def _each_once(cls, days: tuple[Day, ...]) -> tuple[Day, ...]:
        if not days:
            raise ValueError("name at least one day, or leave `days` out for all of them")
        return tuple(day for day in DAYS if day in days)

    @model_validator(mode="after")
    def _lasts(self) -> Shift:
        if self.start == "24:00":
            raise ValueError("a shift cannot begin at 24:00; write 00:00 of the next day")
        if self.start == self.end:
            raise ValueError("a shift ends at another time than it begins; a whole day is 00:00 to 24:00")
        return self

    @cached_property
    def minutes(self) -> tuple[int, int]:
        """Beginning and end in minutes of the day on which it begins."""
        start, end = _clock_minutes(self.start), _clock_minutes(self.end)
        return start, end if end > start else end + MINUTES_A_DAY

    @cached_property
    def weekdays(self) -> frozenset[int]:
        return frozenset(DAYS.index(day) for day in self.days)


class WorkCalendar(BaseModel):
    """The hours in which a deployment's robots are expected to work."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time_zone: ZoneName = Field("UTC", examples=["Europe/Berlin"])
    shifts: Annotated[tuple[Shift, ...], Field(max_length=MOST_SHIFTS)]
    holidays: Annotated[tuple[Holiday, ...], Field(max_length=MOST_HOLIDAYS)] = ()

    @field_validator("shifts")
    @classmethod
    def _some(cls, shifts: tuple[Shift, ...]) -> tuple[Shift, ...]:
        if not shifts:
            raise ValueError("give at least one shift; around the clock is one of 00:00 to 24:00")
        return shifts

    @field_validator("holidays")
    @classmethod
    def _in_order(cls, holidays: tuple[date, ...]) -> tuple[date, ...]:
        return tuple(sorted(set(holidays)))

    def is_working(self, at: datetime) -> bool:
        return any(self._single_windows(at, at + _SHORTEST))

    def working_until(self, at: datetime) -> datetime | None:
        """Return when the working hours that a moment lies in end; None outside them.

        Hours without an end, as around the clock, are followed for `LOOK_AHEAD`.
        """
        window = next(self.windows(at, at + LOOK_AHEAD), None)
        return None if window is None or window.start > at else window.end

    def working_seconds(self, start: datetime, end: datetime) -> float:
        """Return how much of the time between two moments is working time."""
        return sum(
            (min(window.end, end) - max(window.start, start)).total_seconds()
            for window in self.windows(start, end)
        )

    def windows(self, start: datetime, end: datetime) -> Iterator[WorkingWindow]:
        """Yield the working hours that overlap a time, in order; those that touch are one."""
        if start >= end:
            return
        joined: WorkingWindow | None = None
        for window in self._single_windows(start, end):
            if joined is not None and window.start <= joined.end:
                joined = WorkingWindow(joined.start, max(joined.end, window.end))
                continue
            if joined is not None:
                yield joined
            joined = window
        if joined is not None:
            yield joined

    def next_windows(self, after: datetime, count: int) -> list[WorkingWindow]:
        """Return the next working hours, the present ones first."""
        found: list[WorkingWindow] = []
        for window in self.windows(after, after + LOOK_AHEAD):
            found.append(window)
            if len(found) == count:
                break
        return found

    def _single_windows(self, start: datetime, end: datetime) -> Iterator[WorkingWindow]:
        # A shift of the day before yesterday is over: it lasts a day at most, and clocks change by hours.
        day = start.astimezone(self.zone).date() - 2 * _ONE_DAY
        last = end.astimezone(self.zone).date()
        while day <= last:
            windows = [self._window_on(day, shift) for shift in self.shifts if self._takes_place(shift, day)]
            for window in sorted(windows):
                if window.end > start and window.start < end and window.end > window.start:
                    yield window
            day += _ONE_DAY

    def _takes_place(self, shift: Shift, day: date) -> bool:
        return day.weekday() in shift.weekdays and day not in self.days_off

    def _window_on(self, day: date, shift: Shift) -> WorkingWindow:
        start, end = shift.minutes
        first, _ = self._instants(day, start)
        return WorkingWindow(first, max(self._instants(day, end)))

    def _instants(self, day: date, minutes: int) -> tuple[datetime, datetime]:
        """Return both readings of a clock time, which differ around a change of the clock."""
        days, minutes = divmod(minutes, MINUTES_A_DAY)
        clock = datetime.combine(day + timedelta(days=days), time(*divmod(minutes, 60)), self.zone)
        return clock.astimezone(UTC), clock.replace(fold=1).astimezone(UTC)

    @cached_property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    @cached_property
    def days_off(self) -> frozenset[date]:
        return frozenset(self.holidays)
