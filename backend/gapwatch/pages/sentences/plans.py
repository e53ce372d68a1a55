"""What is said of plans of trials and of randomised ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapwatch.answers.ranges import RangesAnswer
from gapwatch.notation import count
from gapwatch.pages.words import plural

GOALS = {
    "verdict": "settle the verdict",
    "gate": "pass the gate",
    "cause": "find the cause",
    "coverage": "cover the uncovered",
}


def _points(share: float) -> str:
    """20 points; of less than ten with a digit more, so that a range is one."""
    size = 100 * share
    return f"{size:.0f}" if size >= 10 else f"{size:.1f}"  # noqa: PLR2004 - two digits tell enough


def promise(goal: str, predicted: Mapping[str, Any]) -> str:
    """What the plan should bring."""
    low, high = (_points(end) for end in predicted["between"])
    width = f"{_points(predicted['interval_width'])} points wide ({low} to {high} with 80 % probability)"
    reached = predicted.get("reaches_goal")
    words = f"The interval of {predicted['of']} will be about {width}."
    if goal == "coverage" or reached is None:
        return words
    chance = f"{100 * reached:.0f} %"
    ends = {
        "verdict": f"The verdict is settled then with {chance} probability.",
        "gate": f"The gate is passed then with {chance} probability, if real goes on as it does.",
        "cause": f"The suspect is told from the usual conditions then with {chance} probability.",
    }
    return f"{words} {ends[goal]}"


def progress(found: Mapping[str, Any]) -> str:
    """How far it has come, and the promise against what came."""
    planned = plural(found["planned"], "episode")
    if found["state"] == "not begun":
        return f"None of {planned} was made yet."
    width = (
        ""
        if found["interval_width"] is None
        else f" The interval is {_points(found['interval_width'])} points wide"
    )
    if found["state"] == "under way":
        now = f"{width} now." if width else ""
        return f"{count(found['episodes'])} of {planned} made, {count(found['remaining'])} remain.{now}"
    if found["kept"] is None:
        return f"All of {planned} made."
    ratio = found["of_predicted"]
    held = "as promised" if found["kept"] else "wider than promised" if ratio > 1 else "narrower than promised"
    return f"All of {planned} made.{width}, {held} ({100 * ratio:.0f} % of the promise)."


def calibrated(found: Mapping[str, Any]) -> str:
    if not found["plans"]:
        return "No plan is done yet, so no promise was held against what came."
    plans = plural(found["plans"], "plan")
    return (
        f"Of {plans} done, {count(found['kept'])} brought an interval within a fifth of the promise, and "
        f"{count(found['within_range'])} kept to the 80 % range."
    )


def ranges_finding(answer: RangesAnswer) -> str:
    """The gravest first."""
    counts = answer.counts
    out = [one.name for one in answer.parameters if one.verdict == "outside"]
    if out:
        names = ", ".join(out[:3]) + (" …" if len(out) > 3 else "")  # noqa: PLR2004
        are = "is" if len(out) == 1 else "are"
        return f"{names} {are} outside what the simulator was randomised over: identify it again."
    idle = [one.name for one in answer.parameters if one.verdict == "declared, not applied"]
    if idle:
        return f"{idle[0]} was declared as randomised and sim's own episodes show no spread of it."
    wide = counts.get("far inside", 0)
    if wide:
        return (
            f"{plural(wide, 'range')} more than five times as wide as what was measured: a policy trained there "
            "is more careful than it need be."
        )
    known = sum(n for verdict, n in counts.items() if verdict != "not measured")
    if not known:
        return "Ranges were declared and nothing was measured yet."
    return f"Reality lies within the ranges, {plural(counts.get('edge', 0), 'parameter')} at an edge."
