"""The episode record, version 1, as typed structures: types and sizes are checked while decoding.

Absent (`UNSET`) and null are kept apart only to count the keys of a body; a null optional field means the same
as an absent one. Parts that many episodes share are frozen, so that they can be looked up as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

# Limits, in characters unless said otherwise. They are part of the documented contract with senders.
LONGEST_NAME = 128
LONGEST_VALUE = 1024
LONGEST_NOTE = 4096
MOST_CONDITIONS = 64
MOST_METRICS = 64
MOST_SIGNALS = 256
MOST_LABELS = 64
MOST_DIMENSIONS = 4096
LARGEST_CONTRACT_BYTES = 64 * 1024
DEEPEST = 32
LARGEST_RECORD_BYTES = 1024 * 1024
# When something may have happened: not before robots that send records, and not after tomorrow.
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
FARTHEST_AHEAD = timedelta(hours=24)

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Value = Annotated[str, Meta(max_length=LONGEST_VALUE)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0)]
Time = Annotated[datetime, Meta(tz=True)]


class VersionedName(Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    name: Name
    version: Name


class Failure(Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    phase: Name | None | UnsetType = UNSET
    labels: Annotated[tuple[Name, ...], Meta(max_length=MOST_LABELS)] | None | UnsetType = UNSET
    category: Name | None | UnsetType = UNSET
    note: Annotated[str, Meta(max_length=LONGEST_NOTE)] | None | UnsetType = UNSET


class Safety(Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    violations: Count | None | UnsetType = UNSET
    interventions: Count | None | UnsetType = UNSET
    overrides: Count | None | UnsetType = UNSET


class ShadowSteps(Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    """Steps of an episode, and how many of the candidate's proposals were what."""

    steps: Count | None | UnsetType = UNSET
    agree: Count | None | UnsetType = UNSET
    infeasible: Count | None | UnsetType = UNSET
    near_limit: Count | None | UnsetType = UNSET
    out_of_distribution: Count | None | UnsetType = UNSET


class Shadow(ShadowSteps, forbid_unknown_fields=True, gc=False, frozen=True, kw_only=True):
    """What a candidate would have done while something else drove; `critical`: around the first contact."""

    executed_by: VersionedName | Literal["human", "other"]
    critical: ShadowSteps | None | UnsetType = UNSET


class EpisodeRecord(Struct, forbid_unknown_fields=True, gc=False, kw_only=True):
    id: Name
    domain: Literal["sim", "real"]
    policy: VersionedName
    task: Name
    started_at: Time
    outcome: Literal["success", "failure", "aborted", "abandoned"]
    deployment: Name | None | UnsetType = UNSET
    robot: Name | None | UnsetType = UNSET
    site: Name | None | UnsetType = UNSET
    simulator: VersionedName | None | UnsetType = UNSET
    stage: Literal["offline", "shadow", "supervised", "full"] | None | UnsetType = UNSET
    duration_s: Seconds | None | UnsetType = UNSET
    reward: float | None | UnsetType = UNSET
    metrics: Annotated[dict[Name, float], Meta(max_length=MOST_METRICS)] | None | UnsetType = UNSET
    conditions: (
        Annotated[dict[Name, Value | bool | float | None], Meta(max_length=MOST_CONDITIONS)] | None | UnsetType
    ) = UNSET
    signals: Annotated[dict[Name, float], Meta(max_length=MOST_SIGNALS)] | None | UnsetType = UNSET
    failure: Failure | None | UnsetType = UNSET
    safety: Safety | None | UnsetType = UNSET
    session: Name | None | UnsetType = UNSET
    pair: Name | None | UnsetType = UNSET
    contract: Raw | UnsetType = UNSET
    embedding: Annotated[list[float], Meta(max_length=MOST_DIMENSIONS)] | None | UnsetType = UNSET
    links: Annotated[dict[Name, Value], Meta(max_length=MOST_LABELS)] | None | UnsetType = UNSET
    provenance: (
        Annotated[dict[Name, Value | bool | Integer | float | None], Meta(max_length=MOST_LABELS)]
        | None
        | UnsetType
    ) = UNSET
    # Later fields follow the others, in the order they came; each has its entry in LATER_FIELDS.
    shadow: Shadow | None | UnsetType = UNSET
    # The number of the plan of trials that it is one of.
    plan: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None | UnsetType = UNSET


def side_of(domain: str, stage: str | None) -> Literal["sim", "real", "shadow"]:
    """Where an episode is counted, and what is stored as its domain.

    A real episode of stage `shadow` was driven by something else than its policy: it is on a side of its own, and
    so in nothing that is asked of the real side.
    """
    if domain == "sim":
        return "sim"
    return "shadow" if stage == "shadow" else "real"


class LaterField(NamedTuple):
    """A field that came after the first release: a nullable column of `episodes`.

    It takes part in content hashes only where it is present, so the hashes of records without it stay as they
    are (decision 0018).
    """

    column: str
    type: Literal["text", "int4", "float8", "text[]", "float8[]", "jsonb"]
    value: Callable[[EpisodeRecord], Any] | None = None
    """How to find the value, if it is not the record's field of the same name: of a later field, or of `pair`,
    `embedding`, `links` or `provenance` in a form that the first release refused."""


# In the order they came. An entry is never removed, renamed or given another type: stored hashes depend on it.
LATER_FIELDS: tuple[LaterField, ...] = (LaterField("shadow", "jsonb"), LaterField("plan", "int4"))
