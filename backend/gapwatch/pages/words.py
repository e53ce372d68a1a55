"""How pages write numbers and times: value, interval, n; a `<time>` wherever a moment or a day is named."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import lru_cache

from markupsafe import Markup, escape

from gapwatch import notation
from gapwatch.notation import MONTHS, date_words, full_utc_words, time_words, utc_text
from gapwatch.taxonomy import HEADLINE, UNATTRIBUTED, joint_words

count, MINUS = notation.count, notation.MINUS

# The most urgent first.
SEVERITIES = ("critical", "warning", "info")

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
# The end of a silence lies ahead, and nothing else by more.
MOST_AHEAD_DAYS = 60
TEN_THOUSAND, BILLION = 10_000, 1_000_000_000
# A moment in the words of a message, 2 Nov 09:14 UTC, or of an address; a day in those of an answer, 2026-11-02.
_MOMENT = rf"(\d{{1,2}}) ({'|'.join(MONTHS)})(?: (\d{{4}}))? (\d\d):(\d\d) UTC"
_SAID_MOMENT = re.compile(rf"{_MOMENT}|(?<!\")\b(\d{{4}}-\d\d-\d\dT[\d:.]+Z)")
_SAID_DAY = re.compile(r"(?<!\")\b\d{4}-\d\d-\d\d\b(?!T)")
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float, digits: int = 1) -> str:
    """Without its sign: 71.6"""
    return _minus(f"{100 * share:.{digits}f}")


def points(share: float) -> str:
    """A drop in points: 22.5"""
    return _minus(_no_negative_zero(f"{100 * share:.1f}"))


def signed(share: float) -> str:
    """A change in points: +4.0"""
    return _minus(_no_negative_zero(f"{100 * share:+.1f}"))


def point_interval(bounds: Sequence[float]) -> str:
    low, high = bounds
    return f"[{points(low)}, {points(high)}]"


def percent_interval(bounds: Sequence[float]) -> str:
    low, high = bounds
    return f"[{percent(low)}, {percent(high)}]"


def signed_interval(bounds: Sequence[float]) -> str:
    low, high = bounds
    return f"[{signed(low)}, {signed(high)}]"


def turned(bounds: Sequence[float]) -> str:
    """The interval of a loss as that of a change: [5.0, 12.0] lost is [−12.0, −5.0]."""
    low, high = bounds
    return signed_interval((-high, -low))


def number(value: float) -> str:
    """A measured value, as many digits as tell something: 0.019, 34.6, 12 300, 4.2 × 10¹⁷."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= BILLION:
        digits, power = f"{value:.1e}".split("e+")
        return f"{_minus(digits)} × 10{power.lstrip('0').translate(RAISED)}"
    if size >= TEN_THOUSAND:
        return count(round(value))
    text = f"{value:.4g}" if size < 1 else f"{value:.3g}" if size < 100 else f"{value:.0f}"  # noqa: PLR2004
    return _minus(text)


def level(value: object) -> str:
    """A condition's value: yes, no, a number, or the word itself."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return "missing" if value is None else str(value)


def when(at: datetime | str | None) -> Markup:
    """A moment: written in UTC, and in the reader's own time once the script has run; UTC stays on hover."""
    if at is None:
        return Markup('<span class="muted">never</span>')
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    return _moment(at, ' data-time="minute"', time_words(at, _this_year()))


def when_day(at: datetime) -> Markup:
    """The day of a moment, in the reader's own time once the script has run."""
    return _moment(at, ' data-time="day"', date_words(at.astimezone(UTC), _this_year()))


def utc_day(day: date) -> Markup:
    """A day by which episodes are counted. It begins at midnight UTC for every reader, so it is not moved."""
    day = day.astimezone(UTC).date() if isinstance(day, datetime) else day
    words, title = date_words(day, _this_year()), f"{date_words(day, 0)}, from midnight to midnight UTC"
    return Markup(f'<time datetime="{day.isoformat()}" title="{title}">{words}</time>')  # noqa: S704 - our own words


def utc_month(day: date) -> Markup:
    """A month by which episodes are counted: Nov 2026."""
    month = f"{MONTHS[day.month - 1]} {day.year}"
    return Markup(f'<time datetime="{day:%Y-%m}" title="{month}, in UTC">{month}</time>')  # noqa: S704 - our own words


