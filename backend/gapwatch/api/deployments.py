"""Reading deployments: the fleet, and every question about one of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from gapwatch.access.keys import KeyHolder
from gapwatch.answers import deployment, now
from gapwatch.answers.answer_kind import AnswerKind
from gapwatch.answers.catalogue import DEPLOYMENT_ANSWERS
from gapwatch.answers.deployment import DeploymentAnswer, answer_deployment
from gapwatch.answers.fleet import FleetAnswer, FleetOrder, answer_fleet
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.now import NowAnswer, answer_now
from gapwatch.answers.question import question_of
from gapwatch.answers.sides import Sides
from gapwatch.answers.subjects import deployment_subject
from gapwatch.api.answer_schemas import answered, answers
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.doors.costly_reads import CostlyReads, costly_route
from gapwatch.errors import NotFound
from gapwatch.filters import Name, StatisticsFilter
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database

LARGEST_PAGE = 1000
REFUSALS = (401, 403, 404, 422, 429, 503)


class NowFilter(BaseModel):
    model_config = ConfigDict(extra="forbid")

    simulator: list[Name] = Field(
        default_factory=list,
        max_length=50,
        description="name or name@version of the baseline; of several, the one with the most episodes.",
    )


class DeploymentList(StatisticsFilter):
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(100, description="Deployments on a page.")
    after: Name | None = Field(None, description="Where the page starts: `next` of the page before.")
    order: FleetOrder = Field(
        "name",
        description=(
            "By name; `now` and `worst` by the lower end of the drop, of the newest episodes and of the window; "
            "`newest` by the last episode."
        ),
    )


def deployment_routes(database: Database, keyring: Keyring, costly: CostlyReads) -> APIRouter:
    router = APIRouter(
        prefix="/api/v1",
        tags=["statistics"],
        dependencies=[Depends(refuse_repeated)],
        route_class=costly_route(costly, keyring.of_request, aside=False),
    )
    reader = Depends(keyring.needs("read"))

    def about(
        slug: str, asked: StatisticsFilter, holder: KeyHolder, needs: Need, answer: Callable[[Sides], Any]
    ) -> Response:
        if "\0" in slug:
            raise NotFound("There is no deployment with this name.")
        question = question_of(asked, datetime.now(UTC))
        with database.reading(holder.project_id) as connection:
            subject = deployment_subject(connection, holder.project_id, slug)
            sides = load_sides(connection, holder.project_id, subject, question, needs)
        return answered(answer(sides.as_asked))

    @router.get(
        "/deployments",
        summary="List deployments with their drop",
        responses=problems(401, 403, 422, 429, 503) | answers(FleetAnswer, "A page of deployments."),
    )
    def list_deployments(query: Annotated[DeploymentList, Query()], holder: KeyHolder = reader) -> Any:
        """The fleet by name, a page at a time. Follow `next` as `after` until it is null.

        Success on both sides with Wilson's intervals, and the drop with Newcombe's. A deployment's own `drop` also
        knows of sessions and pairs.
        """
        with database.reading(holder.project_id) as connection:
            question = question_of(query, datetime.now(UTC))
            answer = answer_fleet(connection, holder.project_id, question, query.after, query.limit, query.order)
        return answered(answer)

    @router.get(
        "/deployments/{slug}",
        summary="Read one deployment",
        responses=problems(*REFUSALS) | answers(DeploymentAnswer, "The deployment."),
    )
    def read_deployment(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """What the newest episode says of it, success on both sides, the drop, and where to ask on."""
        return about(slug, query, holder, deployment.NEEDS, answer_deployment)

    @router.get(
        "/deployments/{slug}/now",
        summary="How it does now",
        responses=problems(*REFUSALS) | answers(NowAnswer, "The present."),
    )
    def read_now(slug: str, query: Annotated[NowFilter, Query()], holder: KeyHolder = reader) -> Any:
        """The newest hundred decided episodes of the current policy version, fixed in advance; beside them the
        regime since the newest of release, established change or change of baseline, which is chosen from the data
        and has a wider interval; what was before, how much it moved, and which robots stand out.

        `moved.points` is now minus before in percentage points; every other number is a fraction.
        """
        asked = StatisticsFilter.model_validate({"simulator": query.simulator, "window": "now"})
        return about(slug, asked, holder, now.NEEDS, answer_now)

    for kind in DEPLOYMENT_ANSWERS:
        router.add_api_route(
            f"/deployments/{{slug}}/{kind.name}",
            _endpoint(kind, about, reader),
            summary=kind.summary,
            description=kind.description,
            responses=problems(*REFUSALS) | answers(kind.answer_type, kind.gives),
        )
    return router


def _endpoint(kind: AnswerKind, about: Callable[..., Response], reader: Any) -> Callable[..., Response]:
    def read(slug: str, query: StatisticsFilter, holder: KeyHolder) -> Response:
        return about(slug, query, holder, kind.needs, kind.answer)

    # The filter is the kind's own, so the signature that FastAPI reads is made here.
    query = Parameter("query", Parameter.KEYWORD_ONLY, annotation=Annotated[kind.filter, Query()])
    holder = Parameter("holder", Parameter.KEYWORD_ONLY, default=reader, annotation=KeyHolder)
    slug = Parameter("slug", Parameter.KEYWORD_ONLY, annotation=str)
    read.__signature__ = Signature([slug, query, holder])  # type: ignore[attr-defined]
    read.__name__ = f"read_{kind.name}"
    return read
