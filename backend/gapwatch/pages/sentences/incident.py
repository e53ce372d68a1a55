"""What an incident says: how bad it is now, since when, whom it concerns and what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gapwatch.answers.arrivals import DrawnArrivals
from gapwatch.answers.incident_change import IncidentChange, KnownChange
from gapwatch.answers.incident_standing import IncidentStanding, SuccessShare
from gapwatch.pages.sentences.sentence import Part, Sentence, Words, percent_range, point_range, say, small, strong
from gapwatch.pages.words import SEVERITIES, category_name, count, percent, plural, points, when

MOST_REASONS = 3
MOST_ROBOTS = 4
# A change that is known to less than this is told as one moment.
SURE = timedelta(minutes=20)
DONE = {
    "acknowledge": "took it on",
    "assign": "passed it on",
    "silence": "silenced it",
    "resolve": "called it over",
    "comment": "said",
    "suspect": "suspects",
    "breach": "fires",
    "recovery": "recovered",
    "data_stopped": "has no data",
    "data_again": "has data again",
}


def reason_name(alert: Mapping[str, Any]) -> str:
    """What an alert is about in a word or two, from whatever its row holds: `success`, `state estimation`."""
    kind, series = str(alert["kind"]), str(alert["series"])
    if kind == "category":
        return category_name(series.removeprefix("category:")).lower()
    if kind == "no_data":
        return f"{series.removeprefix('robot:')} silent"
    name = series if series.startswith(("signal:", "metric:")) else series.partition("@")[0]
    return name.partition(":")[2] or name or str(alert["rule"])


def leading_alert(alerts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The one that tells most."""
    return min(alerts, key=_weight)


def _weight(alert: Mapping[str, Any]) -> tuple[int, bool, int]:
    """The most severe first, of success before others, then in the order of their alarms."""
    return SEVERITIES.index(alert["severity"]), not str(alert["series"]).startswith("success"), alert["id"]


