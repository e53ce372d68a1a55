"""`/settings/silences`: when people are not told, once or every week, by whom, why, and until when."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from gapwatch.errors import NotFound
from gapwatch.filters import parse_time
from gapwatch.pages.forms import Form
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences.calendar import faults_in_words, recurrence_in_words
from gapwatch.store.alerting import alert_settings
from gapwatch.store.alerting.silence_windows import read_recurrence
from gapwatch.watching.matchers import Match
from gapwatch.watching.recurrence import Recurrence, next_times, window_at
from gapwatch.watching.working_hours import DAYS, WorkingWindow

WEEKLY = "every week"
LASTING = {"1 hour": 1, "4 hours": 4, "24 hours": 24, "7 days": 168, "30 days": 720}
KINDS = {"silence": "Silence: recorded, not told", "maintenance": "Maintenance: robots rest too"}
MATCHED = ("deployment", "site", "rule")
KEPT = (*MATCHED, "kind", "lasting", "reason", "from", "to", "time_zone", "last_day", "starts_at", "ends_at")
SHOWN_TIMES = 5
FARTHEST_END = timedelta(days=732)


@dataclass(frozen=True)
class SilenceEntry:
    silence: dict[str, Any]
    hours: str
    holds: bool


@dataclass(frozen=True)
class SilencesPage:
    silences: list[SilenceEntry]
    lasting: list[str]
    kinds: dict[str, str]
    days: list[str]
    problem: str
    # What was typed, and the times that it would hold at.
    given: dict[str, str] = field(default_factory=dict)
    given_days: list[str] = field(default_factory=list)
    preview: list[WorkingWindow] = field(default_factory=list)


@dataclass(frozen=True)
class _Wanted:
    """What the form asks for."""

    match: Match
    kind: str
    reason: str
    starts_at: datetime
    ends_at: datetime | None
    recurrence: Recurrence | None


def show_silences(visit: Visit) -> View:
    return _view(visit)


def add_silence(visit: Visit) -> View | Response:
    now = datetime.now(UTC)
    wanted = _read(visit.form, now)
    if isinstance(wanted, str):
        return _view(visit, wanted)
    if visit.form.one("act") == "preview" and wanted.recurrence:
        times = next_times(now, wanted.starts_at, wanted.ends_at, wanted.recurrence, SHOWN_TIMES)
        return _view(visit, preview=times)
    alert_settings.add_silence(
        visit.transaction,
        visit.project_id,
        match=wanted.match,
        owner=visit.actor,
        reason=wanted.reason,
        starts_at=wanted.starts_at,
        ends_at=wanted.ends_at,
        kind=wanted.kind,
        recurrence=wanted.recurrence,
    )
    return RedirectResponse(visit.frame.links.to("settings", "silences"), 303)


def end_silence(visit: Visit) -> Response:
    number = visit.form.number("silence")
    if not alert_settings.end_silence(visit.transaction, visit.project_id, number, visit.actor):
        raise NotFound("There is no such silence.")
    return RedirectResponse(visit.frame.links.to("settings", "silences"), 303)


def _read(form: Form, now: datetime) -> _Wanted | str:
    reason, lasting = form.line("reason", 500), form.one("lasting")
    kind = form.one("kind", "silence")
    match_words = {name: form.line(name).split() for name in MATCHED if form.line(name)}
    if not reason or kind not in KINDS or not (lasting in LASTING or _is_weekly(form)):
        return "Say why, and for how long."
    if not match_words:
        return "Say what is silenced: a deployment, a site or a rule; * stands for anything."
    if kind == "maintenance" and "rule" in match_words:
        return "Maintenance is of deployments: leave the rule out."
    try:
        match = Match.model_validate(match_words)
    except ValidationError:
        return "A name is too long."
    if not _is_weekly(form):
        try:
            begins = parse_time(form.moment("starts_at") or "0h", now)
            ends = parse_time(form.moment("ends_at"), now) if form.moment("ends_at") else None
        except ValueError as error:
            return f"{str(error).capitalize()}."
        ends = ends or begins + timedelta(hours=LASTING[lasting])
        if ends <= max(now, begins):
            return "The end lies before the beginning, or is over; choose a later one."
        return _Wanted(match, kind, reason, begins, ends, None)
    hours = {"days": form.many("days"), "from": form.line("from", 8), "to": form.line("to", 8)}
    try:
        recurrence = Recurrence.model_validate({**hours, "time_zone": form.line("time_zone", 64) or "UTC"})
        ends_at = _end_of(form.line("last_day", 10), recurrence.time_zone)
    except ValidationError as error:
        return faults_in_words(error)
    except ValueError:
        return "Write the last day like 2026-12-25, or leave it out."
    if ends_at is not None and ends_at > now + FARTHEST_END:
        return "The last day is at most two years ahead; leave it out if there is none."
    if ends_at is not None and ends_at <= now:
        return "The last day is over; choose one that is still to come, or leave it out."
    return _Wanted(match, kind, reason, now, ends_at, recurrence)


def _is_weekly(form: Form) -> bool:
    """Whoever gives hours or asks for the next times means every week, whatever else is chosen."""
    asked = form.one("lasting") == WEEKLY or form.one("act") == "preview"
    return asked or bool(form.line("from") or form.line("to"))


def _end_of(last_day: str, time_zone: str) -> datetime | None:
    """The end of a day on the clock of a time zone."""
    if not last_day:
        return None
    day = date.fromisoformat(last_day)
    if day.year > 9000:  # noqa: PLR2004 - the day after has to exist
        raise ValueError("too far")
    return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(time_zone)).astimezone(UTC)


def _view(visit: Visit, problem: str = "", preview: list[WorkingWindow] | None = None) -> View:
    now = datetime.now(UTC)
    silences = alert_settings.silences(visit.transaction, visit.project_id)
    is_weekly = _is_weekly(visit.form)
    page = SilencesPage(
        [_entry(silence, now) for silence in silences],
        [*LASTING, WEEKLY],
        KINDS,
        list(DAYS),
        problem,
        {name: visit.form.line(name, 500) for name in KEPT} | ({"lasting": WEEKLY} if is_weekly else {}),
        visit.form.many("days"),
        preview or [],
    )
    zones = sorted(available_timezones())
    return View("settings_silences.html", page, 422 if problem else 200, about=zones)


def _entry(silence: dict[str, Any], now: datetime) -> SilenceEntry:
    try:
        recurrence = read_recurrence(silence["recurrence"])
    except ValidationError:
        return SilenceEntry(silence, "at hours that this machine cannot read", holds=False)
    window = window_at(now, silence["starts_at"], silence["ends_at"], recurrence)
    hours = "" if recurrence is None else recurrence_in_words(recurrence)
    return SilenceEntry(silence, hours, window is not None)
