"""What is said of fixes: the outcome beside the expectation, who the control was, what else may have done it."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.closing.closures import FixAnswer
from gapwatch.closing.week_words import outcome_words
from gapwatch.notation import date_words

MOST_UNITS = 4


def fixes_headline(fixes: Sequence[FixAnswer]) -> str:
    """Of 5 fixes 2 closed something, 1 did nothing, 1 made it worse; 1 has too few episodes."""
    if not fixes:
        return "No fix was recorded yet."
    counts = {
        word: sum(fix.closure.verdict == word for fix in fixes)
        for word in ("closed", "did nothing", "worse", "too few episodes")
    }
    words = {
        "closed": "{} closed something",
        "did nothing": "{} did nothing",
        "worse": "{} made it worse",
        "too few episodes": "{} cannot be told yet",
    }
    parts = [words[word].format(number) for word, number in counts.items() if number]
    return f"Of {len(fixes)} fix{'es' if len(fixes) > 1 else ''} {', '.join(parts)}."


def outcome_sentence(fix: FixAnswer) -> str:
    words = outcome_words(fix)
    against = f", {fix.expectation}" if fix.expectation else ""
    return f"{words[:1].upper()}{words[1:]}{against}."


def control_words(fix: FixAnswer) -> str:
    control = fix.closure.control
    if control is None:
        return "None: whatever else changed in these days counts as the fix."
    named = ", ".join(control.units[:MOST_UNITS])
    more = f" and {len(control.units) - MOST_UNITS} more" if len(control.units) > MOST_UNITS else ""
    moved = "gained" if control.points >= 0 else "lost"
    return f"{control.kind} {named}{more}, which {moved} {abs(control.points):.1f} points without it"


def periods_words(fix: FixAnswer) -> str:
    """When each side was, and how many days are on none."""
    closure = fix.closure
    before, after = closure.before, closure.after
    words = f"before: {date_words(before.since)} to {date_words(before.until)}, {before.n} episodes"
    if after is None:
        return words
    words += f"; after: from {date_words(after.since)}, {after.n} episodes"
    days = closure.days_on_no_side
    if days:
        words += f"; {days} day{'s' if days > 1 else ''} between are on no side"
    return words


def cost_words(fix: FixAnswer) -> str:
    parts = []
    if fix.robot_hours is not None:
        parts.append(f"{fix.robot_hours:g} robot-hours")
    if fix.demonstrations is not None:
        parts.append(f"{fix.demonstrations} demonstrations")
    return ", ".join(parts)


def where_words(fix: FixAnswer) -> str:
    parts = [fix.deployment or "whole project"]
    if fix.robots:
        parts.append("robots " + ", ".join(fix.robots[:MOST_UNITS]))
    if fix.conditions:
        parts.append(", ".join(f"{name}: {level}" for name, level in fix.conditions.items()))
    if fix.from_version:
        parts.append(f"from version {fix.from_version}")
    return " · ".join(parts)
