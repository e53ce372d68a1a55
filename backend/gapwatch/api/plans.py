"""Plans of trials: made for a goal and a budget, read with what they brought, handed to an operator as CSV."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from gapwatch.access.keys import KeyHolder
from gapwatch.api import alert_bodies as bodies
from gapwatch.api.alert_bodies import READ, WRITE, Id, actor_of, example
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database
from gapwatch.store.people import trial_plans
from gapwatch.store.read import directory
from gapwatch.trials.planning import MOST_TRIALS, Goal, PlanWish, add_plan
from gapwatch.trials.progress import calibration, plan_csv, plan_json, read_plan

LARGEST_PAGE = 200
PlanId = Annotated[int, Path(ge=1, le=2**31 - 1)]
WISH = {"goal": "verdict", "episodes": 120, "setup_minutes": 10}


class TrialPlanBody(bodies.Body):
    goal: Goal = Field(
        description=(
            "`verdict`: settle whether and how much is lost. `gate`: pass the gate of the rollout. `cause`: tell "
            "a suspect from the usual conditions. `coverage`: see what real has not met yet."
        )
    )
    episodes: Annotated[int, Field(ge=1, le=MOST_TRIALS)] | None = Field(
        None, description="The budget: either this or `robot_hours`."
    )
    robot_hours: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = None
    setup_minutes: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)] = Field(
        0.0, description="What it takes to change from one cell to the next; the longer, the fewer cells."
    )
    episode_minutes: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = Field(
        None, description="How long an episode takes with its reset; the mean `duration_s` if not given."
    )
    paired: bool | None = Field(
        None, description="Seeds of sim episodes to be made again in real; if not given, where sim names them."
    )


class PlanQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal["json", "csv"] = "json"


class PlanListQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Id | None = Field(None, description="Where the page starts: `next` of the page before.")


def plan_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["plans"])
    reader, admin, once = Depends(keyring.needs("read")), Depends(keyring.needs("admin")), Depends(refuse_repeated)

    @router.post(
        "/deployments/{slug}/plans",
        status_code=201,
        summary="Plan the next trials",
        responses=problems(*WRITE, 404),
    )
    def make(
        slug: str,
        wanted: Annotated[TrialPlanBody, Body(openapi_examples=example(WISH))],
        holder: KeyHolder = admin,
    ) -> Any:
        """Cells of conditions with a number of episodes and why each is there, and what the interval will be.

        `predicted.interval_width` is as likely exceeded as not; it lies in `between` with `probability`.
        """
        with database.transaction(holder.project_id) as connection:
            wish = PlanWish(**wanted.model_dump())
            plan = add_plan(connection, holder.project_id, slug, wish, datetime.now(UTC), actor_of(holder))
        return JSONResponse(plan_json(plan), 201)

    @router.get(
        "/deployments/{slug}/plans", dependencies=[once], summary="List plans", responses=problems(*READ, 404)
    )
    def list_plans(slug: str, query: Annotated[PlanListQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Newest first, and how promises were kept by the newest plans of the project that are done."""
        with database.reading(holder.project_id) as connection:
            if "\0" in slug or directory.find_deployment(connection, holder.project_id, slug) is None:
                raise NotFound("There is no deployment with this name.")
            rows = trial_plans.plans_page(
                connection, holder.project_id, deployment=slug, before_id=query.after, limit=query.limit + 1
            )
            every = trial_plans.plans_page(
                connection, holder.project_id, deployment=None, before_id=None, limit=LARGEST_PAGE
            )
            kept = calibration(connection, holder.project_id, every)
        page = rows[: query.limit]
        more = page[-1].id if len(rows) > len(page) else None
        return JSONResponse({"plans": [plan_json(plan) for plan in page], "calibration": kept, "next": more})

    @router.get("/plans/{plan_id}", dependencies=[once], summary="Read a plan", responses=problems(*READ, 404))
    def read_one(plan_id: PlanId, query: Annotated[PlanQuery, Query()], holder: KeyHolder = reader) -> Any:
        """As it was made, and in `obtained` what its episodes have come to; as CSV one row a cell."""
        with database.reading(holder.project_id) as connection:
            known = read_plan(connection, holder.project_id, plan_id)
        if known is None:
            raise NotFound("There is no plan with this id.")
        plan, found = known
        if query.format == "csv":
            name = f'attachment; filename="gapwatch-plan-{plan.id}.csv"'
            return Response(
                plan_csv(plan, found), media_type="text/csv; charset=utf-8", headers={"Content-Disposition": name}
            )
        return JSONResponse(plan_json(plan) | {"obtained": found})

    return router
