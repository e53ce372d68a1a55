"""Which policy version may drive at a deployment, as robots ask for it; and how fast a stop reaches them all."""

from __future__ import annotations

import json
import re
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi import Body as RequestBody
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from gapwatch.access.keys import KeyHolder
from gapwatch.api.alert_bodies import READ, WRITE, Body, Line, actor_of, example
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.permit_board import PermitBoard
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.fast_answers import Handler, RawAnswer
from gapwatch.keyring import Keyring
from gapwatch.rollouts.deciding import Decider
from gapwatch.rollouts.drills import drill_rollout
from gapwatch.store.core.database import Database
from gapwatch.store.rollout.permits import Permit

LONGEST_WAIT_S = 30.0
LONGEST_CLIENT = 128
NOT_MODIFIED = 304
_NOT_IN_A_NAME = re.compile(r"[^\x20-\x7e]")
NO_SUCH_DEPLOYMENT = "There is no deployment with this name."


class PermitQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    wait: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False)] = Field(
        0.0, description="With `If-None-Match`: seconds to wait for another permit before 304 is answered."
    )


class DrillBody(Body):
    reason: Line = "drill"


DRILL = {"reason": "quarterly drill"}
PERMIT: dict[str, Any] = {
    "policy": {"name": "bin-pick", "version": "1.3.0"},
    "stage": "supervised",
    "state": "fallback",
    "decided_at": "2026-11-18T09:30:00Z",
    "decision": 17,
}


def permit_routes(database: Database, keyring: Keyring, board: PermitBoard, link_base: str) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["rollout"])
    calls = PermitCalls(keyring, board)
    sender, admin, once = (
        Depends(keyring.needs("ingest")),
        Depends(keyring.needs("admin")),
        Depends(refuse_repeated),
    )

    @router.get(
        "/deployments/{slug}/permit",
        dependencies=[once],
        summary="Ask what may drive",
        responses=problems(*READ, 404, 503)
        | {
            200: {"content": {"application/json": {"example": PERMIT}}},
            304: {"description": "It is still the permit of `If-None-Match`."},
        },
    )
    async def get_permit(
        slug: str, query: Annotated[PermitQuery, Query()], request: Request, holder: KeyHolder = sender
    ) -> Response:
        """The policy version that may drive, the stage, and `go`, `fallback` or `stop`; null: nothing may drive.

        An operational switch, not a safety function. The answer has an `ETag`; with it as `If-None-Match`, and
        `wait`, the call returns when something is decided, or with 304 after the time. `Gapwatch-Client` names who
        asks, for drills.
        """
        known = request.headers.get("if-none-match", "")
        client = _client(request.headers.get("gapwatch-client", ""), request.scope, holder)
        permit = await calls.ask(holder, slug, known, client, query.wait)
        if permit.tag == _plain_tag(known):
            return Response(status_code=NOT_MODIFIED, headers={"ETag": permit.tag})
        return JSONResponse(permit.body, headers={"ETag": permit.tag})

    @router.post(
        "/deployments/{slug}/rollout/drill",
        summary="Measure how fast a decision reaches every robot",
        responses=problems(*WRITE, 404),
    )
    def drill(
        slug: str,
        wanted: Annotated[DrillBody, RequestBody(openapi_examples=example(DRILL))],
        holder: KeyHolder = admin,
    ) -> Any:
        """Changes nothing that drives: the permit gets another tag, and it is measured when each client asks with
        it that asked in the last 45 seconds. Answers when all have, after ten seconds at most; `missing` names
        those that have not.
        """
        return JSONResponse(
            drill_rollout(
                database,
                holder.project_id,
                slug,
                reason=wanted.reason,
                decider=Decider(actor_of(holder), "admin", link_base),
                sleep=time.sleep,
            )
        )

    return router


class PermitCalls:
    """The call that hundreds of robots make at one moment, answered without the framework.

    Through it, each answer took milliseconds of one core: a stop reached the last robots seconds later.
    """

    def __init__(self, keyring: Keyring, board: PermitBoard) -> None:
        self._keyring, self._board = keyring, board

    def find(self, scope: Scope) -> Handler | None:
        """For calls as our client makes them; anything else is read, and refused, by the route."""
        return self._answer if _PATH.fullmatch(scope["path"]) and _wait(scope) is not None else None

    async def ask(self, holder: KeyHolder, slug: str, known: str, client: str, wait_s: float) -> Permit:
        """The permit as it is, or as it becomes within the time if it is the one that is known."""
        board = self._board
        place = None if "\0" in slug else await board.place_of(holder.project_id, slug)
        permit = None if place is None else await board.current(place)
        if place is None or permit is None:
            raise NotFound(NO_SUCH_DEPLOYMENT)
        if _plain_tag(known) == permit.tag:
            board.hear(place, client, permit.revision)
            if wait_s:
                permit = await board.news(place, permit.tag, wait_s)
        return permit

    async def _answer(self, scope: Scope, receive: Receive) -> RawAnswer:
        named = {name: value for name, value in scope["headers"] if name in _HEADERS}
        authorization = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
        address = scope["client"][0] if scope.get("client") else None
        holder = await self._keyring.authorize(authorization, "ingest", address)
        known = named.get(b"if-none-match", b"").decode("latin-1")
        client = _client(named.get(b"gapwatch-client", b"").decode("latin-1"), scope, holder)
        slug = _PATH.fullmatch(scope["path"])
        permit = await self.ask(holder, slug[1] if slug else "", known, client, _wait(scope) or 0.0)
        if permit.tag == _plain_tag(known):
            return RawAnswer(NOT_MODIFIED, b"", headers={"ETag": permit.tag})
        return RawAnswer(200, json.dumps(permit.body).encode(), headers={"ETag": permit.tag})


_PATH = re.compile(r"/api/v1/deployments/([^/]+)/permit")
_HEADERS = (b"if-none-match", b"gapwatch-client")


def _wait(scope: Scope) -> float | None:
    """The seconds of `wait=25` alone, 0 without a query; None for anything else."""
    query: bytes = scope["query_string"]
    if not query:
        return 0.0
    seconds = query.removeprefix(b"wait=")
    return float(seconds) if len(seconds) <= 2 and seconds.isdigit() and int(seconds) <= LONGEST_WAIT_S else None  # noqa: PLR2004


def _plain_tag(tag: str) -> str:
    return tag.removeprefix("W/")


def _client(name: str, scope: Scope, holder: KeyHolder) -> str:
    """Who asks: as it names itself, else its key and address."""
    plain = _NOT_IN_A_NAME.sub("?", name.strip())[:LONGEST_CLIENT]
    address = scope["client"][0] if scope.get("client") else "somewhere"
    return plain or f"key {holder.prefix} from {address}"
