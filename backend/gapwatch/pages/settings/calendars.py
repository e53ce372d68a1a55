"""`/settings/calendars`: the hours in which the robots of each deployment are expected to work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import available_timezones

from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from gapwatch.errors import NotFound
from gapwatch.pages.forms import Form
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences.calendar import faults_in_words, hours_in_words
from gapwatch.store.alerting import calendars
from gapwatch.store.read import directory
from gapwatch.watching.working_hours import DAYS, MOST_SHIFTS, WorkCalendar, WorkingWindow

SHOWN_TIMES = 5
EMPTY_ROWS = 2


@dataclass(frozen=True)
class CalendarEntry:
    deployment: str
    hours: list[str]
    is_working: bool | None
    changed_by: str | None
    changed_at: datetime | None


@dataclass(frozen=True)
class CalendarForm:
    """What the form of one deployment holds, as it is stored or as it was sent."""

    deployment: str
    time_zone: str
    shifts: list[dict[str, Any]]
    holidays: list[str]
    is_stored: bool
    next: list[WorkingWindow]


@dataclass(frozen=True)
class CalendarsPage:
    deployments: list[CalendarEntry]
    form: CalendarForm | None
    days: list[str]
    problem: str


def show_calendars(visit: Visit) -> View:
    slug = visit.request.query_params.get("deployment", "").replace("\0", "")
    return _view(visit, slug)


def change_calendar(visit: Visit) -> View | Response:
    slug = visit.form.line("deployment")
    deployment = directory.find_deployment(visit.transaction, visit.project_id, slug)
    if deployment is None:
        raise NotFound("There is no such deployment.")
    if visit.form.one("act") == "remove":
        calendars.delete_calendar(visit.transaction, visit.project_id, deployment.id, visit.actor)
        return RedirectResponse(visit.frame.links.to("settings", "calendars"), 303)
    wanted = _wanted(visit.form)
    try:
        calendar = WorkCalendar.model_validate(wanted)
    except ValidationError as error:
        return _view(visit, slug, faults_in_words(error), wanted)
    calendars.put_calendar(visit.transaction, visit.project_id, deployment.id, calendar, visit.actor)
    return RedirectResponse(visit.frame.links.to("settings", "calendars", deployment=slug), 303)


def _wanted(form: Form) -> dict[str, Any]:
    """What the form says, in the words of the API. A row without hours is no shift."""
    shifts = []
    for row in range(MOST_SHIFTS):
        start, end = form.line(f"from_{row}", 8), form.line(f"to_{row}", 8)
        if start or end:
            shifts.append({"days": form.many(f"days_{row}"), "from": start, "to": end})
    return {
        "time_zone": form.line("time_zone", 64) or "UTC",
        "shifts": shifts,
        "holidays": form.one("holidays").replace(",", " ").split(),
    }


def _view(visit: Visit, slug: str, problem: str = "", sent: dict[str, Any] | None = None) -> View:
    now = datetime.now(UTC)
    stored = calendars.stored_calendars(visit.transaction, visit.project_id)
    entries, form = [], None
    for deployment in directory.deployments(visit.transaction, visit.project_id):
        one = stored.get(deployment.id)
        entries.append(
            CalendarEntry(
                deployment.slug,
                [] if one is None else hours_in_words(one.calendar),
                None if one is None else one.calendar.is_working(now),
                None if one is None else one.changed_by,
                None if one is None else one.changed_at,
            )
        )
        if deployment.slug == slug:
            calendar = None if one is None else one.calendar
            fields = sent or ({} if calendar is None else calendar.model_dump(mode="json", by_alias=True))
            form = CalendarForm(
                slug,
                fields.get("time_zone", "UTC"),
                [*fields.get("shifts", []), *({"days": [], "from": "", "to": ""} for _ in range(EMPTY_ROWS))],
                fields.get("holidays", []),
                one is not None,
                [] if calendar is None else calendar.next_windows(now, SHOWN_TIMES),
            )
    zones = sorted(available_timezones()) if form is not None else []
    page = CalendarsPage(entries, form, list(DAYS), problem)
    return View("settings_calendars.html", page, 422 if problem else 200, about=zones)
