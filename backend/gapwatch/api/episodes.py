"""Reading and exporting episodes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import Field

from gapwatch.access.keys import KeyHolder
from gapwatch.api import examples
from gapwatch.api.exports import Exports
from gapwatch.api.parameters import read_mark, refuse_repeated, write_mark
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.filters import EpisodeFilter
from gapwatch.keyring import Keyring
from gapwatch.store.core.audit import audit
from gapwatch.store.core.database import Database
from gapwatch.store.read import episodes

LARGEST_PAGE = 1000


class EpisodeList(EpisodeFilter):
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(100, description="Episodes on a page.")
    after: Annotated[str, Field(max_length=400)] | None = Field(
        None, description="Where the page starts: `next` of the page before."
    )


class EpisodeExport(EpisodeFilter):
    format: Literal["csv", "ndjson", "parquet"] = Field("csv", description="The kind of file.")


def episode_routes(database: Database, keyring: Keyring, exports: Exports) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["episodes"])
    reader = Depends(keyring.needs("read"))
    once = Depends(refuse_repeated)

    @router.get(
        "/episodes",
        dependencies=[once],
        summary="List episodes",
        responses=problems(401, 403, 422, 429, 503) | examples.episode_page,
    )
    def list_episodes(query: Annotated[EpisodeList, Query()], holder: KeyHolder = reader) -> Any:
        """Episodes that match every filter, newest first, a page at a time. Follow `next` until it is null."""
        with database.transaction(holder.project_id) as connection:
            page, next_place = episodes.episodes_page(
                connection, holder.project_id, query, read_mark(query.after), query.limit
            )
        return JSONResponse({"episodes": page, "next": write_mark(next_place)})

    @router.get(
        "/episodes/export",
        dependencies=[once],
        summary="Export episodes",
        responses=problems(401, 403, 422, 429, 503) | examples.export,
    )
    def export_episodes(query: Annotated[EpisodeExport, Query()], holder: KeyHolder = reader) -> Any:
        """Every episode that matches, oldest first, streamed as CSV, NDJSON or Parquet.

        Text that a spreadsheet would run as a formula starts with an apostrophe in CSV. A project may run two
        exports at a time. A reader that stalls is cut off: a file is complete only if its last chunk came.
        """
        asked = query.model_dump(mode="json", exclude_defaults=True, exclude={"format"})
        with database.transaction(holder.project_id) as connection:
            audit(
                connection,
                holder.project_id,
                f"key/{holder.prefix}",
                "episodes.exported",
                "episodes",
                format=query.format,
                filter=asked,
            )
        return exports.answer(holder.project_id, query, query.format)

    @router.get(
        "/episodes/{episode_id}",
        dependencies=[once],
        summary="Read one episode",
        responses=problems(401, 403, 404, 422, 503) | examples.one_episode,
    )
    def read_episode(episode_id: str, holder: KeyHolder = reader) -> Any:
        """The record as it was sent, with `received_at`, `revision` and, if it was wrong, `clock_skew_s`."""
        with database.transaction(holder.project_id) as connection:
            record = episodes.find_episode(connection, holder.project_id, _storable(episode_id))
        if record is None:
            raise _no_such_episode()
        return JSONResponse(record)

    return router


def _storable(episode_id: str) -> str:
    """Postgres knows no U+0000, so no stored id has one."""
    if "\0" in episode_id:
        raise _no_such_episode()
    return episode_id


def _no_such_episode() -> NotFound:
    return NotFound("There is no episode with this id.")
