"""Which policy version may drive at a deployment, as robots ask for it; and how fast a stop reaches them all."""

from __future__ import annotations

import re
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi import Body as RequestBody
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from gapwatch.access.keys import KeyHolder
from gapwatch.answers.drills import drill_rollout
from gapwatch.api.alert_bodies import READ, WRITE, Body, Line, actor_of, example
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.permit_board import PermitBoard
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database

LONGEST_WAIT_S = 30.0
LONGEST_CLIENT = 128
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


def permit_routes(database: Database, keyring: Keyring, board: PermitBoard) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["rollout"])
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
        place = None if "\0" in slug else await board.place_of(holder.project_id, slug)
        permit = None if place is None else await board.current(place)
        if place is None or permit is None:
            raise NotFound(NO_SUCH_DEPLOYMENT)
        known = request.headers.get("if-none-match", "").removeprefix("W/")
        if known == permit.tag:
            board.hear(place, _client(request, holder), permit.revision)
            if query.wait:
                permit = await board.news(place, known, query.wait)
        headers = {"ETag": permit.tag, "Cache-Control": "no-store"}
        if known == permit.tag:
            return Response(status_code=304, headers=headers)
        return JSONResponse(permit.body, headers=headers)

    @router.post(
        "/deployments/{slug}/rollout/drill",
        summary="Measure how fast a decision reaches every robot",
        responses=problems(*WRITE, 404, 409),
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
                database, holder.project_id, slug, who=actor_of(holder), reason=wanted.reason, sleep=time.sleep
            )
        )

    return router


def _client(request: Request, holder: KeyHolder) -> str:
    """Who asks: as it names itself, else its key and address."""
    name = _NOT_IN_A_NAME.sub("?", request.headers.get("gapwatch-client", "").strip())[:LONGEST_CLIENT]
    return name or f"key {holder.prefix} from {request.client.host if request.client else 'somewhere'}"
