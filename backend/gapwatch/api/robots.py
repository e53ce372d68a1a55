"""Robots: where each works, whether it works, and moving it; the robot itself may say that it is parked."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi import Body as RequestBody
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.access.keys import KeyHolder
from gapwatch.api.alert_bodies import (
    READ,
    WRITE,
    Body,
    Line,
    Moment,
    actor_of,
    as_json,
    example,
    fault,
    moment,
)
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import Conflict, Fault, Forbidden, NotFound
from gapwatch.filters import Name
from gapwatch.incidents import robot_actions
from gapwatch.incidents.robot_actions import StatusWish
from gapwatch.keyring import Keyring
from gapwatch.pipeline import Nudger
from gapwatch.store.alerting import robot_statuses
from gapwatch.store.alerting.robot_statuses import ListedRobot, RobotPlace
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.read import directory
from gapwatch.store.read.directory import Deployment
from gapwatch.watching.robot_status import MAY_END, SAID_BY_ROBOTS, RobotState
from gapwatch.watching.silence import NO_ROBOT

LARGEST_PAGE = 1000
LONGEST_AGE_S = 10 * 366 * 86400
RobotName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]

# A century: what is never to work again is retired.
LONGEST_REST = timedelta(days=36_525)


class RobotQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deployment: Name | None = Field(None, description="Slug of the deployment that the robot works at.")
    status: RobotState | None = Field(None, description="Only robots of this status.")
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 200
    after: Name | None = Field(None, description="Where the page starts: `next` of the page before.")


class StatusBody(Body):
    status: RobotState
    until: Moment | None = Field(None, description="RFC 3339; when it works again by itself.")
    reason: Line | None = None
    age_s: Annotated[float, Field(ge=0, le=LONGEST_AGE_S, allow_inf_nan=False)] = Field(
        0.0, description="How long ago it was said, by a sender that was off line. A newer statement stands."
    )


class NamedStatusBody(StatusBody):
    robot: RobotName | None = None
    deployment: Line | None = Field(None, description="Of a deployment whose episodes name no robot.")


class MoveBody(Body):
    deployment: Line
    reason: Line | None = None


class NamedMoveBody(MoveBody):
    robot: RobotName


STATUS = {"status": "repair", "until": "2099-11-20T08:00:00Z", "reason": "gripper is being changed"}
PARKED = {"robot": "ur5e-012", "status": "parked", "reason": "shift is over"}
MOVE = {"deployment": "berlin-line-4"}
NAMED_MOVE = {"robot": "ur5e-012", "deployment": "berlin-line-4"}
CHANGE = (*WRITE, 404)


def robot_routes(database: Database, keyring: Keyring, nudger: Nudger) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"])
    reader, sender, admin, once = (
        Depends(keyring.needs("read")),
        Depends(keyring.needs("ingest")),
        Depends(keyring.needs("admin")),
        Depends(refuse_repeated),
    )

    @router.get("/robots", dependencies=[once], summary="List robots", responses=problems(*READ))
    def list_robots(query: Annotated[RobotQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Every robot by name: its deployment, when it was last heard, whether it works, and its open alert."""
        with database.transaction(holder.project_id) as connection:
            rows = robot_statuses.list_robots(
                connection,
                holder.project_id,
                after=query.after or "",
                limit=query.limit + 1,
                deployment=query.deployment,
            )
        page = rows[: query.limit]
        shown = [_shown(row) for row in page if query.status in {None, row.status}]
        return JSONResponse({"robots": shown, "next": page[-1].robot if len(rows) > len(page) else None})

    @router.put("/robots/status", summary="Say whether a robot works", responses=problems(*CHANGE))
    def put_named_status(
        wanted: Annotated[NamedStatusBody, RequestBody(openapi_examples=example(PARKED))],
        holder: KeyHolder = sender,
    ) -> Any:
        """The same as the call below with the name in the body, which is what the client uses.

        A key of scope ingest may say `parked` and `working`.
        """
        if (wanted.robot is None) == (wanted.deployment is None):
            raise fault("/body/robot", "robot-needed", "Give the name of the robot.")
        with database.transaction(holder.project_id) as connection:
            robot = wanted.robot
            if robot is None:
                robot = f"{NO_ROBOT}{_deployment(connection, holder.project_id, str(wanted.deployment)).id}"
            answer = _set(connection, holder, robot, wanted)
        nudger.nudge("send")
        return JSONResponse(answer)

    @router.put("/robots/{name:path}/status", summary="Say whether this robot works", responses=problems(*CHANGE))
    def put_status(
        name: str,
        wanted: Annotated[StatusBody, RequestBody(openapi_examples=example(STATUS))],
        holder: KeyHolder = sender,
    ) -> Any:
        """`working`, `parked`, `repair` or `retired`. A robot that rests is not missed: its silence alert ends.

        What a robot says of itself, with a key of scope ingest, also ends with its next live episode. `applied` is
        false when a newer statement stands, or when people said something that a robot cannot take back.
        """
        with database.transaction(holder.project_id) as connection:
            answer = _set(connection, holder, name, wanted)
        nudger.nudge("send")
        return JSONResponse(answer)

    @router.post("/robots/move", summary="Move a robot", responses=problems(*CHANGE, 409))
    def move_named(
        wanted: Annotated[NamedMoveBody, RequestBody(openapi_examples=example(NAMED_MOVE))],
        holder: KeyHolder = admin,
    ) -> Any:
        """The same as the call below with the name in the body."""
        with database.transaction(holder.project_id) as connection:
            answer = _move(connection, holder, wanted.robot, wanted)
        nudger.nudge("send")
        return JSONResponse(answer)

    @router.post("/robots/{name:path}/move", summary="Move this robot", responses=problems(*CHANGE, 409))
    def move(
        name: str,
        wanted: Annotated[MoveBody, RequestBody(openapi_examples=example(MOVE))],
        holder: KeyHolder = admin,
    ) -> Any:
        """It belongs to another deployment from now on; its silence at the old one ends."""
        with database.transaction(holder.project_id) as connection:
            answer = _move(connection, holder, name, wanted)
        nudger.nudge("send")
        return JSONResponse(answer)

    @router.get("/robots/{name:path}", summary="Look at a robot", responses=problems(*READ, 404))
    def get_robot(name: str, holder: KeyHolder = reader) -> Any:
        """The same as in the list, and the newest of what was said about it."""
        with database.transaction(holder.project_id) as connection:
            robot = _known(connection, holder.project_id, name)
            history = robot_statuses.history_of(connection, holder.project_id, robot)
            answer = _listed(connection, holder.project_id, robot)
        return JSONResponse(answer | {"history": as_json([asdict(change) for change in history])})

    return router


