"""Incidents: listed, opened, acknowledged, assigned, silenced, resolved and commented on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Body, Depends, Path, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from gapwatch.access.keys import KeyHolder
from gapwatch.answers.incident_change import incident_change
from gapwatch.answers.incident_standing import IncidentStanding, incident_standings
from gapwatch.api import alert_bodies as bodies
from gapwatch.api.alert_bodies import READ, WRITE, Id, actor_of, as_json, example, fault, page_of
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.filters import parse_time
from gapwatch.incidents import incident_actions
from gapwatch.keyring import Keyring
from gapwatch.pipeline import Nudger
from gapwatch.store.alerting import alert_list, incident_list
from gapwatch.store.core.database import Connection, Database

LARGEST_PAGE = 200
LONGEST_SILENCE = timedelta(days=732)
IncidentId = Annotated[int, Path(ge=1, le=2**31 - 1)]
ACKNOWLEDGE = {"comment": "looking at the gripper"}
ASSIGN = {"owner": "anna@example.com", "comment": "knows the camera"}
SILENCE_INCIDENT = {"reason": "gripper is being changed", "minutes": 240}


class IncidentQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    state: Literal["open", "firing", "acknowledged", "resolved", "all"] = Field(
        "all", description="`open` is every state but `resolved`; `firing` is what nobody has acknowledged."
    )
    deployment: bodies.Line | None = None
    severity: Literal["info", "warning", "critical"] | None = None
    owner: bodies.Line | None = Field(None, description="Who takes care of it; `nobody` for those without.")
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Id | None = Field(None, description="Where the page starts: `next` of the page before.")


class AssignBody(bodies.Body):
    owner: bodies.Line | None = Field(
        description="E-mail address of an engineer or admin of the project, or its part before the @; or null."
    )
    comment: bodies.Words | None = None


class SilenceIncidentBody(bodies.Body):
    reason: bodies.Line
    ends_at: bodies.Moment | None = Field(None, description="RFC 3339; or give `minutes`.")
    minutes: Annotated[int, Field(ge=1, le=366 * 24 * 60)] | None = None


def incident_routes(database: Database, keyring: Keyring, nudger: Nudger) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"])
    reader, once = Depends(keyring.needs("read")), Depends(refuse_repeated)

    @router.get("/incidents", dependencies=[once], summary="List incidents", responses=problems(*READ))
    def list_incidents(query: Annotated[IncidentQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Newest first: what people are told about and act on. Its alerts are its reasons.

        `now` is the success of the newest 100 decided episodes since `changed_at`, `before` that of the 300 before
        it, or of sim where the deployment has no past of its own; both with n and interval.
        """
        with database.transaction(holder.project_id) as connection:
            rows = incident_list.incidents_page(
                connection,
                holder.project_id,
                states=incident_list.STATES[query.state],
                deployment=query.deployment,
                severity=query.severity,
                owner=query.owner,
                before_id=query.after,
                limit=query.limit + 1,
            )
            page, more = page_of(rows, query.limit)
            standing = incident_standings(connection, holder.project_id, page)
            listed = [_listed(row, standing[row["id"]]) for row in page]
        return JSONResponse({"incidents": as_json(listed), "next": more})

    @router.get(
        "/incidents/{incident_id}",
        dependencies=[once],
        summary="Read an incident",
        responses=problems(*READ, 404),
    )
    def read_incident(incident_id: IncidentId, holder: KeyHolder = reader) -> Any:
        """With what is known now of its change, robots, slices and failures, its history and what was sent."""
        with database.transaction(holder.project_id) as connection:
            return JSONResponse(as_json(_whole(connection, holder.project_id, incident_id)))

    _action_routes(router, database, keyring, nudger)
    return router


