"""Making, listing and revoking API keys, with a key of scope admin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Path
from fastapi.responses import JSONResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.access.keys import KeyHolder, new_key, read_networks
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database
from gapwatch.store.people import access


class KeyRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
    scope: Literal["ingest", "read", "admin"]
    expires_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    networks: Annotated[list[str], AfterValidator(read_networks)] = Field(
        default=[], description="Addresses and networks from which alone the key works; none: from anywhere."
    )


EXAMPLE = {"name": "berlin line 3", "scope": "ingest", "expires_days": 365}


def key_routes(database: Database, keyring: Keyring, server_secret: bytes) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["keys"])
    admin = Depends(keyring.needs("admin"))
    once = Depends(refuse_repeated)

    @router.get("/keys", dependencies=[once], summary="List keys", responses=problems(401, 403, 422, 503))
    def list_keys(holder: KeyHolder = admin) -> Any:
        """Every key of the project: name, first letters, scope, and when it was last used. Never the key."""
        with database.transaction(holder.project_id) as connection:
            return JSONResponse({"keys": access.keys(connection, holder.project_id)})

    @router.post(
        "/keys",
        status_code=201,
        summary="Make a key",
        responses=problems(400, 401, 403, 415, 422, 503),
    )
    def make_key(
        wanted: Annotated[KeyRequest, Body(openapi_examples={"a robot": {"value": EXAMPLE}})],
        holder: KeyHolder = admin,
    ) -> Any:
        """A new key of this project. The answer is the only time it is shown."""
        fresh = new_key(server_secret)
        days = wanted.expires_days
        expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
        with database.transaction(holder.project_id) as connection:
            key_id = access.add_key(
                connection,
                holder.project_id,
                name=wanted.name,
                prefix=fresh.prefix,
                key_hash=fresh.key_hash,
                scope=wanted.scope,
                expires_at=expires_at,
                networks=wanted.networks,
                actor=f"key/{holder.prefix}",
            )
        body = {
            "id": key_id,
            "key": fresh.secret,
            "prefix": fresh.prefix,
            "scope": wanted.scope,
            "networks": wanted.networks,
        }
        return JSONResponse(body, 201)

    @router.delete(
        "/keys/{key_id}",
        status_code=204,
        summary="Revoke a key",
        responses=problems(401, 403, 404, 422, 503),
    )
    def revoke_key(key_id: Annotated[int, Path(ge=1, le=2**31 - 1)], holder: KeyHolder = admin) -> Response:
        """The key stops working within a second, everywhere."""
        with database.transaction(holder.project_id) as connection:
            if not access.revoke_key(connection, holder.project_id, key_id, f"key/{holder.prefix}"):
                raise NotFound("There is no key with this id.")
        return Response(status_code=204)

    return router
