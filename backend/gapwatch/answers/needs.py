"""What the two sides of a comparison can be asked for. An answer declares its needs; a page loads their union."""

from __future__ import annotations

from enum import Flag, auto
from typing import TypeVar

from gapwatch.answers.question import Question, trend_tier

T = TypeVar("T")


class Need(Flag):
    """How many episodes succeeded and failed is always loaded."""

    CELLS = auto()
    """Outcomes by robot, site, stage and conditions."""
    SESSIONS = auto()
    PLACES = auto()
    """Outcomes by robot and site: what tells these robots from any robot. With cells they are known already."""
    CONTRACTS = auto()
    FAILURE_COUNTS = auto()
    """Failures by cell and by what was said of them."""
    FAILED_EPISODES = auto()
    """Single failures and successes with their signals; a sample where there are many."""
    METRICS = auto()
    PLACED_VALUES = auto()
    """The metric in question of the newest episodes, with robot, site and session."""
    SIGNALS = auto()
    PAIRS = auto()
    DAYS = auto()
    """The real side by day, over all versions of the policy."""
    TASKS = auto()
    """The names of tasks, where the subject is not about one task."""
    SHADOW = auto()
    """Episodes in shadow, and what was forecast from them; nothing where there are none."""
    RANGES = auto()
    """Randomisation ranges, identifications and what episodes measured; nothing where there are none."""
    DROP = auto()
    """What the drop of the metric in question is computed from."""
    TREND = auto()
    """The real side by hour, day or month, as the question asks, and the days in which a change is looked for."""


_METRIC_NEEDS = Need.METRICS | Need.PLACED_VALUES | Need.PLACES | Need.SESSIONS
_DROP_NEEDS = {"success": Need.SESSIONS | Need.PLACES | Need.PAIRS, "reward": _METRIC_NEEDS | Need.PAIRS}


def resolve(needs: Need, question: Question) -> Need:
    """Add what DROP and TREND come down to for the question."""
    if Need.DROP in needs:
        needs |= _DROP_NEEDS.get(question.metric, _METRIC_NEEDS)
    if Need.TREND in needs and trend_tier(question) != "hour":
        needs |= Need.DAYS
    return needs


class NotLoaded(RuntimeError):
    def __init__(self, need: Need) -> None:
        super().__init__(f"Need.{need.name} was not loaded: the NEEDS passed to load_sides lack it.")


def loaded(value: T | None, need: Need) -> T:
    if value is None:
        raise NotLoaded(need)
    return value