def live(alerts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The alerts that are not over; all of them once every one is."""
    return [alert for alert in alerts if alert["state"] != "resolved"] or list(alerts)


def reasons(alerts: Sequence[Mapping[str, Any]]) -> str:
    """5 reasons: success, reward, state estimation …"""
    names = list(dict.fromkeys(reason_name(alert) for alert in sorted(alerts, key=_weight)))
    if not names:
        return "no reason is left"
    shown = ", ".join(names[:MOST_REASONS]) + (" …" if len(names) > MOST_REASONS else "")
    return f"{plural(len(alerts), 'reason')}: {shown}"


def now_against_before(standing: IncidentStanding) -> Sentence:
    """51 % now (n 100, 41 to 61), 96 % before (n 300, 93 to 98)"""
    if standing.now is None:
        return say(Part("no episode since the change", "muted"))
    words: list[Words] = [Part(f"{percent(standing.now.value, 0)} %", "real"), " now ", _size(standing.now)]
    if standing.before is not None:
        emphasis, word = ("sim", " in sim ") if standing.before_is == "sim" else ("strong", " before ")
        words += [", ", Part(f"{percent(standing.before.value, 0)} %", emphasis), word, _size(standing.before)]
    return say(*words)


def headline(standing: IncidentStanding, change: KnownChange, fallback: str) -> Sentence:
    """The numbers of now, what is lost and since when; `fallback`, what people were told, where there are none."""
    if standing.now is None:
        return say(fallback[:1].upper() + fallback[1:], ".")
    words: list[Words] = ["Real success: ", now_against_before(standing), "."]
    if standing.loss is not None and standing.loss_interval is not None:
        low, high = standing.loss_interval
        if low > 0:
            words += [" That is ", strong(f"{points(standing.loss)} points"), " less ", point_range((low, high))]
        elif high < 0:
            words += [
                " That is ",
                strong(f"{points(-standing.loss)} points"),
                " more ",
                point_range((-high, -low)),
            ]
        else:
            words.append(" No loss of success is established")
        words += [", since ", Part(when(change.at), "strong"), "."]
    return say(*words)


def silence(phrase: str, quiet: str, drawn: Sequence[DrawnArrivals]) -> Sentence:
    """Who is silent since when and for how long; how many episodes would have been usual in that time."""
    words: list[Words] = [strong(phrase[:1].upper() + phrase[1:]), f", for {quiet}."]
    missed = [step.usual for step in drawn[0].steps if step.at > drawn[0].heard_at and step.usual] if drawn else []
    if missed:
        words.append(f" About {count(round(sum(missed)))} episodes usually come in that time.")
    return say(*words)


def arrivals_caption(drawn: DrawnArrivals) -> str:
    """Bars are what came, the dotted line what usually comes."""
    pace = "an hour" if drawn.tier == "hour" else "a day"
    is_known = any(step.usual is not None for step in drawn.steps)
    rest = "dotted, what is usual then" if is_known else "there is no week before to compare with"
    return f"Episodes {pace}; {rest}."


def title(standing: IncidentStanding, phrase: str) -> str:
    """What is wrong in a few words, with the numbers of now where success is lost; else `phrase`, of an alert."""
    if standing.loss is not None and standing.loss_interval is not None and standing.loss_interval[0] > 0:
        whence = "below sim" if standing.before_is == "sim" else "less success"
        return f"{100 * standing.loss:.0f} points {whence}"
    return phrase


def changed(change: KnownChange) -> Sentence:
    """Changed 12 Nov 12:00, with 95 % between 11 Nov 18:20 and 12 Nov 14:40."""
    words: list[Words] = ["Changed ", Part(when(change.at), "strong")]
    if change.n and change.latest - change.earliest > SURE:
        words += [", with 95 % between ", Part(when(change.earliest)), " and ", Part(when(change.latest))]
    return say(*words, ".")


def age(changed_at: datetime, now: datetime) -> str:
    """How long it has been so: 40 min, 3 h, 2 d 4 h, 12 d."""
    minutes = max(0, int((now - changed_at).total_seconds() // 60))
    hours, days = minutes // 60, minutes // 1440
    if not hours:
        return f"{minutes} min"
    if not days:
        return f"{hours} h"
    rest = hours - 24 * days
    return f"{days} d {rest} h" if days < 7 and rest else f"{days} d"  # noqa: PLR2004 - a week


def robots_verdict(known_of: IncidentChange) -> Sentence:
    """Which robots it concerns: osaka-3 alone; all robots alike; too few episodes to tell."""
    found = known_of.robots
    names = _listed(found.affected)
    known = sum(robot.verdict != "too few episodes" for robot in found.robots)
    if found.verdict == "alone":
        return say(strong(f"{names} alone."), f" The other {plural(known - 1, 'robot')} did not fall.")
    if found.verdict == "some":
        return say(strong(f"{names}"), f" fell, of {plural(known, 'robot')} with enough episodes.")
    if found.verdict == "all":
        return say(strong("All robots alike"), f": {names}.")
    if found.verdict == "one robot":
        return say(strong(names), " is the only robot with enough episodes, and it fell.")
    if found.verdict == "none":
        return say("No robot is established to have fallen.")
    return say(strong("Too few episodes"), " since the change to tell robots apart.")


def robot_word(verdict: str) -> str:
    """The verdict on one robot, with the glyph that stands for it."""
    return {"fell": "▼ fell", "rose": "▲ rose"}.get(verdict, verdict)


def failures(number: int, most: int) -> str:
    many = f"{count(number)} or more failures" if number >= most else plural(number, "failure")
    return f"{many} since the change"


def fit_words(event: Mapping[str, Any], change: KnownChange) -> str:
    """How an event lies to the change: `within the span of the change`, `5 h before it`."""
    at = _moment(event.get("at"))
    if at is None:
        return ""
    if change.earliest < at <= change.latest:
        return "within the span of the change" if change.n else "at the time of the change"
    if at > change.latest:
        return f"{age(change.latest, at)} after its span"
    return f"{age(at, change.earliest)} before its span" if change.n else f"{age(at, change.at)} before it"


def line_of(line: Mapping[str, Any]) -> Sentence:
    """One line of history: what somebody did, or what happened to an alert."""
    done = DONE.get(str(line["action"]), str(line["action"]))
    comment = f": {line['comment']}" if line["comment"] else ""
    if line["alert"] is None:
        return say(Part(str(line["actor"]), "bold"), f" {done}{comment}")
    subject = f"{line['series']} ({line['rule']}) "
    by = "" if line["actor"] == "gapwatch" else f", {line['actor']}"
    if line["from_state"] == line["to_state"]:
        return say(Part(f"{subject}{line['actor']}{comment}", "muted"))
    state = str(line["to_state"]).replace("_", " ")
    return say(Part(f"{subject}{state}{by}{comment}", "muted"))


def inbox(unowned: int, owned: int, *, filtered: bool, resolved: bool, shown: int, more: bool) -> Sentence:
    """What the inbox says above its list."""
    if resolved or filtered:
        older = ", older ones on the next page" if more else ""
        what = "resolved incident" if resolved else "incident"
        return say(
            f"{plural(shown, what)}{'' if resolved else ' that match' + ('es' if shown == 1 else '')}{older}."
        )
    if unowned:
        others = f"; {owned} {'is' if owned == 1 else 'are'} taken care of" if owned else ""
        have = "has" if unowned == 1 else "have"
        return say(Part(f"▼ {plural(unowned, 'incident')}", "hot"), f" {have} no owner{others}.")
    if owned:
        return say(f"Every open incident has an owner: {owned} {'is' if owned == 1 else 'are'} taken care of.")
    return say("Nothing is on fire.")


def acknowledge_words(alerts: int) -> str:
    """Acknowledge, 5 alerts"""
    return f"Acknowledge, {plural(alerts, 'alert')}" if alerts else "Acknowledge"


def _size(share: SuccessShare) -> Part:
    return small(f"(n {count(share.n)}, {percent_range(share.interval)})")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_ROBOTS
    return ", ".join(names[:MOST_ROBOTS]) + (f" and {more} more" if more > 0 else "")


def _moment(at: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(at) if isinstance(at, str) else None
    except ValueError:
        return None
