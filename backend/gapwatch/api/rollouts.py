"""Rollouts: plans, gates, decisions and their packets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Path, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from gapwatch.access.keys import KeyHolder
from gapwatch.api import alert_bodies as bodies
from gapwatch.api.alert_bodies import FARTHEST_END, READ, WRITE, Id, actor_of, example, moment
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.pipeline import Nudger
from gapwatch.rollouts import deciding, gate
from gapwatch.rollouts.deciding import Decider
from gapwatch.rollouts.overview import decision_json, rollout_json
from gapwatch.rollouts.packet_html import packet_html
from gapwatch.rollouts.plan import PlanBody, PolicyName, Stage
from gapwatch.rollouts.stage_record import read_record
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.rollout import rollouts
from gapwatch.store.rollout.rollouts import PolicyVersion, Rollout

LARGEST_PAGE = 200
DecisionId = Annotated[int, Path(ge=1, le=2**31 - 1)]
DECISION = {"reason": "two weeks without a surprise"}
PLAN = {
    "stage": "shadow",
    "plan": {
        "margin": 0.10,
        "fallback": {"name": "bin-pick", "version": "1.3.0"},
        "budget": {"days": 28, "episodes": 2000},
        "criteria": [
            {"id": "days", "kind": "min_days", "limit": 14, "stage": "shadow"},
            {"id": "infeasible", "kind": "max_infeasible", "limit": 0.05, "stage": "shadow"},
        ],
    },
}


class RolloutBody(bodies.Body):
    stage: Stage | None = Field(
        None, description="Where a new rollout begins; what its newest episode says if not given."
    )
    policy: PolicyName | None = Field(
        None, description="The candidate; the deployment's newest policy if not given."
    )
    plan: PlanBody = Field(description="`{}` is a plan of presets.")


class DecisionBody(bodies.Body):
    reason: bodies.Words
    to: Stage | None = Field(None, description="Of a rollback, how far; of a promotion only the next stage.")
    seen: Stage | None = Field(
        None,
        alias="from",
        description="The stage that you see; 409 if somebody promoted or rolled back meanwhile.",
    )
    override: bool = Field(False, description="Promote past a gate that is not passed, with a written reason.")


class DecisionQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deployment: bodies.Line | None = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50
    after: Id | None = Field(None, description="Where the page starts: `next` of the page before.")


class PacketQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal["json", "html"] = "json"


def rollout_routes(database: Database, keyring: Keyring, nudger: Nudger, link_base: str) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["rollout"])
    reader, admin, once = Depends(keyring.needs("read")), Depends(keyring.needs("admin")), Depends(refuse_repeated)

    @router.get("/rollouts", dependencies=[once], summary="List rollouts", responses=problems(*READ))
    def list_rollouts(holder: KeyHolder = reader) -> Any:
        """Every rollout of the project with its gate as the watch last found it, and what is overdue."""
        with database.reading(holder.project_id) as connection:
            at = now(connection)
            found = [rollout_json(one, one.gate, at) for one in rollouts.rollouts(connection, holder.project_id)]
        return JSONResponse({"rollouts": found})

    @router.get(
        "/deployments/{slug}/rollout",
        dependencies=[once],
        summary="Read a rollout",
        responses=problems(*READ, 404),
    )
    def read_rollout(slug: str, holder: KeyHolder = reader) -> Any:
        """Its stage, its frozen plan with the power card, its gate judged now, and the last drill."""
        with database.reading(holder.project_id) as connection:
            rollout = deciding.find(connection, holder.project_id, slug)
            return JSONResponse(_whole(connection, holder.project_id, rollout))

    @router.put(
        "/deployments/{slug}/rollout",
        summary="Begin a rollout or change its plan",
        responses=problems(*WRITE, 404, 409),
    )
    def put_rollout(
        slug: str,
        wanted: Annotated[RolloutBody, Body(openapi_examples=example(PLAN))],
        holder: KeyHolder = admin,
    ) -> Any:
        """The plan is frozen at once. Another one than that in force starts the stage anew: `restarted` says so.

        A plan that cannot be decided by the episodes expected is refused with the number that it takes.
        """
        at = datetime.now(UTC)
        expires = wanted.plan.expires_at
        expires_at = None if expires is None else moment(expires, "plan/expires_at", at, FARTHEST_END)
        policy = None if wanted.policy is None else PolicyVersion(wanted.policy.name, wanted.policy.version)
        with database.transaction(holder.project_id) as connection:
            put = deciding.put_plan(
                connection,
                holder.project_id,
                slug,
                wanted.plan,
                stage=wanted.stage,
                policy=policy,
                expires_at=expires_at,
                decider=_decider(holder, link_base),
            )
            answer = _whole(connection, holder.project_id, put.rollout)
        said = []
        if put.restarted:
            said.append("The plan was changed, so its stage starts anew: what was seen before counts no more.")
        if put.rollout.driver is None and put.rollout.state != "stop":
            said.append("No fallback is named, so robots that ask for the permit are told that nothing may drive.")
        return JSONResponse(answer | {"restarted": put.restarted, "message": " ".join(said) or None})

    @router.get(
        "/deployments/{slug}/gate",
        dependencies=[once],
        summary="Judge the gate",
        responses=problems(*READ, 404, 409),
    )
    def read_gate(slug: str, holder: KeyHolder = reader) -> Any:
        """Each criterion against the episodes that arrived since the plan was frozen. Looking does no harm."""
        with database.reading(holder.project_id) as connection:
            rollout = deciding.find(connection, holder.project_id, slug)
            judged = _judged(connection, holder.project_id, rollout)
        if judged is None:
            raise NotFound("This rollout has no plan, so there is no gate.")
        return JSONResponse(judged)

    for kind in ("promote", "hold", "rollback", "stop", "resume"):
        _add_decision(router, kind, database, admin, nudger, link_base)

    @router.get("/decisions", dependencies=[once], summary="List decisions", responses=problems(*READ))
    def list_decisions(query: Annotated[DecisionQuery, Query()], holder: KeyHolder = reader) -> Any:
        """Newest first; each with the address of its packet and the hashes of the chain."""
        with database.transaction(holder.project_id) as connection:
            rows = rollouts.decisions_page(
                connection,
                holder.project_id,
                deployment=query.deployment,
                before_id=query.after,
                limit=query.limit + 1,
            )
        page = rows[: query.limit]
        more = page[-1].id if len(rows) > len(page) else None
        return JSONResponse({"decisions": [decision_json(row) for row in page], "next": more})

    @router.get(
        "/decisions/{decision_id}/packet",
        dependencies=[once],
        summary="Read an evidence packet",
        responses=problems(*READ, 404),
        response_class=Response,
    )
    def read_packet(
        decision_id: DecisionId, query: Annotated[PacketQuery, Query()], holder: KeyHolder = reader
    ) -> Response:
        """What the decision rested on, as JSON or as one HTML file. `Gapwatch-Packet-Hash` is its SHA-256."""
        with database.transaction(holder.project_id) as connection:
            found = rollouts.find_packet(connection, holder.project_id, decision_id)
        if found is None:
            raise NotFound("There is no decision with this id.")
        return packet_answer(decision_id, *found, query.format)

    return router


def packet_answer(decision_id: int, packet: dict[str, Any], packet_hash: str, wanted: str) -> Response:
    headers = {"Gapwatch-Packet-Hash": packet_hash}
    if wanted == "html":
        headers["Content-Disposition"] = f'attachment; filename="gapwatch-decision-{decision_id}.html"'
        return HTMLResponse(packet_html(packet, packet_hash), headers=headers)
    return JSONResponse(packet, headers=headers)


def _add_decision(
    router: APIRouter, kind: str, database: Database, admin: Any, nudger: Nudger, link_base: str
) -> None:
    summary, description = _DECISIONS[kind]

    def act(
        slug: str,
        wanted: Annotated[DecisionBody, Body(openapi_examples=example(DECISION))],
        holder: KeyHolder = admin,
    ) -> Any:
        with database.transaction(holder.project_id) as connection:
            row = deciding.decide(
                connection,
                holder.project_id,
                slug,
                kind,
                reason=wanted.reason,
                decider=_decider(holder, link_base),
                to=wanted.to,
                override=wanted.override,
                seen=wanted.seen,
            )
        nudger.nudge("send")
        return JSONResponse(decision_json(row), 201)

    act.__name__ = f"{kind}_rollout"
    router.add_api_route(
        f"/deployments/{{slug}}/rollout/{kind}",
        act,
        methods=["POST"],
        status_code=201,
        summary=summary,
        description=description,
        responses=problems(*WRITE, 404, 409),
    )


_DECISIONS = {
    "promote": (
        "Promote",
        "To the next stage: with a passed gate, or past it with `override` and a written reason.",
    ),
    "hold": ("Hold", "Stay, and wait anew: the budget counts from now."),
    "rollback": ("Roll back", "To the stage before, or the one named; the fallback drives. Needs no gate."),
    "stop": ("Stop", "Nothing may drive there any more. Needs no gate."),
    "resume": ("Resume", "After a stop or on the fallback: what its stage allows may drive again."),
}


def _whole(connection: Connection, project_id: int, rollout: Rollout) -> dict[str, Any]:
    return rollout_json(rollout, _judged(connection, project_id, rollout), now(connection))


def _judged(connection: Connection, project_id: int, rollout: Rollout) -> dict[str, Any] | None:
    if rollout.plan is None:
        return None
    return gate.judge(read_record(connection, project_id, rollout)).as_json()


def _decider(holder: KeyHolder, link_base: str) -> Decider:
    # Only keys of scope admin come here.
    return Decider(actor_of(holder), "admin", link_base)
