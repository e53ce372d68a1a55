"""Alerts: listed, opened, acknowledged, resolved, commented on and silenced; and the log of what was sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Path, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from gapwatch.access.keys import KeyHolder
from gapwatch.api import alert_bodies as bodies
from gapwatch.api.alert_bodies import READ, WRITE, Id, actor_of, as_json, example, page_of
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.incidents import alert_actions
from gapwatch.incidents.silence_answers import answer_silence
from gapwatch.keyring import Keyring
from gapwatch.pipeline import Nudger
from gapwatch.store.alerting import alert_list
from gapwatch.store.core.database import Connection, Database

LARGEST_PAGE = 200
AlertId = Annotated[int, Path(ge=1, le=2**31 - 1)]
OPEN = ["pending", "firing", "acknowledged", "no_data"]


class AlertQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    state: Literal["open", "pending", "firing", "acknowledged", "no_data", "resolved"] | None = Field(
        None, description="`open` is every state but `resolved`."
    )
    deployment: bodies.Line | None = None
    severity: Literal["info", "warning", "critical"] | None = None
    incident: Id | None = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Id | None = Field(None, description="Where the page starts: `next` of the page before.")


class DeliveryQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    incident: Id | None = None
    channel: Id | None = None
    state: Literal["due", "sent", "superseded", "dead"] | None = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Id | None = Field(None, description="Where the page starts: `next` of the page before.")


def alert_routes(database: Database, keyring: Keyring, nudger: Nudger) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"])
    reader, once = Depends(keyring.needs("read")), Depends(refuse_repeated)

    @router.get("/alerts", dependencies=[once], summary="List alerts", responses=problems(*READ))
    def list_alerts(query: Annotated[AlertQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Newest first. Alerts of one deployment that are open together share an `incident` and a notification."""
        states: list[str] = OPEN if query.state == "open" else [] if query.state is None else [query.state]
        with database.transaction(holder.project_id) as connection:
            rows = alert_list.alerts_page(
                connection,
                holder.project_id,
                states=states,
                deployment=query.deployment,
                severity=query.severity,
                incident=query.incident,
                before_id=query.after,
                limit=query.limit + 1,
            )
        page, more = page_of(rows, query.limit)
        return JSONResponse({"alerts": [_public(alert) for alert in page], "next": more})

    @router.get("/alerts/{alert_id}", dependencies=[once], summary="Read an alert", responses=problems(*READ, 404))
    def read_alert(alert_id: AlertId, holder: KeyHolder = reader) -> Any:
        """With its evidence, its history, its incident and everything that was sent of it."""
        with database.transaction(holder.project_id) as connection:
            return JSONResponse(_public(_find_alert(connection, holder.project_id, alert_id)))

    @router.get("/deliveries", dependencies=[once], summary="List deliveries", responses=problems(*READ))
    def list_deliveries(query: Annotated[DeliveryQuery, Query()], holder: KeyHolder = reader) -> Any:
        """The log of the outbox, newest first, each delivery with every attempt and what the other side said."""
        with database.transaction(holder.project_id) as connection:
            rows = alert_list.deliveries_page(
                connection,
                holder.project_id,
                incident=query.incident,
                channel=query.channel,
                state=query.state,
                before_id=query.after,
                limit=query.limit + 1,
            )
        page, more = page_of(rows, query.limit)
        return JSONResponse({"deliveries": as_json(page), "next": more})

    _action_routes(router, database, keyring, nudger)
    return router


def _action_routes(router: APIRouter, database: Database, keyring: Keyring, nudger: Nudger) -> None:
    admin = Depends(keyring.needs("admin"))

    def act(holder: KeyHolder, alert_id: int, action: Callable[[Connection, str], bool]) -> JSONResponse:
        with database.transaction(holder.project_id) as connection:
            if not action(connection, actor_of(holder)):
                raise _no_such_alert()
            alert = _find_alert(connection, holder.project_id, alert_id)
        nudger.nudge("send")
        return JSONResponse(_public(alert))

    @router.post("/alerts/{alert_id}/acknowledge", summary="Acknowledge an alert", responses=problems(*WRITE, 404))
    def acknowledge(
        alert_id: AlertId,
        body: Annotated[bodies.CommentBody | None, Body(openapi_examples=example(bodies.COMMENT))] = None,
        holder: KeyHolder = admin,
    ) -> Any:
        """Somebody takes it on, with its whole incident. Every channel that was told of it learns so."""
        comment = None if body is None else body.comment
        return act(
            holder,
            alert_id,
            lambda connection, actor: alert_actions.acknowledge(
                connection, holder.project_id, alert_id, actor, comment
            ),
        )

    @router.post("/alerts/{alert_id}/resolve", summary="Resolve an alert", responses=problems(*WRITE, 404))
    def resolve(
        alert_id: AlertId,
        body: Annotated[bodies.CommentBody | None, Body(openapi_examples=example(bodies.COMMENT))] = None,
        holder: KeyHolder = admin,
    ) -> Any:
        """Somebody says it is over. Its detector begins anew, and fires again if it is not."""
        comment = None if body is None else body.comment
        return act(
            holder,
            alert_id,
            lambda connection, actor: alert_actions.resolve(
                connection, holder.project_id, alert_id, actor, comment
            ),
        )

    @router.post("/alerts/{alert_id}/comment", summary="Comment on an alert", responses=problems(*WRITE, 404))
    def comment(
        alert_id: AlertId,
        body: Annotated[bodies.RemarkBody, Body(openapi_examples=example(bodies.COMMENT))],
        holder: KeyHolder = admin,
    ) -> Any:
        """A line in its history."""
        return act(
            holder,
            alert_id,
            lambda connection, actor: alert_actions.comment_on(
                connection, holder.project_id, alert_id, actor, body.comment
            ),
        )

    @router.post(
        "/alerts/{alert_id}/normal",
        summary="Answer whether a silence was normal",
        responses=problems(*WRITE, 404, 409),
    )
    def normal(
        alert_id: AlertId,
        answer: Annotated[bodies.NormalBody, Body(openapi_examples=example(bodies.NORMAL))],
        holder: KeyHolder = admin,
    ) -> Any:
        """`true` ends the alert, and a silence like it alerts no more; `false` keeps it and teaches nothing."""
        return act(
            holder,
            alert_id,
            lambda connection, actor: answer_silence(
                connection, holder.project_id, alert_id, actor, answer.comment, normal=answer.normal
            ),
        )

    @router.post("/alerts/{alert_id}/silence", summary="Silence an alert", responses=problems(*WRITE, 404))
    def silence(
        alert_id: AlertId,
        wanted: Annotated[bodies.SilenceAlertBody, Body(openapi_examples=example(bodies.SILENCE_ALERT))],
        holder: KeyHolder = admin,
    ) -> Any:
        """Its rule is silent for its deployment for so long. It is still recorded."""

        def put(connection: Connection, actor: str) -> bool:
            minutes = timedelta(minutes=wanted.minutes)
            return alert_actions.silence_alert(
                connection, holder.project_id, alert_id, actor, wanted.reason, minutes
            )

        return act(holder, alert_id, put)


def _public(alert: dict[str, Any]) -> Any:
    """Without numbers of rows that nobody outside can use."""
    return as_json({name: value for name, value in alert.items() if name != "deployment_id"})


def _find_alert(connection: Connection, project_id: int, alert_id: int) -> dict[str, Any]:
    alert = alert_list.find_alert(connection, project_id, alert_id)
    if alert is None:
        raise _no_such_alert()
    return alert


def _no_such_alert() -> NotFound:
    return NotFound("There is no alert with this id.")
