"""Pinning a deployment to the simulator that it is compared with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict

from gapwatch.access.keys import KeyHolder
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import Fault, Invalid, NotFound
from gapwatch.filters import Name
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.people.baselines import pin_baseline
from gapwatch.store.read import directory
from gapwatch.store.read.directory import Deployment


class Pinned(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    simulator: Name
    version: Name


EXAMPLE = {"simulator": "mujoco", "version": "3.3.0"}


def baseline_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["statistics"], dependencies=[Depends(refuse_repeated)])
    admin = Depends(keyring.needs("admin"))

    @router.put(
        "/deployments/{slug}/baseline",
        summary="Pin the baseline",
        responses=problems(400, 401, 403, 404, 415, 422, 503),
    )
    def pin(
        slug: str,
        wanted: Annotated[Pinned, Body(openapi_examples={"a simulator": {"value": EXAMPLE}})],
        holder: KeyHolder = admin,
    ) -> Any:
        """Compare this deployment with the sim episodes of this simulator, however many others have.

        A simulator that is named in a query is used for that query all the same.
        """
        with database.transaction(holder.project_id) as connection:
            deployment = _deployment(connection, holder.project_id, slug)
            known = directory.simulators(connection, holder.project_id)
            matches = [i for i, pair in known.items() if pair == (wanted.simulator, wanted.version)]
            if not matches:
                message = "No episode names this simulator and version."
                raise Invalid(
                    message, errors=[Fault(pointer="/simulator", code="unknown-simulator", message=message)]
                )
            pin_baseline(connection, holder.project_id, deployment.id, matches[0], f"key/{holder.prefix}")
        return JSONResponse({"deployment": slug, "simulator": wanted.simulator, "version": wanted.version})

    @router.delete(
        "/deployments/{slug}/baseline",
        status_code=204,
        summary="Unpin the baseline",
        responses=problems(401, 403, 404, 422, 503),
    )
    def unpin(slug: str, holder: KeyHolder = admin) -> Response:
        """Compare this deployment with the simulator that has the most episodes again."""
        with database.transaction(holder.project_id) as connection:
            deployment = _deployment(connection, holder.project_id, slug)
            pin_baseline(connection, holder.project_id, deployment.id, None, f"key/{holder.prefix}")
        return Response(status_code=204)

    return router


def _deployment(connection: Connection, project_id: int, slug: str) -> Deployment:
    deployment = None if "\0" in slug else directory.find_deployment(connection, project_id, slug)
    if deployment is None:
        raise NotFound("There is no deployment with this name.")
    return deployment