def _set(connection: Connection, holder: KeyHolder, name: str, wanted: StatusBody) -> dict[str, Any]:
    by_robot = holder.scope == "ingest"
    if by_robot and wanted.status not in SAID_BY_ROBOTS:
        raise Forbidden("A key of scope ingest may say `parked` or `working`; this needs scope admin.")
    robot = _known(connection, holder.project_id, name)
    until = _end(wanted, now(connection))
    wish = StatusWish(wanted.status, until, wanted.reason, timedelta(seconds=wanted.age_s))
    against = robot_actions.set_status(
        connection, holder.project_id, robot, wish, actor_of(holder), by_robot=by_robot
    )
    answer = _listed(connection, holder.project_id, robot) | {"applied": against is None}
    return answer if against is None else answer | {"why": against}


def _end(wanted: StatusBody, at: datetime) -> datetime | None:
    if wanted.until is None:
        return None
    if wanted.status not in MAY_END:
        message = "Only `parked` and `repair` end by themselves; leave `until` out."
        raise fault("/body/until", "no-end", message)
    until = moment(wanted.until, "until", at, LONGEST_REST)
    if until <= at:
        raise fault("/body/until", "in-the-past", "Give a time that is still to come, or leave `until` out.")
    return until


def _move(connection: Connection, holder: KeyHolder, name: str, wanted: MoveBody) -> dict[str, Any]:
    robot = _known(connection, holder.project_id, name)
    found = directory.find_deployment(connection, holder.project_id, wanted.deployment)
    if found is None:
        raise fault("/body/deployment", "unknown-deployment", "There is no deployment of this name.")
    to = RobotPlace(found.id, found.slug)
    if not robot_actions.move_robot(connection, holder.project_id, robot, to, actor_of(holder), wanted.reason):
        message = "No live episode of this robot has come yet; its first one says where it works."
        raise Conflict(message, errors=[Fault(pointer="/robot", code="never-heard", message=message)])
    return _listed(connection, holder.project_id, robot)


def _known(connection: Connection, project_id: int, name: str) -> str:
    """The name as episodes store it: é as one letter or as two is one name."""
    robot = unicodedata.normalize("NFC", name)
    if "\0" in robot or not robot_statuses.find_robot(connection, project_id, robot):
        raise NotFound("There is no robot of this name; the first episode that names it makes one.")
    return robot


def _deployment(connection: Connection, project_id: int, slug: str) -> Deployment:
    deployment = directory.find_deployment(connection, project_id, slug)
    if deployment is None:
        raise NotFound("There is no deployment of this name.")
    return deployment


def _listed(connection: Connection, project_id: int, robot: str) -> dict[str, Any]:
    [row] = robot_statuses.list_robots(connection, project_id, only=robot) or [ListedRobot.unheard(robot)]
    return _shown(row)


def _shown(row: ListedRobot) -> dict[str, Any]:
    shown: dict[str, Any] = as_json(asdict(row))
    return shown
