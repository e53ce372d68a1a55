"""Silences, which have an owner, a reason and an end; and events, which may explain a change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from gapwatch.access.keys import KeyHolder
from gapwatch.api import alert_bodies as bodies
from gapwatch.api.alert_bodies import (
    FARTHEST_END,
    READ,
    WRITE,
    Id,
    actor_of,
    as_json,
    fault,
    moment,
    page_of,
)
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.store.alerting import alert_settings, events
from gapwatch.store.core.database import Database
from gapwatch.store.read import directory
from gapwatch.watching.recurrence import next_times

LARGEST_PAGE = 200
SHOWN_TIMES = 5
SILENCES = {"once": {"value": bodies.SILENCE}, "every week": {"value": bodies.MAINTENANCE}}


class EventQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deployment: bodies.Line | None = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Id | None = Field(None, description="Where the page starts: `next` of the page before.")


class SilenceQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    all: bool = Field(False, description="Those that are over too.")


def silence_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"])
    reader, admin, once = Depends(keyring.needs("read")), Depends(keyring.needs("admin")), Depends(refuse_repeated)

    @router.get("/silences", dependencies=[once], summary="List silences", responses=problems(*READ))
    def list_silences(query: Annotated[SilenceQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Those that hold or will hold."""
        with database.transaction(holder.project_id) as connection:
            silences = alert_settings.silences(connection, holder.project_id, all_of_them=query.all)
        return JSONResponse({"silences": as_json([_shown(silence) for silence in silences])})

    @router.post("/silences", status_code=201, summary="Silence alerts", responses=problems(*WRITE))
    def add_silence(
        wanted: Annotated[
            bodies.SilenceBody,
            Body(openapi_examples=SILENCES),
        ],
        holder: KeyHolder = admin,
    ) -> Any:
        """Alerts that fit are recorded and people are not told. It has an owner, a reason and an end.

        With `recurrence` it comes again every week until `ends_at`. `next` has its next five times.
        """
        now = datetime.now(UTC)
        starts_at, ends_at = _bounds(wanted, now)
        if wanted.kind == "maintenance" and (wanted.match.rule or wanted.match.severity):
            message = "Maintenance is of deployments; leave out `rule` and `severity`."
            raise fault("/body/match", "not-a-deployment", message)
        with database.transaction(holder.project_id) as connection:
            silence_id = alert_settings.add_silence(
                connection,
                holder.project_id,
                match=wanted.match,
                owner=actor_of(holder),
                reason=wanted.reason,
                starts_at=starts_at,
                ends_at=ends_at,
                kind=wanted.kind,
                recurrence=wanted.recurrence,
            )
        answer: dict[str, Any] = {
            "id": silence_id,
            "kind": wanted.kind,
            "starts_at": starts_at,
            "ends_at": ends_at,
        }
        if wanted.recurrence is not None:
            windows = next_times(now, starts_at, ends_at, wanted.recurrence, SHOWN_TIMES)
            answer["next"] = [window._asdict() for window in windows]
        return JSONResponse(as_json(answer), 201)

    @router.delete(
        "/silences/{silence_id}", status_code=204, summary="End a silence", responses=problems(*READ, 404)
    )
    def end_silence(silence_id: Annotated[int, Path(ge=1, le=2**31 - 1)], holder: KeyHolder = admin) -> Response:
        """What it covered and still goes on is told within seconds."""
        with database.transaction(holder.project_id) as connection:
            if not alert_settings.end_silence(connection, holder.project_id, silence_id, actor_of(holder)):
                raise NotFound("There is no silence with this id.")
        return Response(status_code=204)

    return router


