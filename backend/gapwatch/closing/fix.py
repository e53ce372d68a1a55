"""A fix as it is told: its kind, what it aims at and where, what it cost and was expected to bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.levels import level_of
from gapwatch.taxonomy import CATEGORIES

FIX_KINDS = {
    "domain_randomisation": "domain randomisation",
    "system_identification": "system identification",
    "domain_adaptation": "domain adaptation",
    "fine_tuning": "fine-tuning on real data",
    "residual_policy": "residual policy",
    "calibration": "calibration",
    "hardware": "hardware",
    "process": "process",
    "other": "other",
}
if TYPE_CHECKING:
    FixKind = str
    CategoryName = str
else:
    FixKind = Literal[tuple(FIX_KINDS)]
    CategoryName = Literal[tuple(CATEGORIES)]

Line = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]


class FixBody(BaseModel):
    """`fix` of an event of kind mitigation. The expectation is written before anybody knows the outcome."""

    model_config = ConfigDict(extra="forbid")

    kind: FixKind
    category: CategoryName
    robots: Annotated[list[Line], Field(max_length=200)] = Field(
        [], description="The robots that have it; without any, all of the deployment. The others are the control."
    )
    conditions: Annotated[dict[Line, Line | bool | Finite], Field(max_length=6)] = Field(
        {},
        description="The slice that it is for; episodes at other levels of these conditions are the control.",
    )
    from_version: Line | None = Field(
        None, description="The policy version from which it is in. Days until its first episode are on no side."
    )
    robot_hours: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = None
    demonstrations: Annotated[int, Field(ge=0, le=10**9)] | None = None
    expected_points: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = Field(
        None, description="Points of real success that it is expected to bring."
    )

    def stored(self) -> dict[str, Any]:
        """What is kept: what was given, conditions as levels."""
        kept = self.model_dump(exclude_none=True)
        if self.conditions:
            kept["conditions"] = {name: level_of(value) for name, value in self.conditions.items()}
        return {name: value for name, value in kept.items() if value not in ([], {})}
