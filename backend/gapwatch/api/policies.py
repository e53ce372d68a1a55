"""Reading policies: the drop and the ledger of a version over all its tasks and deployments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from starlette.responses import Response

from gapwatch.access.keys import KeyHolder
from gapwatch.answers import drop, ledger
from gapwatch.answers.drop import DropAnswer, answer_drop
from gapwatch.answers.ledger import LedgerAnswer, answer_ledger
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.question import question_of
from gapwatch.answers.sides import Sides
from gapwatch.answers.subjects import policy_subject
from gapwatch.api.answer_schemas import answered, answers
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.doors.costly_reads import CostlyReads, costly_route
from gapwatch.errors import NotFound
from gapwatch.filters import DropFilter, Name, StatisticsFilter
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database

REFUSALS = (401, 403, 404, 422, 429, 503)
VERSION = "Version of the policy; else the newest that has run on a robot."


class PolicyDropFilter(DropFilter):
    version: Name | None = Field(None, description=VERSION)


class PolicyFilter(StatisticsFilter):
    version: Name | None = Field(None, description=VERSION)


def policy_routes(database: Database, keyring: Keyring, costly: CostlyReads) -> APIRouter:
    router = APIRouter(
        prefix="/api/v1",
        tags=["statistics"],
        dependencies=[Depends(refuse_repeated)],
        route_class=costly_route(costly, keyring.of_request, aside=False),
    )
    reader = Depends(keyring.needs("read"))

    def about(
        name: str,
        asked: PolicyDropFilter | PolicyFilter,
        holder: KeyHolder,
        needs: Need,
        answer: Callable[[Sides], Any],
    ) -> Response:
        if "\0" in name:
            raise NotFound("There is no policy with this name and version.")
        question = question_of(asked, datetime.now(UTC))
        with database.reading(holder.project_id) as connection:
            subject = policy_subject(connection, holder.project_id, name, asked.version)
            sides = load_sides(connection, holder.project_id, subject, question, needs)
        return answered(answer(sides))

    # A policy may be called lab/grasp, so its name takes what is left of the path.
    @router.get(
        "/policies/{name:path}/drop",
        summary="How much a policy loses",
        responses=problems(*REFUSALS) | answers(DropAnswer, "The metric on both sides and the drop."),
    )
    def read_policy_drop(
        name: str, query: Annotated[PolicyDropFilter, Query()], holder: KeyHolder = reader
    ) -> Any:
        """One metric over all tasks and deployments of a policy version, and over all its sim episodes.

        The two sides may have been tried on different tasks: the ledger says how much of the drop that is.
        """
        return about(name, query, holder, drop.NEEDS, answer_drop)

    @router.get(
        "/policies/{name:path}/ledger",
        summary="Why a policy loses",
        responses=problems(*REFUSALS) | answers(LedgerAnswer, "The drop by gap category and by task."),
    )
    def read_policy_ledger(name: str, query: Annotated[PolicyFilter, Query()], holder: KeyHolder = reader) -> Any:
        """The success drop over gap categories, and as off-support, mix and rate over tasks.

        Tasks that only one side has are off-support. Where the crude drop and the rate have opposite signs, a
        warning says so.
        """
        return about(name, query, holder, ledger.NEEDS, answer_ledger)

    return router
