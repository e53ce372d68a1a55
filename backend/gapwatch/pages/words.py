"""How pages write numbers and times: value, interval, n; a thin gap in 2 400; a real minus sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from markupsafe import Markup, escape

from gapwatch.taxonomy import BY_ID, HEADLINE, UNATTRIBUTED

# The most urgent first.
SEVERITIES = ("critical", "warning", "info")

THIN_GAP = "\u202f"
MINUS = "\u2212"
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
TEN_THOUSAND, BILLION = 10_000, 1_000_000_000
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(number: float) -> str:
    """2 400, with a thin gap; evidence weights keep one digit."""
    text = f"{number:,.1f}" if number != int(number) else f"{int(number):,}"
    return text.replace(",", THIN_GAP).replace("-", MINUS)


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


def utc_text(at: datetime) -> str:
    """2026-11-02T09:00:00Z"""
    return at.astimezone(UTC).isoformat()[:19] + "Z"


def plain_day(at: datetime) -> str:
    at = at.astimezone(UTC)
    year = "" if at.year == datetime.now(UTC).year else f" {at.year}"
    return f"{at.day} {MONTHS[at.month - 1]}{year}"


def plain_time(at: datetime) -> str:
    at = at.astimezone(UTC)
    return f"{plain_day(at)} {at.hour:02}:{at.minute:02}"


def when(at: datetime | str | None) -> Markup:
    """A moment: written in UTC, and in the reader's own time once the script has run; UTC stays on hover."""
    if at is None:
        return Markup('<span class="muted">never</span>')
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    return _moment(at, " data-time", plain_time(at))


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


def _moment(at: datetime, more: str, text: str) -> Markup:
    iso = utc_text(at)
    title = f"{int(iso[8:10])} {MONTHS[int(iso[5:7]) - 1]} {iso[:4]} {iso[11:19]} UTC"
    return Markup(f'<time datetime="{iso}" title="{title}"{more}>{text}</time>')  # noqa: S704 - our own words


def category_name(category: str) -> str:
    if category == UNATTRIBUTED:
        return "Unattributed"
    return BY_ID[category].name if category in BY_ID else category


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
    "ago": ago,
    "chip": chip,
    "category_name": category_name,
    "category_colour": category_colour,
    "plural": plural,
}
