"""How a deployment does now, in the words of every page: "51 % now, 96 % until 30 Oct, still falling"."""

from __future__ import annotations

from datetime import datetime

from gapwatch.answers.now import NowValue
from gapwatch.answers.robots_sites import compare_units, odd_sentence
from gapwatch.answers.window_words import day_words
from gapwatch.pages.sentences.sentence import Part, Sentence, Words, say, small, together
from gapwatch.pages.words import count, percent, plural, point_interval, points

ARROWS = {"fell": "▼", "falling": "▼", "rose": "▲", "rising": "▲"}
_STILL = {"falling": ", still falling", "rising": ", still rising", "steady": ", steady"}
_ENDINGS = {
    "falling": "Still falling.",
    "rising": "Still rising.",
    "fell": "It fell and stays there.",
    "rose": "It rose and stays there.",
    "steady": "Steady.",
    "too few episodes": "Too few episodes to say whether it moves.",
}


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


def present_sentence(now: NowValue, today: datetime) -> Sentence | None:
    """Now 51 % (43 of 84); 96 % until 30 Oct; simulation 95 %. Still falling. None where nothing is known."""
    estimate, sim = now.estimate, now.sim
    if estimate.value is None:
        return None
    earlier = was(now, today)
    words: list[Words] = [
        "Now ",
        Part(f"{percent(estimate.value, 0)} %", "real"),
        " ",
        small(f"({count(estimate.successes)} of {count(estimate.n)})"),
        f"; {earlier}" if earlier else "",
    ]
    if sim.value is None:
        words.append("; no simulation to compare it with.")
    else:
        words += ["; simulation ", Part(f"{percent(sim.value, 0)} %", "sim"), "."]
    return together(say(*words), say(_ENDINGS[now.moved.verdict]))


def is_it_worse(now: NowValue, today: datetime) -> str:
    """The short answer to whether it is getting worse."""
    since = "" if now.since is None else f" since {day_words(now.since, today)}"
    return {
        "falling": f"Yes, falling{since}",
        "fell": f"It fell{since.replace('since', 'on')}",
        "rising": f"No, rising{since}",
        "rose": f"No, better{since}",
        "steady": "No, steady",
    }.get(now.moved.verdict, "Not known yet")


def how_it_moved(now: NowValue, today: datetime) -> str:
    """How far it is from what it was, in one sentence, whether it moved or not."""
    estimate, before, moved = now.estimate, now.before, now.moved
    if estimate.value is None:
        return "No real episode of this version has ended yet."
    newest = f"{percent(estimate.value, 0)} % in the {estimate.window}"
    if moved.verdict == "too few episodes":
        return f"{newest}: too few to say whether it moves."
    if before is None or before.value is None or moved.points is None or moved.interval is None:
        return f"{newest}; nothing lies before to hold it against."
    held = f"{percent(before.value, 0)} % of {count(before.n)} before"
    if moved.verdict == "steady":
        change = f"{points(moved.points / 100)} points {point_interval([b / 100 for b in moved.interval])}"
        return f"{newest}, {held}: a difference of {change}, no sign of a change."
    low, high = (bound / 100 for bound in moved.interval)
    way, bounds = ("below", (-high, -low)) if moved.points < 0 else ("above", (low, high))
    until = "" if before.until is None else f" until {day_words(before.until, today)}"
    rate = now.regime.value if moved.verdict in ("fell", "rose") else estimate.value
    since = now.regime.window if moved.verdict in ("fell", "rose") else estimate.window
    return (
        f"{percent(rate or 0.0, 0)} % {_in(since)}, {points(abs(moved.points) / 100)} points "
        f"{point_interval(bounds)} {way} the {percent(before.value, 0)} % "
        f"of {plural(before.n, 'episode')}{until}."
    )


def _in(window: str) -> str:
    return f"in the {window}" if window.startswith("newest") else window


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
