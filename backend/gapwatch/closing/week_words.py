"""The week in words: a headline and a line a subject, for the digest and the page."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.closing.closures import FixAnswer
from gapwatch.closing.week import MovedDeployment, WeekAnswer, WeekBias, WorthHours
from gapwatch.notation import MINUS, date_words

MOST_LINES = 5


def week_headline(week: WeekAnswer) -> str:
    """2 deployments fell and 1 rose since last week; 3 open incidents have no owner."""
    fell, rose = (sum(one.verdict == word for one in week.moved) for word in ("fell", "rose"))
    parts = []
    if fell or rose:
        moved = [f"{number} {word}" for number, word in ((fell, "fell"), (rose, "rose")) if number]
        first, _, verb = moved[0].partition(" ")
        noun = "deployment" if first == "1" else "deployments"
        parts.append(" and ".join([f"{first} {noun} {verb}", *moved[1:]]) + " since last week")
    else:
        parts.append("No deployment moved since last week" if week.deployments else "No deployments yet")
    if week.incidents.unowned:
        parts.append(
            f"{week.incidents.unowned} open incident{'s have' if week.incidents.unowned > 1 else ' has'} no owner"
        )
    if week.waiting:
        parts.append(
            f"{len(week.waiting)} rollout{'s wait' if len(week.waiting) > 1 else ' waits'} for a decision"
        )
    return "; ".join(parts) + "."


def week_name(week: WeekAnswer) -> str:
    last = week.until.fromordinal(week.until.toordinal() - 1)
    return f"{date_words(week.since)} to {date_words(last)}"


def week_lines(week: WeekAnswer) -> list[str]:
    """Plain text, a line a fact, each subject with its own first line; nothing of a subject that has nothing."""
    incidents = week.incidents
    return [
        *_titled("Moved", [move_words(one) for one in week.moved]),
        f"Incidents: {incidents.opened} opened, {incidents.closed} closed, {incidents.open} open, "
        f"{incidents.unowned} without an owner.",
        *_titled("Fixes", [fix_words(fix) for fix in week.fixes]),
        *_titled(
            "Decided",
            [
                f"{one.deployment}: {one.kind}, {one.from_stage} to {one.to_stage}, by {one.who}"
                for one in week.decided
            ],
        ),
        *_titled(
            "Waiting",
            [f"{one.deployment}: {one.next_decision}" + _overdue(one.overdue) for one in week.waiting],
        ),
        *_titled("Where robot-hours would buy most", [worth_words(one) for one in week.worth_hours]),
        *_titled("Simulators", [bias_line(one) for one in week.simulators if one.verdict != "too few episodes"]),
    ]


def _titled(title: str, facts: Sequence[str]) -> list[str]:
    if not facts:
        return []
    more = [f"  and {len(facts) - MOST_LINES} more"] if len(facts) > MOST_LINES else []
    return [f"{title}:", *(f"  {fact}" for fact in facts[:MOST_LINES]), *more]


def _overdue(words: str | None) -> str:
    return "" if words is None else f", overdue: {words}"


def move_words(one: MovedDeployment) -> str:
    assert one.points is not None and one.interval is not None  # noqa: S101 - what moved was measured
    low, high = one.interval
    before, after = one.last_week.value or 0.0, one.this_week.value or 0.0
    return (
        f"{one.deployment} {one.verdict} by {abs(one.points):.1f} points ({_signed(low)} to {_signed(high)}): "
        f"{100 * before:.0f} % of {one.last_week.n} to {100 * after:.0f} % of {one.this_week.n}"
    )


def fix_words(fix: FixAnswer) -> str:
    """Title: closed 14.2 points (8.0 to 20.4), 15 expected."""
    where = "" if fix.deployment is None else f"{fix.deployment}, "
    return f"{where}{fix.title}: {outcome_words(fix)}"


def outcome_words(fix: FixAnswer) -> str:
    closure = fix.closure
    expected = "" if fix.expected_points is None else f", {fix.expected_points:g} expected"
    if closure.points is None or closure.interval is None:
        why = closure.reason or "too few episodes"
        return f"{why.rstrip('.')}{expected}"
    low, high = closure.interval
    verb = {"closed": "closed", "worse": "made it worse:", "did nothing": "did nothing:"}.get(
        closure.verdict, "so far"
    )
    return f"{verb} {_signed(closure.points)} points ({_signed(low)} to {_signed(high)}){expected}"


def worth_words(one: WorthHours) -> str:
    low = 100 * one.interval[0]
    words = (
        f"{one.deployment}: about {one.failures_a_week:.0f} failures a week that simulation does not have "
        f"(at least {low:.1f} points of {one.episodes_a_week} episodes)"
    )
    if one.category_name is not None:
        words += f", led by {one.category_name.lower()}"
    if one.points_per_robot_hour is not None and one.fix_kind is not None:
        words += f"; your {one.fix_kind} closed {one.points_per_robot_hour:.2g} points per robot-hour"
    return words


def bias_line(one: WeekBias) -> str:
    low, high = one.interval
    return (
        f"{one.simulator} {one.version} on {one.task} {one.verdict}"
        f" ({_signed(100 * low)} to {_signed(100 * high)} points, {one.n_real} real episodes)"
    )


def _signed(points: float) -> str:
    return f"{MINUS if points < 0 else '+'}{abs(points):.1f}"
