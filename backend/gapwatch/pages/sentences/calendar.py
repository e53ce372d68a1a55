"""Shifts and hours in words: what a calendar or a recurring silence says, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from gapwatch.watching.recurrence import Recurrence
from gapwatch.watching.working_hours import DAYS, Shift, WorkCalendar

_PREFIX = "Value error, "


def days_in_words(days: Sequence[str]) -> str:
    """Mon–Fri, Sat; every day."""
    numbers = sorted(DAYS.index(day) for day in DAYS if day in days)
    if len(numbers) == len(DAYS):
        return "every day"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(_run(run) for run in runs)


def shift_in_words(shift: Shift) -> str:
    """Mon–Fri 22:00–06:00"""
    if (shift.start, shift.end) == ("00:00", "24:00"):
        return f"{days_in_words(shift.days)}, all day"
    return f"{days_in_words(shift.days)} {shift.start}–{shift.end}"


def hours_in_words(calendar: WorkCalendar) -> list[str]:
    lines = [shift_in_words(shift) for shift in calendar.shifts]
    if calendar.holidays:
        noun = "holiday" if len(calendar.holidays) == 1 else "holidays"
        lines.append(f"without {len(calendar.holidays)} {noun}")
    return [*lines, calendar.time_zone]


def recurrence_in_words(recurrence: Recurrence) -> str:
    """Sun 22:00–02:00 (Europe/Berlin)"""
    return f"{shift_in_words(recurrence)} ({recurrence.time_zone})"


def faults_in_words(error: ValidationError) -> str:
    """What is wrong with a form, field by field: shift 1, from: not a time of day …"""
    words = []
    for fault in error.errors(include_input=False, include_url=False):
        place = [str(part + 1) if isinstance(part, int) else part.replace("_", " ") for part in fault["loc"]]
        words.append(": ".join(filter(None, (" ".join(place), str(fault["msg"]).removeprefix(_PREFIX)))))
    return ". ".join(words) + "."


def _run(run: list[int]) -> str:
    first, last = DAYS[run[0]].capitalize(), DAYS[run[-1]].capitalize()
    if len(run) == 1:
        return first
    return f"{first}, {last}" if len(run) == 2 else f"{first}–{last}"  # noqa: PLR2004