def step_time(at: datetime, tier: str) -> Markup:
    """The start of a step of a trend: an hour, or a day or a month by which episodes are counted."""
    return {"hour": when, "day": utc_day, "month": utc_month}[tier](at)


def input_time(at: str) -> str:
    """A moment of an address, as a field for date and time takes it, in UTC; nothing for a span such as 30d."""
    try:
        return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%dT%H:%M}" if "T" in at else ""
    except ValueError:
        return ""


def ago(at: datetime | None) -> Markup:
    """12 min ago within a day, else the date."""
    if at is None:
        return when(None)
    seconds = (datetime.now(UTC) - at).total_seconds()
    if not 0 <= seconds < DAY_S:
        return when(at)
    text = (
        "now"
        if seconds < MINUTE_S
        else f"{seconds // MINUTE_S:.0f} min ago"
        if seconds < HOUR_S
        else f"{seconds // HOUR_S:.0f} h ago"
    )
    return _moment(at, "", text)


def aged(age: str, at: datetime) -> Markup:
    """How long something has been so, with the moment on hover."""
    return _moment(at, "", str(escape(age)))


def with_times(text: object) -> Markup:
    """Words of a message or an address, which are written in UTC, with each moment as a `<time>`."""

    def as_time(said: re.Match[str]) -> str:
        at = _moment_said(said)
        return said[0] if at is None else str(when(at))

    return Markup(_SAID_MOMENT.sub(as_time, str(escape(text))))  # noqa: S704 - escaped, and our own words


def _moment_said(said: re.Match[str]) -> datetime | None:
    day, month, year, hour, minute, iso = said.groups()
    now = datetime.now(UTC)
    try:
        if iso:
            return datetime.fromisoformat(iso)
        at = datetime(int(year or now.year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC)
        # Messages leave the year out: it is the last one in which this moment is not far ahead.
        return at if year or (at - now).days < MOST_AHEAD_DAYS else at.replace(year=now.year - 1)
    except ValueError:
        return None


def with_days(text: str) -> Markup:
    """The words of an answer, with each day as a `<time>`."""

    def as_day(said: re.Match[str]) -> str:
        try:
            return str(utc_day(date.fromisoformat(said[0])))
        except ValueError:
            return said[0]

    return Markup(_SAID_DAY.sub(as_day, str(escape(text))))  # noqa: S704 - escaped, and our own words


def plain_day(at: datetime) -> str:
    """For figures, which hold no tags."""
    return date_words(at.astimezone(UTC), _this_year())


def _moment(at: datetime, more: str, text: str) -> Markup:
    title = full_utc_words(at)
    return Markup(f'<time datetime="{utc_text(at)}" title="{title}"{more}>{text}</time>')  # noqa: S704 - our own words


def _this_year() -> int:
    return datetime.now(UTC).year


def category_name(category: str) -> str:
    if category == UNATTRIBUTED:
        return "Unattributed"
    return joint_words(category)


def category_colour(category: str) -> str:
    """The CSS token of a category: six hues, a grey for the other seven, a paler one for no evidence."""
    known = category if category in HEADLINE or category == UNATTRIBUTED else "other"
    return f"var(--cat-{known})"


@lru_cache(maxsize=100)
def chip(category: str) -> Markup:
    return Markup('<span class="chip"><i style="--c:{}"></i>{}</span>').format(
        Markup(category_colour(category)),  # noqa: S704 - made of our own words
        escape(category_name(category)),
    )


def plural(number_of: int, noun: str) -> str:
    return f"{count(number_of)} {noun}{'' if number_of == 1 else 's'}"


def _minus(text: str) -> str:
    return text.replace("-", MINUS)


def _no_negative_zero(text: str) -> str:
    return text.lstrip("-+") if float(text) == 0 else text


FILTERS = {
    "count": count,
    "percent": percent,
    "points": points,
    "signed": signed,
    "point_interval": point_interval,
    "percent_interval": percent_interval,
    "signed_interval": signed_interval,
    "turned": turned,
    "number": number,
    "level": level,
    "when": when,
    "when_day": when_day,
    "utc_day": utc_day,
    "utc_month": utc_month,
    "step_time": step_time,
    "input_time": input_time,
    "with_times": with_times,
    "with_days": with_days,
    "ago": ago,
    "aged": aged,
    "chip": chip,
    "category_name": category_name,
    "category_colour": category_colour,
    "plural": plural,
}
