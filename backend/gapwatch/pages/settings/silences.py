"""`/settings/silences`: when people are not told, by whom, why, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from gapwatch.errors import NotFound
from gapwatch.pages.frame import View, Visit
from gapwatch.store.alerting import alert_settings
from gapwatch.watching.matchers import Match

LASTING = {"1 hour": 1, "4 hours": 4, "24 hours": 24, "7 days": 168, "30 days": 720}
MATCHED = ("deployment", "site", "rule")


@dataclass(frozen=True)
class SilencesPage:
    silences: list[dict[str, Any]]
    lasting: list[str]
    problem: str


def show_silences(visit: Visit) -> View:
    return _view(visit)


def add_silence(visit: Visit) -> View | Response:
    reason, lasting = visit.form.line("reason", 500), visit.form.one("lasting")
    match_words = {name: visit.form.line(name).split() for name in MATCHED if visit.form.line(name)}
    if not reason or lasting not in LASTING:
        return _view(visit, "Say why, and for how long.")
    if not match_words:
        return _view(visit, "Say what is silenced: a deployment, a site or a rule; * stands for anything.")
    try:
        match = Match.model_validate(match_words)
    except ValidationError:
        return _view(visit, "A name is too long.")
    now = datetime.now(UTC)
    alert_settings.add_silence(
        visit.transaction,
        visit.project_id,
        match=match,
        owner=visit.actor,
        reason=reason,
        starts_at=now,
        ends_at=now + timedelta(hours=LASTING[lasting]),
    )
    return RedirectResponse(visit.frame.links.to("settings", "silences"), 303)


def end_silence(visit: Visit) -> Response:
    number = visit.form.number("silence")
    if not alert_settings.end_silence(visit.transaction, visit.project_id, number, visit.actor):
        raise NotFound("There is no such silence.")
    return RedirectResponse(visit.frame.links.to("settings", "silences"), 303)


def _view(visit: Visit, problem: str = "") -> View:
    silences = alert_settings.silences(visit.transaction, visit.project_id)
    return View("settings_silences.html", SilencesPage(silences, list(LASTING), problem), 422 if problem else 200)
