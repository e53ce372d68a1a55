"""What is asked: the window, the filter, the metric and the simulator, parsed once for every answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import Any, Literal

from gapwatch.answers.tallies import ALL_TIME
from gapwatch.answers.window_words import EVERYTHING_STORED, Began, span_words
from gapwatch.errors import Fault, Invalid
from gapwatch.filters import (
    AgainstFilter,
    DropFilter,
    PopulationFilter,
    PopulationName,
    SideFilter,
    StatisticsFilter,
    TrendFilter,
    TrustFilter,
    WindowName,
    parse_time,
)
from gapwatch.levels import MISSING, level_of
from gapwatch.store.read.sides import CellFilter, Window

Tier = Literal["hour", "day", "month"]
EVERYTHING = CellFilter()
# Of a query, what says which page is meant and not which episodes.
PAGING = ("after", "limit", "order")
MOST_HOURS = timedelta(days=31)
FEW_DAYS = timedelta(days=4)


@dataclass(frozen=True)
class Question:
    """`filter` is the filter as the caller spelled it, to be echoed in answers and put into links."""

    now: datetime
    window: Window = ALL_TIME
    # What the window is, in words; and the name it was asked for by, until the subject says when that began.
    window_words: str = EVERYTHING_STORED
    asked_window: WindowName | None = None
    # Whether the present is held against what was before it, in place of simulation.
    is_against_before: bool = False
    # Of sim; None where it is that of real.
    sim_window: Window | None = None
    # Whether a trend, and the search for its changes, are of all history whatever the window.
    is_history_whole: bool = False
    wanted: CellFilter = EVERYTHING
    simulators: tuple[str, ...] = ()
    metric: str = "success"
    precision: float | None = None
    # Whom the intervals speak for.
    population: PopulationName = "these"
    tier: Tier | None = None
    filter: Mapping[str, Any] = field(default_factory=dict)


def question_of(asked: SideFilter, now: datetime) -> Question:
    since = None if asked.since is None else parse_time(asked.since, now)
    until = None if asked.until is None else parse_time(asked.until, now)
    if asked.window is not None and (since is not None or until is not None):
        message = f"Give either `window={asked.window}`, or `since` and `until`, not both."
        raise Invalid(message, errors=[Fault(pointer="/query/window", code="two-windows", message=message)])
    is_against_before = isinstance(asked, AgainstFilter) and asked.against == "before"
    if is_against_before and (since is not None or until is not None or asked.window not in (None, "now")):
        message = "`against=before` speaks of the present: leave out `since`, `until` and any `window` but `now`."
        raise Invalid(message, errors=[Fault(pointer="/query/against", code="another-window", message=message)])
    if since is not None and until is not None and since >= until:
        message = "Give a `since` that lies before `until`."
        raise Invalid(message, errors=[Fault(pointer="/query/since", code="empty-window", message=message)])
    return Question(
        now,
        Window(since, until),
        span_words(since, until, now, asked.since),
        "now" if is_against_before else asked.window,
        is_against_before,
        None,
        False,
        CellFilter(
            frozenset(asked.robot), frozenset(asked.site), frozenset(asked.stage), _levels(asked.condition)
        ),
        tuple(asked.simulator) if isinstance(asked, StatisticsFilter) else (),
        asked.metric if isinstance(asked, DropFilter | TrustFilter) else "success",
        asked.precision if isinstance(asked, DropFilter) else None,
        asked.population if isinstance(asked, PopulationFilter) else "these",
        asked.tier if isinstance(asked, TrendFilter) else None,
        {name: value for name, value in asked.model_dump(exclude_unset=True).items() if name not in PAGING},
    )


def settle_window(question: Question, began: Began) -> Question:
    """The question with the window that its name means for a subject. A baseline is not cut with it.

    Where nothing is known of the subject's present yet, everything stored is what there is.
    """
    if question.asked_window in (None, "all"):
        return question
    since = began.now if question.asked_window == "now" else began.version
    if since is None:
        return replace(question, window=ALL_TIME, window_words=EVERYTHING_STORED)
    words = began.now_words if question.asked_window == "now" else began.version_words
    return replace(question, window=Window(since, None), window_words=words, sim_window=ALL_TIME)


def trend_tier(question: Question) -> Tier:
    """Return the steps of a trend: as asked, else hours of a few days and days of anything longer.

    Days of a long window too: there may be few in it, and they are read for the change points anyway.
    """
    filtered = not question.wanted.is_open
    if question.tier == "hour" and filtered:
        message = "Hours are not counted apart for conditions, robots, sites or stages; ask for days."
        raise Invalid(message, errors=[Fault(pointer="/query/tier", code="not-filterable", message=message)])
    if question.tier is not None:
        return question.tier
    window = history_window(question)
    if window.since is None or filtered:
        return "day"
    return "hour" if (window.until or question.now) - window.since <= FEW_DAYS else "day"


def history_window(question: Question) -> Window:
    """Return the window of days: that of the question, or all time."""
    return ALL_TIME if question.is_history_whole else question.window


def trend_window(question: Question) -> Window:
    """Return the window of a trend: of hours, no more than a month of them, the newest."""
    window = history_window(question)
    if trend_tier(question) != "hour":
        return window
    until = window.until or question.now
    return Window(max(window.since or until - MOST_HOURS, until - MOST_HOURS), window.until)


def _levels(conditions: list[str]) -> dict[str, frozenset[str]]:
    """Values of one condition are alternatives. What reads as a number also means the bin it falls into."""
    by_name: dict[str, set[str]] = {}
    for spelled in conditions:
        name, _, value = spelled.partition(":")
        levels = by_name.setdefault(name, set())
        levels.add("" if value == MISSING else value)
        try:
            number = float(value)
        except ValueError:
            continue
        if isfinite(number):
            levels.add(level_of(number))
    return {name: frozenset(levels) for name, levels in by_name.items()}
