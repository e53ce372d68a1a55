"""The calendar of a deployment: in which hours its robots are expected to work."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends
from fastapi.responses import JSONResponse, Response

from gapwatch.access.keys import KeyHolder
from gapwatch.api.alert_bodies import READ, WRITE, actor_of, as_json
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.store.alerting import calendars
from gapwatch.store.alerting.calendars import StoredCalendar
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.read import directory
from gapwatch.watching.working_hours import WorkCalendar

SHOWN_TIMES = 5
WEEK = {
    "time_zone": "Europe/Berlin",
    "shifts": [
        {"days": ["mon", "tue", "wed", "thu", "fri"], "from": "06:00", "to": "22:00"},
        {"days": ["sat"], "from": "22:00", "to": "06:00"},
    ],
    "holidays": ["2026-12-25"],
}
ALWAYS = {"shifts": [{"from": "00:00", "to": "24:00"}]}
PATH = "/deployments/{slug}/calendar"


def calendar_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"], dependencies=[Depends(refuse_repeated)])
    reader, admin = Depends(keyring.needs("read")), Depends(keyring.needs("admin"))

    @router.get(PATH, summary="Read the calendar", responses=problems(*READ, 404))
    def get_calendar(slug: str, holder: KeyHolder = reader) -> Any:
        """Shifts, time zone and holidays, and the next five times; null while the hours are learned instead."""
        with database.transaction(holder.project_id) as connection:
            deployment_id = _deployment_id(connection, holder.project_id, slug)
            stored = calendars.stored_calendars(connection, holder.project_id, deployment_id).get(deployment_id)
        return JSONResponse(_shown(slug, stored))

    @router.put(PATH, summary="Set the calendar", responses=problems(*WRITE, 404))
    def put_calendar(
        slug: str,
        wanted: Annotated[
            WorkCalendar,
            Body(openapi_examples={"shifts": {"value": WEEK}, "around the clock": {"value": ALWAYS}}),
        ],
        holder: KeyHolder = admin,
    ) -> Any:
        """Outside of these hours nobody waits for the robots of the deployment.

        A shift that ends before it begins ends on the next day. Holidays take away the shifts that begin on them.
        """
        with database.transaction(holder.project_id) as connection:
            deployment_id = _deployment_id(connection, holder.project_id, slug)
            calendars.put_calendar(connection, holder.project_id, deployment_id, wanted, actor_of(holder))
            stored = calendars.stored_calendars(connection, holder.project_id, deployment_id).get(deployment_id)
        return JSONResponse(_shown(slug, stored))

    @router.delete(PATH, status_code=204, summary="Delete the calendar", responses=problems(*READ, 404))
    def delete_calendar(slug: str, holder: KeyHolder = admin) -> Response:
        """The hours of the deployment are learned from its episodes again."""
        with database.transaction(holder.project_id) as connection:
            deployment_id = _deployment_id(connection, holder.project_id, slug)
            calendars.delete_calendar(connection, holder.project_id, deployment_id, actor_of(holder))
        return Response(status_code=204)

    return router


def _shown(slug: str, stored: StoredCalendar | None) -> dict[str, Any]:
    if stored is None:
        return {"deployment": slug, "calendar": None}
    now = datetime.now(UTC)
    shown: dict[str, Any] = as_json(
        {
            "deployment": slug,
            "calendar": stored.calendar.model_dump(mode="json", by_alias=True),
            "changed_by": stored.changed_by,
            "changed_at": stored.changed_at,
            "is_working": stored.calendar.is_working(now),
            "next": [window._asdict() for window in stored.calendar.next_windows(now, SHOWN_TIMES)],
        }
    )
    return shown


def _deployment_id(connection: Connection, project_id: int, slug: str) -> int:
    deployment = None if "\0" in slug else directory.find_deployment(connection, project_id, slug)
    if deployment is None:
        raise NotFound("There is no deployment with this name.")
    return deployment.id
