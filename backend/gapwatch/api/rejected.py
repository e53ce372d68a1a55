"""The quarantine: which records were refused, and why, so that a fleet with a typo can be helped."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.access.keys import KeyHolder
from gapwatch.api import examples
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database
from gapwatch.store.write.quarantine import rejected_page

LARGEST_PAGE = 200


class RejectedQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    code: Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z0-9-]+$")] | None = Field(
        None, description="Only records refused for this reason first."
    )
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="Where the page starts: `next` of the page before."
    )


def rejected_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["episodes"])
    reader = Depends(keyring.needs("read"))

    @router.get(
        "/rejected",
        dependencies=[Depends(refuse_repeated)],
        summary="List refused records",
        responses=problems(401, 403, 422, 503) | examples.rejected,
    )
    def list_rejected(query: Annotated[RejectedQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Records that were refused, newest first, with every reason and the bytes that were sent.

        The newest thousand of a project are kept, for 30 days, the first 64 KiB of each.
        """
        with database.transaction(holder.project_id) as connection:
            records = rejected_page(connection, holder.project_id, query.code, query.after, query.limit + 1)
        page = records[: query.limit]
        return JSONResponse({"rejected": page, "next": page[-1]["id"] if len(records) > len(page) else None})

    return router
