"""Randomisation ranges of a simulator: what a training run varied, sent by its pipeline."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends
from fastapi import Body as RequestBody
from fastapi.responses import JSONResponse
from pydantic import Field, model_validator

from gapwatch.access.keys import KeyHolder
from gapwatch.api.alert_bodies import READ, WRITE, Body, Finite, Line, actor_of, as_json, example, fault
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.record import LONGEST_NAME
from gapwatch.store.core.database import Database
from gapwatch.store.people import simulator_ranges
from gapwatch.store.people.simulator_ranges import DeclaredRanges

MOST_PARAMETERS = 2000
RANGES = {
    "parameters": [
        {"name": "friction", "low": 0.5, "high": 1.0, "signal": "friction"},
        {"name": "base_mass", "low": -1.0, "high": 3.0, "operation": "add", "nominal": 6.9, "unit": "kg"},
        {"name": "kp", "low": 1.0, "high": 0.1, "distribution": "gaussian", "operation": "scale", "nominal": 40.0},
    ]
}


class RangeParameter(Body):
    """`add` and `scale` act on the nominal. Of a gaussian `low` is the mean and `high` the spread."""

    name: Line
    low: Finite
    high: Finite
    distribution: Literal["uniform", "log_uniform", "gaussian"] = "uniform"
    operation: Literal["abs", "add", "scale"] = "abs"
    nominal: Finite | None = Field(None, description="What `add` and `scale` act on.")
    unit: Line | None = None
    signal: Line | None = Field(None, description="The signal of episodes that measures it.")
    condition: Line | None = Field(None, description="The numeric condition of episodes that says it.")

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.signal is not None and self.condition is not None:
            raise ValueError("a parameter is measured by a signal or by a condition, not by both")
        if self.distribution == "gaussian":
            if self.high < 0:
                raise ValueError("of a gaussian, `high` is the spread, which is not negative")
        elif self.low > self.high:
            raise ValueError("`low` is not above `high`")
        if self.distribution == "log_uniform" and self.low <= 0:
            raise ValueError("a log_uniform range is above zero")
        return self


class RangesBody(Body):
    parameters: Annotated[list[RangeParameter], Field(max_length=MOST_PARAMETERS)]


def range_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["ranges"])
    reader, sender, once = (
        Depends(keyring.needs("read")),
        Depends(keyring.needs("ingest")),
        Depends(refuse_repeated),
    )

    @router.put(
        "/simulators/{name:path}/{version}/ranges",
        summary="Declare what was randomised",
        responses=problems(*WRITE, 404),
    )
    def put(
        name: str,
        version: str,
        wanted: Annotated[RangesBody, RequestBody(openapi_examples=example(RANGES))],
        holder: KeyHolder = sender,
    ) -> Any:
        """All ranges of a training run, in place of those that were there; also before its first episode."""
        _refuse_names(name, version)
        names = [parameter.name for parameter in wanted.parameters]
        twice = next((at for at, one in enumerate(names) if one in names[:at]), None)
        if twice is not None:
            message = "This name was given before: a parameter has one range."
            raise fault(f"/body/parameters/{twice}/name", "repeated", message)
        parameters = [parameter.model_dump(exclude_none=True) for parameter in wanted.parameters]
        with database.transaction(holder.project_id) as connection:
            put_ = simulator_ranges.put_ranges(
                connection, holder.project_id, name, version, parameters, actor_of(holder)
            )
        return JSONResponse(_shown(put_))

    @router.get(
        "/simulators/{name:path}/{version}/ranges",
        dependencies=[once],
        summary="Read what was randomised",
        responses=problems(*READ, 404),
    )
    def read(name: str, version: str, holder: KeyHolder = reader) -> Any:
        """As it was declared. `/deployments/{slug}/ranges` holds it against what was measured."""
        found = None
        if "\0" not in name + version:
            with database.transaction(holder.project_id) as connection:
                found = simulator_ranges.find_ranges(connection, holder.project_id, name, version)
        if found is None:
            raise NotFound("No ranges were declared for a simulator with this name and version.")
        return JSONResponse(_shown(found))

    return router


def _shown(found: DeclaredRanges) -> Any:
    return as_json(vars(found))


def _refuse_names(*names: str) -> None:
    for name in names:
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise NotFound("A simulator has a name and a version of up to 128 printable letters.")
