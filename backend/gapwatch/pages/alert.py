"""`/alerts/{id}`: one alert: what fell, the evidence, what changed before it, who was told; and acting on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import RedirectResponse, Response

from gapwatch.answers.arrivals import drawn_arrivals
from gapwatch.answers.incident_change import IncidentChange, incident_change
from gapwatch.answers.series_steps import SeriesStep, series_steps
from gapwatch.answers.subjects import deployment_subject
from gapwatch.errors import NotFound
from gapwatch.incidents import alert_actions
from gapwatch.incidents.silence_answers import answer_silence
from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.alert_words import ODD, alert_entry, open_alerts, sentence_of
from gapwatch.pages.figures.arrivals import ArrivalsEntry, arrivals_figure
from gapwatch.pages.figures.series import series_figure
from gapwatch.pages.figures.trend import Mark
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences import alert as sentences
from gapwatch.pages.sentences.incident import fit_words
from gapwatch.pages.sentences.sentence import Sentence, say
from gapwatch.store.alerting import alert_list, events
from gapwatch.store.alerting.incident_list import changed_at
from gapwatch.watching.kinds import RULE_KINDS

LONGEST_COMMENT = 2000
LASTING = {"1h": 60, "4h": 240, "24h": 24 * 60, "7d": 7 * 24 * 60}


@dataclass(frozen=True)
class AlertPage:
    alert: dict[str, Any]
    entry: AlertEntry
    sentence: str
    changed_at: datetime | None
    found: IncidentChange
    others: list[AlertEntry]
    series: str
    runs: list[list[SeriesStep]]
    arrivals: list[ArrivalsEntry]
    incident_href: str | None
    deployment_href: str
    silences: dict[str, int]

    @property
    def question(self) -> str:
        """What the alert asks; only a silence asks anything."""
        kind = RULE_KINDS.get(self.alert["kind"])
        return "" if kind is None else kind.question

    @property
    def headline(self) -> Sentence:
        try:
            return sentences.headline(self.alert, self.changed_at, self.sentence)
        except ODD:
            return say(self.sentence)

    @property
    def evidence(self) -> list[sentences.Fact]:
        try:
            return sentences.evidence(self.alert)
        except ODD:
            return []

    def fit_of(self, event: Mapping[str, Any]) -> str:
        return fit_words(event, self.found.change)


class AlertHandlers:
    def __init__(self, nudge: Callable[[str], None]) -> None:
        self._nudge = nudge

    def show(self, visit: Visit) -> View:
        alert = self._find(visit)
        slug, incident = alert["deployment"], alert["incident"]
        estimate = changed_at(alert)
        # The alert is looked at as an incident of its own.
        alone = {**alert, "alerts": [alert], "changed_at": estimate or alert["opened_at"]}
        found, drawn = incident_change(visit.transaction, visit.project_id, alone)
        arrivals = drawn_arrivals(visit.transaction, visit.project_id, alone, found.computed_at)
        runs = [
            run
            for one in drawn[:1]
            for run in series_steps(one.values, one.change.at, one.newest_from, is_rate=one.is_rate)
        ]
        links = visit.frame.links
        page = AlertPage(
            alert=alert,
            entry=alert_entry(visit, alert),
            sentence=sentence_of(alert),
            changed_at=estimate,
            found=found,
            others=[entry for entry in open_alerts(visit, slug) if entry.id != alert["id"]],
            series=drawn[0].series if drawn else "",
            runs=runs,
            arrivals=[ArrivalsEntry(f"arrivals-{place}", one) for place, one in enumerate(arrivals)],
            incident_href=None if incident is None else links.to("incidents", str(incident["id"])),
            deployment_href=links.to("deployments", slug),
            silences=LASTING,
        )
        figures = {entry.figure: arrivals_figure(entry.drawn) for entry in page.arrivals}
        if any(runs):
            marks = [
                Mark(number, datetime.fromisoformat(event["at"]), event["kind"])
                for number, event in enumerate(found.events, start=1)
            ]
            figures["series"] = series_figure(
                page.series, runs, found.change, is_rate=drawn[0].is_rate, marks=marks
            )
        return View("alert.html", page, 200, figures)

    def act(self, visit: Visit) -> Response:
        alert = self._find(visit)
        alert_id, actor = alert["id"], visit.actor
        comment = visit.form.one("comment").replace("\r\n", "\n").strip()[:LONGEST_COMMENT] or None
        place = (visit.transaction, visit.project_id, alert_id, actor)
        what = visit.form.one("act")
        if what == "acknowledge":
            alert_actions.acknowledge(*place, comment)
        elif what == "resolve":
            alert_actions.resolve(*place, comment)
            if comment and visit.form.one("mitigation"):
                self._record(visit, alert["deployment"], comment)
        elif what in ("normal", "fault"):
            answer_silence(*place, comment, normal=what == "normal")
        elif what == "comment" and comment:
            alert_actions.comment_on(*place, comment)
        elif what == "silence" and comment and visit.form.one("for") in LASTING:
            lasting = timedelta(minutes=LASTING[visit.form.one("for")])
            alert_actions.silence_alert(*place, comment.splitlines()[0], lasting)
        else:
            raise NotFound("Say what to do, and why.")
        self._nudge("send")
        return RedirectResponse(visit.frame.links.to("alerts", str(alert_id)), 303)

    def _record(self, visit: Visit, slug: str, title: str) -> None:
        described = deployment_subject(visit.transaction, visit.project_id, slug).described
        if described is not None:
            events.record_event(
                visit.transaction,
                visit.project_id,
                kind="mitigation",
                at=datetime.now(UTC),
                title=title.splitlines()[0][:200],
                deployment_id=described.id,
                actor=visit.actor,
            )

    def _find(self, visit: Visit) -> dict[str, Any]:
        text = visit.path("alert_id")
        alert = None
        if text.isascii() and text.isdecimal() and len(text) < 10:  # noqa: PLR2004 - fits an integer
            alert = alert_list.find_alert(visit.transaction, visit.project_id, int(text))
        if alert is None:
            raise NotFound("There is no alert with this id.")
        return alert
