"""`/alerts/{id}`: one alert: what fell, the evidence, what changed before it, who was told; and acting on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import RedirectResponse, Response

from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import Question
from gapwatch.answers.subjects import deployment_subject
from gapwatch.answers.trend import NEEDS, TrendAnswer, answer_trend
from gapwatch.answers.trend_line import trend_line
from gapwatch.errors import NotFound
from gapwatch.incidents import alert_actions
from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.alerts import alert_entry, open_alerts, reason_of
from gapwatch.pages.figures import trend
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences import alert as sentences
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.store.alerting import (
    alert_list,
    events,
)
from gapwatch.store.alerting.events import EventRow
from gapwatch.store.read.sides import Window
from gapwatch.watching.notification import sentence

LONGEST_COMMENT = 2000
# How long before a change an event may still explain it.
DAYS_BEFORE = 14
# A change is dated within hours: what is noted a little after it may still be its cause.
HOURS_AFTER = 24
# What is drawn around the change.
DAYS_SHOWN = 60
LASTING = {"1h": 60, "4h": 240, "24h": 24 * 60, "7d": 7 * 24 * 60}


@dataclass(frozen=True)
class PrecedingEvent:
    """Something that happened before the change, and how long before."""

    event: EventRow
    hours_before: float


@dataclass(frozen=True)
class AlertPage:
    alert: dict[str, Any]
    entry: AlertEntry
    sentence: str
    changed_at: datetime | None
    before: list[PrecedingEvent]
    others: list[AlertEntry]
    trend: TrendAnswer | None
    deployment_href: str
    silences: dict[str, int]

    @property
    def headline(self) -> Sentence:
        return sentences.headline(self.alert, self.changed_at, self.sentence)

    @property
    def evidence(self) -> list[sentences.Fact]:
        return sentences.evidence(self.alert)


class AlertHandlers:
    def __init__(self, nudge: Callable[[str], None]) -> None:
        self._nudge = nudge

    def show(self, visit: Visit) -> View:
        alert = self._find(visit)
        slug = alert["deployment"]
        changed_at = _moment(alert["evidence"].get("change_point", {}).get("at"))
        about = changed_at or alert["opened_at"]
        since = about - timedelta(days=DAYS_SHOWN)
        subject = deployment_subject(visit.transaction, visit.project_id, slug)
        question = Question(datetime.now(UTC), Window(since, None))
        sides = load_sides(visit.transaction, visit.project_id, subject, question, NEEDS)
        described = subject.described
        dated: list[EventRow] = []
        if described is not None:
            dated = events.events_of(visit.transaction, visit.project_id, described.id, since, None)
        answer = answer_trend(sides)
        page = AlertPage(
            alert=alert,
            entry=alert_entry(visit, alert),
            sentence=sentence(reason_of(alert)),
            changed_at=changed_at,
            before=_before(dated, about),
            others=[entry for entry in open_alerts(visit, slug) if entry.id != alert["id"]],
            trend=answer,
            deployment_href=visit.frame.links.to("deployments", slug),
            silences=LASTING,
        )
        drawn = {}
        if any(step.n for step in answer.steps):
            marks = [trend.Mark(number, event.at, event.kind) for number, event in enumerate(dated, start=1)]
            drawn["trend"] = trend.trend_figure(
                answer,
                trend_line(answer, changed_at),
                marks,
                visit.frame.links.to("episodes", deployment=slug, domain="real"),
                changed_at,
            )
        return View("alert.html", page, 200, drawn, about=dated)

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


def _before(dated: list[EventRow], about: datetime) -> list[PrecedingEvent]:
    """What happened in the two weeks before, the nearest first. Nearness is not proof."""
    candidates = [PrecedingEvent(event, (about - event.at).total_seconds() / 3600) for event in dated]
    near = [candidate for candidate in candidates if -HOURS_AFTER <= candidate.hours_before <= 24 * DAYS_BEFORE]
    return sorted(near, key=lambda candidate: abs(candidate.hours_before))


def _moment(text: str | None) -> datetime | None:
    return None if not text else datetime.fromisoformat(text)
