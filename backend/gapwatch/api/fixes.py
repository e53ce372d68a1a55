"""Fixes and what they closed, the team's table of experience, advice for a deployment, and the week."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from gapwatch.access.keys import KeyHolder
from gapwatch.api.alert_bodies import READ, Id, Line
from gapwatch.api.answer_schemas import answered, answers
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.closing.advice import AdviceAnswer, answer_advice
from gapwatch.closing.closures import MOST_MEASURED, FixAnswer, FixListAnswer, answer_fixes
from gapwatch.closing.fix_table import FixTableAnswer, fix_table
from gapwatch.closing.week import WeekAnswer, answer_week
from gapwatch.doors.costly_reads import CostlyReads, costly_route
from gapwatch.errors import NotFound
from gapwatch.filters import StatisticsFilter
from gapwatch.keyring import Keyring
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Database

LARGEST_PAGE = 100
REFUSALS = (*READ, 429)


class FixQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deployment: Line | None = Field(
        None, description="Of one deployment, and those of the project that concern it."
    )
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Id | None = Field(None, description="Where the page starts: `next` of the page before.")


class NothingAsked(BaseModel):
    model_config = ConfigDict(extra="forbid")


def fix_routes(database: Database, keyring: Keyring, costly: CostlyReads) -> APIRouter:
    router = APIRouter(
        prefix="/api/v1",
        tags=["closing the gap"],
        dependencies=[Depends(refuse_repeated)],
        route_class=costly_route(costly, keyring.of_request, aside=False),
    )
    reader = Depends(keyring.needs("read"))

    @router.get(
        "/fixes",
        summary="List fixes with what they closed",
        responses=problems(*REFUSALS) | answers(FixListAnswer, "A page of fixes."),
    )
    def list_fixes(query: Annotated[FixQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Mitigations, newest first, each with its closure: real success gained at matched conditions, less what
        the control gained. Follow `next` as `after` until it is null.

        Points are percentage points. What is told by `POST /events` with kind `mitigation` and `fix` is here.
        """
        with database.reading(holder.project_id) as connection:
            found = answer_fixes(
                connection,
                holder.project_id,
                now(connection),
                deployment=query.deployment,
                before_id=query.after,
                limit=query.limit + 1,
            )
        page = found[: query.limit]
        return answered(FixListAnswer(tuple(page), page[-1].id if len(found) > len(page) else None))

    @router.get(
        "/fixes/table",
        summary="What the team's own fixes brought",
        responses=problems(*REFUSALS) | answers(FixTableAnswer, "Kind × category."),
    )
    def read_table(query: Annotated[NothingAsked, Query()], holder: KeyHolder = reader) -> Any:
        """Kind × category over the newest fixes: how many, points closed and points per robot-hour with intervals,
        and the share that did nothing. A fix with too few episodes is counted and in no share.
        """
        with database.reading(holder.project_id) as connection:
            found = answer_fixes(connection, holder.project_id, now(connection), limit=MOST_MEASURED)
        return answered(FixTableAnswer(len(found), tuple(fix_table(found))))

    @router.get(
        "/fixes/{fix_id}",
        summary="Read one fix",
        responses=problems(*REFUSALS, 404) | answers(FixAnswer, "The fix."),
    )
    def read_fix(fix_id: Annotated[int, Path(ge=1, le=2**31 - 1)], holder: KeyHolder = reader) -> Any:
        """By the id of its event."""
        with database.reading(holder.project_id) as connection:
            found = answer_fixes(connection, holder.project_id, now(connection), number=fix_id, limit=1)
        if not found:
            raise NotFound("There is no fix with this id.")
        return answered(found[0])

    @router.get(
        "/deployments/{slug}/advice",
        summary="What to do about it",
        responses=problems(*REFUSALS, 404) | answers(AdviceAnswer, "What to do, and what to log first."),
    )
    def read_advice(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """For each category that surely loses more than half a point: what the field recommends, what to collect,
        and what the team's own fixes closed. `log_first` is what must be sent before a cause can be known.
        """
        if "\0" in slug:
            raise NotFound("There is no deployment with this name.")
        with database.reading(holder.project_id) as connection:
            answer = answer_advice(connection, holder.project_id, slug, query, now(connection))
        return answered(answer)

    @router.get(
        "/week",
        summary="The week on one page",
        responses=problems(*REFUSALS) | answers(WeekAnswer, "The week."),
    )
    def read_week(query: Annotated[NothingAsked, Query()], holder: KeyHolder = reader) -> Any:
        """What moved since last week, incidents, fixes, gates, where robot-hours would buy most, and how far each
        simulator is off: what the page `/week` and the digest show.
        """
        with database.reading(holder.project_id) as connection:
            answer = answer_week(connection, holder.project_id, now(connection))
        return answered(answer)

    return router
