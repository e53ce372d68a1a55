"""What a deployment's page says first: its headline and the short answers to four questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gapwatch.answers.answer import Baseline
from gapwatch.answers.drop import DropAnswer, DropValue, SideValue
from gapwatch.answers.ledger import CategoryPart
from gapwatch.answers.now import NowValue
from gapwatch.answers.onset import OnsetAnswer
from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.sentences.present import how_it_moved, is_it_worse, present_sentence
from gapwatch.pages.sentences.sentence import (
    Part,
    Sentence,
    Words,
    day,
    percent_range,
    point_range,
    say,
    small,
    strong,
    together,
)
from gapwatch.pages.words import count, number, percent, plural, point_interval, points, with_days

MOST_ROBOTS = 4
# With fewer sessions their number says nothing about the interval.
LEAST_SESSIONS = 5
MOST_ALERTS = 2


@dataclass(frozen=True)
class ShortAnswer:
    """A few large words, and the lines below them."""

    large: Sentence
    below: tuple[Sentence, ...]


def headline(
    drop: DropAnswer,
    sim: SideValue,
    real: SideValue,
    lead: CategoryPart | None,
    onset: OnsetAnswer,
    *,
    is_unexplained: bool = False,
) -> Sentence:
    """Both sides, what is lost, to what, and since when; `sim` and `real` are those of success."""
    if drop.metric == "success":
        loss = _loss(drop, drop.drop, drop.verdict, lead, onset, is_unexplained=is_unexplained)
        sentence = together(_both_sides(drop, sim, real), loss)
    else:
        sentence = _of_metric(drop)
    reason = drop.reason if drop.drop.value is None else None
    return together(sentence, say(reason or ""))


def headline_now(
    now: NowValue,
    drop: DropAnswer,
    lead: CategoryPart | None,
    today: datetime,
    *,
    is_unexplained: bool = False,
) -> Sentence | None:
    """The present first, then what is lost of simulation's success now; None where there is no present yet.

    `drop` is that of the regime, which `lead` is a part of.
    """
    present = present_sentence(now, today)
    if present is None:
        return None
    return together(present, _loss(drop, now.drop, now.verdict, lead, is_unexplained=is_unexplained))


def in_window(name: str, sentence: Sentence) -> Sentence:
    """Another window than the present is named first: nobody may take its numbers for those of now."""
    return together(say(Part(f"{name[:1].upper()}{name[1:]}:", "bold")), sentence)


def _both_sides(drop: DropAnswer, sim: SideValue, real: SideValue) -> Sentence:
    in_reality: tuple[Words, ...] = (f"No real episode of {drop.policy} {drop.version} matches",)
    if real.n:
        in_reality = ("In reality it succeeds ", _rate(real, "real"), " of the time ", _out_of(real))
    if not sim.n:
        return say(*in_reality, "; there is no simulation to compare it with.")
    joined = " against " if real.n else "; "
    return say(*in_reality, joined, _rate(sim, "sim"), " in simulation ", _out_of(sim), ".")


def _rate(side: SideValue, name: str) -> Part:
    return Part(f"{percent(side.value or 0.0)} %", name)


def _out_of(side: SideValue) -> Part:
    interval = "" if side.interval is None else f", {percent_range(side.interval)}"
    return small(f"({count(side.successes or 0)} of {count(side.n)}{interval})")


def _loss(
    drop: DropAnswer,
    lost: DropValue,
    verdict: str,
    lead: CategoryPart | None,
    onset: OnsetAnswer | None = None,
    *,
    is_unexplained: bool,
) -> Sentence | None:
    """What is `lost`, to what, and since when unless that is said already; `lead` is a part of `drop`."""
    value, interval = lost.value, lost.interval
    if value is None or interval is None:
        return None
    size, bounds = f"{points(value)} points", point_range(interval)
    if verdict in ("large", "small"):
        since = None if onset is None else worsening(onset)
        to: tuple[Words, ...] = (", most of it not explained by what is logged",) if is_unexplained else ()
        if lead is not None:
            to = (f", {share_word(lead.contribution, drop.drop.value or value)} to ", strong(lead.name.lower()))
        return say("It loses ", strong(size), " ", bounds, *to, *((", and ", since) if since else ()), ".")
    if verdict == "none":
        return say("That is no drop that matters: ", strong(size), " ", bounds, ".")
    needed: tuple[Words, ...] = ()
    if drop.episodes_needed:
        needed = ("; about ", strong(f"{count(drop.episodes_needed)} more"), " real episodes settle it")
    return say(f"The drop is {size} ", bounds, ", too uncertain to call", *needed, ".")


def share_word(contribution: float, drop: float) -> str:
    return "most of it" if contribution > 0.5 * drop else "the largest part"


def _of_metric(drop: DropAnswer) -> Sentence:
    name, value = Part(drop.metric, "code"), drop.drop.value
    if value is None or drop.real.value is None or drop.sim.value is None:
        return say(name, " cannot be compared.")
    sides = say(
        name,
        " is ",
        Part(number(drop.real.value), "real"),
        " ",
        _of_n(drop.real),
        " in reality and ",
        Part(number(drop.sim.value), "sim"),
        " ",
        _of_n(drop.sim),
        " in simulation.",
    )
    bounds = drop.drop.interval
    between = () if bounds is None else (" ", small(f"({number(bounds[0])} to {number(bounds[1])})"))
    word = "worse" if value >= 0 else "better"
    return together(
        sides, say(f"It is {word} by ", strong(number(abs(value))), *between, f"; {drop.better} is better.")
    )


def _of_n(side: SideValue) -> Part:
    bounds = "" if side.interval is None else f", {number(side.interval[0])} to {number(side.interval[1])}"
    return small(f"(n {count(side.n)}{bounds})")


def worsening(onset: OnsetAnswer) -> Sentence | None:
    """The end of the headline, where something is known about when it began."""
    lost = onset.change is not None and onset.change > 0
    if onset.verdict == "step_change" and lost and onset.change_day is not None:
        return say("since ", day(onset.change_day), " it is ", strong("getting worse"))
    if onset.verdict == "gradual_drift" and lost:
        return say("it is ", strong("slowly getting worse"))
    if onset.verdict == "release_regression":
        return say("it began ", strong("with a release"))
    if onset.verdict == "site_specific":
        return say(strong("not everywhere alike"))
    return None


def how_much(drop: DropAnswer) -> ShortAnswer:
    value, bounds, n = drop.drop.value, drop.drop.interval, f"n {count(drop.real.n)} real"
    if value is None:
        large = say(Part("unknown", "muted"))
    else:
        large = say(f"{points(value)} points" if drop.metric == "success" else number(value))
    if bounds is not None and drop.metric == "success":
        sessions = drop.real.sessions
        within = f" in {count(sessions)} sessions" if sessions >= LEAST_SESSIONS else ""
        return ShortAnswer(large, (say(f"{point_interval(bounds)}, {n}{within}, for {drop.population.words}"),))
    return ShortAnswer(large, (say(drop.reason or n),))


def how_much_now(now: NowValue) -> ShortAnswer:
    value, bounds = now.drop.value, now.drop.interval
    if value is None:
        return ShortAnswer(say(Part("unknown", "muted")), (say("One side has no episodes."),))
    interval = "" if bounds is None else f"{point_interval(bounds)}, "
    return ShortAnswer(say(f"{points(value)} points"), (say(f"{interval}{now.estimate.window}"),))


def why(
    drop: DropAnswer,
    lead: CategoryPart | None,
    whole: float | None,
    ways_to_fail: int,
    to_log: Sequence[str] = (),
) -> ShortAnswer:
    """`whole` is the drop that the ledger splits; `to_log` would tell more where nothing explains most of it."""
    if lead is None and drop.verdict in ("large", "small") and to_log:
        logging = "; ".join(text.rstrip(".") for text in to_log)
        return ShortAnswer(say("Not explained by what is logged"), (say(f"Log: {logging}."),))
    if lead is None or not whole:
        large = "No drop to split" if drop.verdict == "none" else "Not enough evidence"
        return ShortAnswer(say(large), (say(f"{plural(ways_to_fail, 'way')} to fail so far"),))
    interval = "" if lead.interval is None else f" {point_interval(lead.interval)}"
    share = f"{percent(lead.contribution / whole, 0)} % of the drop"
    return ShortAnswer(say(lead.name), (say(f"{points(lead.contribution)} points{interval}, {share}"),))


def getting_worse_now(now: NowValue, today: datetime) -> ShortAnswer:
    return ShortAnswer(say(is_it_worse(now, today)), (say(how_it_moved(now, today)),))


def getting_worse(onset: OnsetAnswer) -> ShortAnswer:
    return ShortAnswer(_is_it_worse(onset), (say(with_days(onset.sentence)),))


def _is_it_worse(onset: OnsetAnswer) -> Sentence:
    if onset.verdict == "step_change" and onset.change_day is not None:
        return say("Yes, since ", day(onset.change_day))
    if onset.verdict == "gradual_drift":
        return say("Yes, gradually")
    if onset.risen_day is not None:
        return say("No, better since ", day(onset.risen_day))
    words = {
        "release_regression": "Since a release",
        "site_specific": "Only in places",
        "at_deploy": "No, steady",
        "none": "No sign of it",
    }
    return say(words.get(onset.verdict, "Not known yet"))


def who_knows(alerts: Sequence[AlertEntry]) -> ShortAnswer:
    """Nothing stands below where no alert is open: the page points to the rules there."""
    if not alerts:
        return ShortAnswer(say("No open alert"), ())
    below = (say(Part(alert.headline, href=alert.href), _taken_on(alert)) for alert in alerts[:MOST_ALERTS])
    return ShortAnswer(say(alerts[0].acknowledged_by or "Nobody yet"), tuple(below))


def _taken_on(alert: AlertEntry) -> str:
    if alert.acknowledged_by:
        return f", {alert.acknowledged_by} is on it"
    return ", nobody has taken it on" if alert.state == "firing" else ""


def baseline_words(baseline: Baseline | None, *, with_pin: bool = True) -> str:
    if baseline is None:
        return "none"
    pin = ", pinned" if with_pin and baseline.chosen == "pinned" else ""
    return f"{baseline.simulator} {baseline.version}, {plural(baseline.n, 'episode')}{pin}"


def robots_words(robots: Sequence[str]) -> str:
    more = len(robots) - MOST_ROBOTS
    return ", ".join(robots[:MOST_ROBOTS]) + (f" and {more} more" if more > 0 else "")