def _action_routes(router: APIRouter, database: Database, keyring: Keyring, nudger: Nudger) -> None:
    admin = Depends(keyring.needs("admin"))

    def act(holder: KeyHolder, incident_id: int, action: Callable[[Connection, str], bool]) -> JSONResponse:
        with database.transaction(holder.project_id) as connection:
            if not action(connection, actor_of(holder)):
                raise _no_such_incident()
            incident = _whole(connection, holder.project_id, incident_id)
        nudger.nudge("send")
        return JSONResponse(as_json(incident))

    @router.post(
        "/incidents/{incident_id}/acknowledge",
        summary="Acknowledge an incident",
        responses=problems(*WRITE, 404, 409),
    )
    def acknowledge(
        incident_id: IncidentId,
        body: Annotated[bodies.CommentBody | None, Body(openapi_examples=example(ACKNOWLEDGE))] = None,
        holder: KeyHolder = admin,
    ) -> Any:
        """Somebody takes it on with every alert of it, and owns it if nobody did. Whoever was told learns so."""
        comment = None if body is None else body.comment
        return act(
            holder,
            incident_id,
            lambda connection, actor: incident_actions.acknowledge(
                connection, holder.project_id, incident_id, actor, comment
            ),
        )

    @router.post(
        "/incidents/{incident_id}/assign", summary="Assign an incident", responses=problems(*WRITE, 404, 409)
    )
    def assign(
        incident_id: IncidentId,
        wanted: Annotated[AssignBody, Body(openapi_examples=example(ASSIGN))],
        holder: KeyHolder = admin,
    ) -> Any:
        """Say who takes care of it: a member who may act on it, or nobody."""
        return act(
            holder,
            incident_id,
            lambda connection, actor: incident_actions.assign(
                connection, holder.project_id, incident_id, actor, wanted.owner, wanted.comment
            ),
        )

    @router.post(
        "/incidents/{incident_id}/silence", summary="Silence an incident", responses=problems(*WRITE, 404, 409)
    )
    def silence(
        incident_id: IncidentId,
        wanted: Annotated[SilenceIncidentBody, Body(openapi_examples=example(SILENCE_INCIDENT))],
        holder: KeyHolder = admin,
    ) -> Any:
        """Its deployment is silent until then: everything is recorded and nobody is told."""
        ends_at = _end(wanted, datetime.now(UTC))
        return act(
            holder,
            incident_id,
            lambda connection, actor: incident_actions.silence(
                connection, holder.project_id, incident_id, actor, wanted.reason, ends_at
            ),
        )

    @router.post(
        "/incidents/{incident_id}/resolve", summary="Resolve an incident", responses=problems(*WRITE, 404)
    )
    def resolve(
        incident_id: IncidentId,
        body: Annotated[bodies.CommentBody | None, Body(openapi_examples=example(ACKNOWLEDGE))] = None,
        holder: KeyHolder = admin,
    ) -> Any:
        """Somebody says it is over, with every alert of it. Their detectors begin anew, and fire if it is not."""
        comment = None if body is None else body.comment
        return act(
            holder,
            incident_id,
            lambda connection, actor: incident_actions.resolve(
                connection, holder.project_id, incident_id, actor, comment
            ),
        )

    @router.post(
        "/incidents/{incident_id}/comment", summary="Comment on an incident", responses=problems(*WRITE, 404)
    )
    def comment(
        incident_id: IncidentId,
        body: Annotated[bodies.RemarkBody, Body(openapi_examples=example(ACKNOWLEDGE))],
        holder: KeyHolder = admin,
    ) -> Any:
        """A line in its history; also when it is over."""
        return act(
            holder,
            incident_id,
            lambda connection, actor: incident_actions.comment_on(
                connection, holder.project_id, incident_id, actor, body.comment
            ),
        )


def _listed(row: dict[str, Any], standing: IncidentStanding) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "deployment_id"} | asdict(standing)


def _whole(connection: Connection, project_id: int, incident_id: int) -> dict[str, Any]:
    incident = incident_list.find_incident(connection, project_id, incident_id)
    if incident is None:
        raise _no_such_incident()
    standing = incident_standings(connection, project_id, [incident])[incident_id]
    found, _ = incident_change(connection, project_id, incident)
    deliveries = alert_list.deliveries_page(
        connection, project_id, incident=incident_id, channel=None, state=None, before_id=None, limit=LARGEST_PAGE
    )
    return _listed(incident, standing) | asdict(found) | {"deliveries": deliveries}


def _end(wanted: SilenceIncidentBody, now: datetime) -> datetime:
    if (wanted.ends_at is None) == (wanted.minutes is None):
        raise fault("/body/ends_at", "end-needed", "Give either `ends_at` or `minutes`.")
    if wanted.minutes is not None:
        return now + timedelta(minutes=wanted.minutes)
    try:
        ends_at = parse_time(cast(str, wanted.ends_at), now)
    except (ValueError, OverflowError) as error:
        raise fault("/body/ends_at", "bad-time", "Write a time as 2026-11-02T09:14:03Z.") from error
    if not now < ends_at <= now + LONGEST_SILENCE:
        raise fault("/body/ends_at", "bad-end", "A silence ends in the future, within two years.")
    return ends_at


def _no_such_incident() -> NotFound:
    return NotFound("There is no incident with this id.")
