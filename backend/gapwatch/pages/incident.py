"""`/incidents/{id}`, which links in messages open: how bad it is now, what changed, whom it concerns; acting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from starlette.responses import RedirectResponse, Response

from gapwatch.answers.arrivals import DrawnArrivals, drawn_arrivals
from gapwatch.answers.incident_change import DrawnSeries, IncidentChange, KnownChange, incident_change
from gapwatch.answers.incident_standing import IncidentStanding, incident_standings
from gapwatch.answers.series_steps import SeriesStep, series_steps
from gapwatch.errors import Invalid, NotFound
from gapwatch.incidents import incident_actions
from gapwatch.incidents.silence_answers import answer_silences_of
from gapwatch.pages.alert_words import ODD, phrase_of, sentence_of
from gapwatch.pages.figures.arrivals import ArrivalsEntry, arrivals_figure
from gapwatch.pages.figures.series import series_figure
from gapwatch.pages.figures.trend import Mark
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.links import local_path
from gapwatch.pages.sentences import alert as alert_sentences
from gapwatch.pages.sentences import incident as sentences
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.pages.words import SEVERITIES
from gapwatch.store.alerting import alert_list, alert_settings, events, incident_list
from gapwatch.store.alerting.calendars import calendar_of
from gapwatch.store.alerting.incident_counts import MOST_FAILURES
from gapwatch.store.people.members import members
from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.working_hours import known_zone

LONGEST_COMMENT = 2000
MOST_DELIVERIES = 50
# Ways to silence: minutes, or until the next morning.
LASTING = {"1h": 60, "4h": 240, "24h": 24 * 60, "7d": 7 * 24 * 60}
MORNING = "morning"
MORNING_HOUR = 8
MOST_HOURS = 366 * 24


@dataclass(frozen=True)
class ReasonEntry:
    """One alert of the incident."""

    id: int
    name: str
    sentence: str
    rule: str
    severity: str
    state: str
    href: str
    decided: list[alert_sentences.Fact]


@dataclass(frozen=True)
class IncidentLine:
    at: datetime
    words: Sentence


@dataclass(frozen=True)
class SeriesEntry:
    """An alerted series that is drawn, and the numbers of its line."""

    figure: str
    series: str
    is_rate: bool
    runs: list[list[SeriesStep]]
    change: KnownChange

    @property
    def changed(self) -> Sentence:
        return sentences.changed(self.change)


@dataclass(frozen=True)
class IncidentPage:
    incident: dict[str, Any]
    standing: IncidentStanding
    found: IncidentChange
    phrase: str
    reasons: list[ReasonEntry]
    series: list[SeriesEntry]
    arrivals: list[ArrivalsEntry]
    untaken: int
    owners: list[str]
    runbooks: list[str]
    deliveries: list[dict[str, Any]]
    silences: list[str]
    # On whose clock a morning is, unless the browser says where its reader is.
    zone: str
    now: datetime
    hrefs: dict[str, str]

    @property
    def is_silence(self) -> bool:
        """Nothing is wrong but that somebody is not heard."""
        alerts = self.incident["alerts"]
        return bool(alerts) and all(alert["kind"] == "no_data" for alert in alerts)

    @property
    def headline(self) -> Sentence:
        if self.is_silence:
            return sentences.silence(self.phrase, self.age, [entry.drawn for entry in self.arrivals])
        return sentences.headline(self.standing, self.found.change, self.phrase)

    @property
    def title(self) -> str:
        if self.is_silence:
            return self.phrase
        return sentences.title(self.standing, self.phrase)

    @property
    def short(self) -> str:
        return sentences.reasons(sentences.live(self.incident["alerts"]))

    @property
    def age(self) -> str:
        return sentences.age(self.incident["changed_at"], self.incident["resolved_at"] or self.now)

    @property
    def acknowledge(self) -> str:
        return sentences.acknowledge_words(self.untaken)

    @property
    def robots(self) -> Sentence:
        return sentences.robots_verdict(self.found)

    @property
    def question(self) -> str:
        """What an open alert asks; only a silence asks anything."""
        kinds = [
            RULE_KINDS.get(alert["kind"]) for alert in self.incident["alerts"] if alert["state"] != "resolved"
        ]
        return next((kind.question for kind in kinds if kind is not None and kind.question), "")

    @property
    def failures(self) -> str:
        return sentences.failures(self.found.failures, MOST_FAILURES)

    @property
    def history(self) -> list[IncidentLine]:
        """Newest first."""
        return [IncidentLine(line["at"], sentences.line_of(line)) for line in reversed(self.incident["history"])]

    def fit_of(self, event: Mapping[str, Any]) -> str:
        return sentences.fit_words(event, self.found.change)


class IncidentHandlers:
    def __init__(self, nudge: Callable[[str], None]) -> None:
        self._nudge = nudge

    def show(self, visit: Visit) -> View | Response:
        number = _number(visit.path("incident_id"))
        incident = incident_list.find_incident(visit.transaction, visit.project_id, number)
        if incident is None:
            return _elsewhere(visit, number)
        found, drawn = incident_change(visit.transaction, visit.project_id, incident)
        standing = incident_standings(visit.transaction, visit.project_id, [incident])[number]
        arrivals = drawn_arrivals(visit.transaction, visit.project_id, incident, found.computed_at)
        page = _page(visit, incident, standing, found, drawn, arrivals)
        return View("incident.html", page, 200, _figures(page))

    def act(self, visit: Visit) -> Response:
        number = _number(visit.path("incident_id"))
        comment = visit.form.one("comment").replace("\r\n", "\n").strip()[:LONGEST_COMMENT] or None
        place = (visit.transaction, visit.project_id, number, visit.actor)
        what = visit.form.one("act")
        if what == "acknowledge":
            is_done = incident_actions.acknowledge(*place, comment)
        elif what == "assign":
            is_done = incident_actions.assign(*place, visit.form.line("owner") or None, comment)
        elif what == "silence" and comment:
            is_done = incident_actions.silence(*place, comment.splitlines()[0][:500], _ends_at(visit))
        elif what == "resolve":
            is_done = incident_actions.resolve(*place, comment)
            if is_done and comment and visit.form.one("mitigation"):
                _record_fix(visit, number, comment)
        elif what in ("normal", "fault"):
            is_done = answer_silences_of(*place, comment, normal=what == "normal")
        elif what == "comment" and comment:
            is_done = incident_actions.comment_on(*place, comment)
        else:
            raise NotFound("Say what to do, and why.")
        if not is_done:
            raise NotFound("There is no incident with this id.")
        self._nudge("send")
        return RedirectResponse(_back(visit, number), 303)


def _page(
    visit: Visit,
    incident: dict[str, Any],
    standing: IncidentStanding,
    found: IncidentChange,
    drawn: Sequence[DrawnSeries],
    arrivals: Sequence[DrawnArrivals],
) -> IncidentPage:
    links, slug, alerts = visit.frame.links, incident["deployment"], incident["alerts"]
    since = found.change.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return IncidentPage(
        incident=incident,
        standing=standing,
        found=found,
        phrase=_phrase(incident),
        reasons=[_reason(visit, alert) for alert in sorted(alerts, key=_most_severe)],
        series=[
            SeriesEntry(
                f"series-{place}",
                one.series,
                one.is_rate,
                series_steps(one.values, one.change.at, one.newest_from, is_rate=one.is_rate),
                one.change,
            )
            for place, one in enumerate(drawn)
            if one.values
        ],
        arrivals=[ArrivalsEntry(f"arrivals-{place}", one) for place, one in enumerate(arrivals)],
        untaken=sum(alert["state"] in ("firing", "no_data") for alert in alerts),
        owners=[
            member.email
            for member in members(visit.transaction, visit.project_id)
            if member.role in incident_actions.CAN_CARRY
        ],
        runbooks=_runbooks(visit, alerts),
        deliveries=alert_list.deliveries_page(
            visit.transaction,
            visit.project_id,
            incident=incident["id"],
            channel=None,
            state=None,
            before_id=None,
            limit=MOST_DELIVERIES,
        ),
        silences=list(LASTING),
        zone=_zone(visit, incident["deployment_id"]),
        now=found.computed_at,
        hrefs={
            "self": f"/incidents/{incident['id']}",
            "deployment": links.to("deployments", slug),
            "failures": links.to("episodes", deployment=slug, domain="real", outcome="failure", since=since),
            **{
                f"robot:{robot.robot}": links.to(
                    "episodes", deployment=slug, domain="real", robot=robot.robot, since=since
                )
                for robot in found.robots.robots
            },
            **{
                f"slice:{level['condition']}={level['level']}": links.to(
                    "episodes",
                    deployment=slug,
                    domain="real",
                    condition=f"{level['condition']}:{level['level']}",
                    since=since,
                )
                for level in found.slices
            },
        },
    )


def _figures(page: IncidentPage) -> dict[str, Any]:
    marks = [
        Mark(number, datetime.fromisoformat(event["at"]), event["kind"])
        for number, event in enumerate(page.found.events, start=1)
    ]
    of_silences = {entry.figure: arrivals_figure(entry.drawn) for entry in page.arrivals}
    return of_silences | {
        entry.figure: series_figure(
            entry.series,
            entry.runs,
            entry.change,
            is_rate=entry.is_rate,
            sim=page.standing.before.value
            if entry.series == "success" and page.standing.before_is == "sim" and page.standing.before
            else None,
            marks=marks,
        )
        for entry in page.series
    }


def _phrase(incident: Mapping[str, Any]) -> str:
    """What people were told, or the first of its reasons."""
    alerts = incident["alerts"]
    if alerts:
        return phrase_of(sentences.leading_alert(alerts))
    content = incident["content"]
    headline = content.get("headline") if isinstance(content, dict) else None
    return headline if isinstance(headline, str) else "nothing is on record"


def _reason(visit: Visit, alert: Mapping[str, Any]) -> ReasonEntry:
    try:
        decided = alert_sentences.evidence(alert)
    except ODD:
        decided = []
    return ReasonEntry(
        id=alert["id"],
        name=sentences.reason_name(alert),
        sentence=sentence_of(alert),
        rule=alert["rule"],
        severity=alert["severity"],
        state=alert["state"],
        href=visit.frame.links.to("alerts", str(alert["id"])),
        decided=decided,
    )


def _most_severe(alert: Mapping[str, Any]) -> tuple[bool, int, int]:
    return alert["state"] == "resolved", SEVERITIES.index(alert["severity"]), alert["id"]


def _runbooks(visit: Visit, alerts: Sequence[Mapping[str, Any]]) -> list[str]:
    known = alert_settings.runbooks(visit.transaction, visit.project_id)
    named = dict.fromkeys(known[alert["rule"]] for alert in alerts if alert["rule"] in known)
    return [address for address in named if address.startswith(("https://", "http://"))]


def _zone(visit: Visit, deployment_id: int) -> str:
    calendar = calendar_of(visit.transaction, visit.project_id, deployment_id)
    return "UTC" if calendar is None else calendar.time_zone


def _ends_at(visit: Visit) -> datetime:
    """When the silence of a form ends."""
    wanted, now = visit.form.one("for"), datetime.now(UTC)
    if wanted in LASTING:
        return now + timedelta(minutes=LASTING[wanted])
    if wanted == MORNING:
        return next_morning(now, visit.form.line("zone", 64) or "UTC")
    hours = visit.form.number("hours")
    if wanted == "custom" and 1 <= hours <= MOST_HOURS:
        return now + timedelta(hours=hours)
    raise Invalid("Say for how many hours, from 1 to a year of them.")


def next_morning(now: datetime, zone: str) -> datetime:
    """Tomorrow at eight on the clock of a time zone."""
    try:
        place = ZoneInfo(known_zone(zone))
    except ValueError as error:
        raise Invalid("Send the time zone by its name, such as Europe/Berlin.") from error
    tomorrow = now.astimezone(place).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(MORNING_HOUR), place)


def _record_fix(visit: Visit, number: int, comment: str) -> None:
    incident = incident_list.find_incident(visit.transaction, visit.project_id, number)
    if incident is not None:
        events.record_event(
            visit.transaction,
            visit.project_id,
            kind="mitigation",
            at=datetime.now(UTC),
            title=comment.splitlines()[0][:200],
            deployment_id=incident["deployment_id"],
            actor=visit.actor,
        )


def _back(visit: Visit, number: int) -> str:
    """Where the form was: the inbox at this row, or the incident."""
    back = local_path(visit.form.one("back"))
    if back.split("?")[0] == "/alerts":
        return f"{back}#incident-{number}"
    return visit.frame.links.to("incidents", str(number))


def _elsewhere(visit: Visit, number: int) -> Response:
    """A message names no project: whoever has several is led to the one that has the incident."""
    others = [one for one in visit.memberships if one.project_id != visit.project_id]
    if visit.request.query_params.get("project"):
        others = []
    holder = next(
        (one for one in others if incident_list.has_incident(visit.transaction, one.project_id, number)), None
    )
    if holder is None:
        raise NotFound("There is no incident with this id.")
    return RedirectResponse(
        visit.frame.links.to("incidents", str(number)).split("?")[0] + f"?project={holder.slug}", 303
    )


def _number(text: str) -> int:
    """0, which no incident has, for what is no number of a row."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004
