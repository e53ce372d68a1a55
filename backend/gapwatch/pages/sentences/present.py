"""How a deployment does now, in the words of every page: "51 % now, 96 % until 30 Oct, still falling"."""

from __future__ import annotations

from datetime import datetime

from gapwatch.answers.now import NowValue
from gapwatch.answers.robots_sites import compare_units, odd_sentence
from gapwatch.answers.window_words import day_words
from gapwatch.pages.words import count, percent

ARROWS = {"fell": "▼", "falling": "▼", "rose": "▲", "rising": "▲"}
_STILL = {"falling": ", still falling", "rising": ", still rising", "steady": ", steady"}


def standing(now: NowValue, today: datetime) -> str:
    """The rate now, what it was before, and whether it still moves."""
    estimate, word = now.estimate, now.moved.verdict
    if estimate.value is None:
        return "no real episodes yet"
    rate = f"{percent(estimate.value, 0)} % now"
    if word == "too few episodes":
        return f"{rate}, of {count(estimate.n)} episodes"
    earlier = was(now, today)
    return f"{rate}{f', {earlier}' if earlier else ''}{_STILL.get(word, '')}"


def was(now: NowValue, today: datetime) -> str | None:
    """What it was before it moved: "96 % until 30 Oct"."""
    before = now.before
    if now.moved.verdict not in ARROWS or before is None or before.value is None or before.until is None:
        return None
    return f"{percent(before.value, 0)} % until {day_words(before.until, today)}"


def odd_robot(now: NowValue) -> str | None:
    """Who does otherwise than the others, where some do: "osaka-3 alone: 82 %, the others 93 %."."""
    counts = {robot.robot: (round((robot.value or 0.0) * robot.n), robot.n) for robot in now.robots}
    return odd_sentence(compare_units(counts, "robot", design_effect=now.design_effect), None)