def event_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"])
    reader, sender, admin = (Depends(keyring.needs(scope)) for scope in ("read", "ingest", "admin"))
    once = Depends(refuse_repeated)

    @router.get("/events", dependencies=[once], summary="List events", responses=problems(*READ))
    def list_events(query: Annotated[EventQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Dated facts that may explain a change, newest first."""
        with database.transaction(holder.project_id) as connection:
            rows = events.events_page(
                connection,
                holder.project_id,
                deployment=query.deployment,
                before_id=query.after,
                limit=query.limit + 1,
            )
        page, more = page_of(rows, query.limit)
        return JSONResponse({"events": as_json(page), "next": more})

    @router.post("/events", status_code=201, summary="Tell of an event", responses=problems(*WRITE))
    def add_event(
        wanted: Annotated[
            bodies.EventBody,
            Body(openapi_examples={"a release": {"value": bodies.EVENT}, "a fix": {"value": bodies.FIX}}),
        ],
        holder: KeyHolder = sender,
    ) -> Any:
        """A release, a calibration, a mitigation: what may explain a change. A release pipeline sends it.

        With `deployment` it is shown there only, also if that has no episodes yet (`awaits_first_episode_of`);
        with `site` or `robots` on deployments that had real episodes there, or with one of them; without any of
        them everywhere. A mitigation with `fix` is measured: `GET /fixes`.
        """
        now = datetime.now(UTC)
        at = now if wanted.at is None else moment(wanted.at, "at", now)
        if wanted.fix is not None and wanted.kind != "mitigation":
            raise fault("/body/fix", "not-a-mitigation", "Only an event of kind `mitigation` has a `fix`.")
        details: dict[str, Any] = dict(wanted.details)
        if wanted.site is not None:
            details["site"] = wanted.site
        robots = wanted.robots or (wanted.fix.robots if wanted.fix is not None else [])
        if robots:
            details["robots"] = robots
        if wanted.values:
            if wanted.kind not in bodies.MEASURING_KINDS:
                message = "Only a system_identification, a calibration or a mitigation has `values`."
                raise bodies.fault("/body/values", "not-measured", message)
            details["values"] = {
                name: value.model_dump(exclude_none=True) for name, value in wanted.values.items()
            }
        elif wanted.kind == "system_identification":
            raise bodies.fault("/body/values", "missing", "Say what was identified, as `values` by parameter.")
        with database.transaction(holder.project_id) as connection:
            deployment_id, awaited = None, None
            if wanted.deployment is not None:
                deployment = directory.find_deployment(connection, holder.project_id, wanted.deployment)
                # A release is told before its first episode: the event waits for the deployment.
                deployment_id = None if deployment is None else deployment.id
                awaited = wanted.deployment if deployment is None else None
            event_id = events.record_event(
                connection,
                holder.project_id,
                kind=wanted.kind,
                at=at,
                title=wanted.title,
                deployment_id=deployment_id,
                actor=actor_of(holder),
                details=details,
                awaited=awaited,
                fix=None if wanted.fix is None else wanted.fix.stored(),
            )
        told = {"id": event_id, "kind": wanted.kind, "at": at, "title": wanted.title}
        waits = {} if awaited is None else {"awaits_first_episode_of": awaited}
        return JSONResponse(as_json(told | waits), 201)

    @router.delete(
        "/events/{event_id}", status_code=204, summary="Take an event back", responses=problems(*READ, 404)
    )
    def delete_event(event_id: Annotated[int, Path(ge=1, le=2**31 - 1)], holder: KeyHolder = admin) -> Response:
        """It explains nothing any more. The audit trail keeps what it was, and who took it back."""
        with database.transaction(holder.project_id) as connection:
            if not events.delete_event(connection, holder.project_id, event_id, actor_of(holder)):
                raise NotFound("There is no event with this id.")
        return Response(status_code=204)

    return router


def _bounds(wanted: bodies.SilenceBody, now: datetime) -> tuple[datetime, datetime | None]:
    """Beginning and end of a silence; a series may have no end."""
    starts_at = now if wanted.starts_at is None else moment(wanted.starts_at, "starts_at", now, FARTHEST_END)
    if wanted.recurrence is None and (wanted.ends_at is None) == (wanted.minutes is None):
        raise fault("/body/ends_at", "end-needed", "Give either `ends_at` or `minutes`.")
    if wanted.recurrence is not None and wanted.minutes is not None:
        raise fault("/body/minutes", "end-needed", "A series has hours; give its end as `ends_at`, or none.")
    if wanted.minutes is not None:
        ends_at = starts_at + timedelta(minutes=wanted.minutes)
    elif wanted.ends_at is not None:
        ends_at = moment(wanted.ends_at, "ends_at", now, FARTHEST_END)
    else:
        return starts_at, None
    if not starts_at < ends_at or ends_at < now or ends_at > now + FARTHEST_END:
        raise fault("/body/ends_at", "bad-end", "A silence ends after it starts, in the future, within two years.")
    return starts_at, ends_at


def _shown(silence: dict[str, Any]) -> dict[str, Any]:
    """Without what does not hold for it: a silence that holds once has no hours."""
    return {name: value for name, value in silence.items() if name != "recurrence" or value is not None}
