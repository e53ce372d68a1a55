"""How numbers and times are written, on pages, in figures, in messages and in the terminal: in one way.

2 400 with a thin gap; 2 Nov 09:14, and with its year where that does not go without saying. CSV and JSON have
plain digits and ISO 8601 in UTC instead.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

THIN_GAP = "\u202f"
MINUS = "\u2212"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def count(number: float) -> str:
    """2 400, with a thin gap; evidence weights keep one digit."""
    text = f"{number:,.1f}" if number != int(number) else f"{int(number):,}"
    return text.replace(",", THIN_GAP).replace("-", MINUS)


def utc_text(at: datetime) -> str:
    """2026-11-02T09:00:00Z"""
    return at.astimezone(UTC).isoformat()[:19] + "Z"


def date_words(day: date, this_year: int | None = None) -> str:
    """2 Nov; with its year when `this_year` is another one."""
    year = "" if this_year in (None, day.year) else f" {day.year}"
    return f"{day.day} {MONTHS[day.month - 1]}{year}"


def time_words(at: datetime, this_year: int | None = None) -> str:
    """2 Nov 09:00, in UTC; whoever shows it says so."""
    return clock_words(at.astimezone(UTC), this_year)


def clock_words(at: datetime, this_year: int | None = None) -> str:
    """2 Nov 09:00 on the clock of its own time zone; whoever shows it says which."""
    return f"{date_words(at, this_year)} {at.hour:02}:{at.minute:02}"


def utc_words(at: datetime) -> str:
    """2 Nov 09:00 UTC, for messages, which have one reader in Berlin and one in Osaka."""
    return f"{time_words(at)} UTC"


def full_utc_words(at: datetime) -> str:
    """2 Nov 2026 09:00:03 UTC, for whoever wants to know exactly."""
    at = at.astimezone(UTC)
    return f"{at.day} {MONTHS[at.month - 1]} {at.year} {at:%H:%M:%S} UTC"
