"""Rules: when somebody must know. What a rule's kind means stands in `kinds/`, one module a kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from gapwatch.watching.matchers import Match

Severity = Literal["info", "warning", "critical"]
Stage = Literal["offline", "shadow", "supervised", "full"]
Fraction = Annotated[float, Field(gt=0, lt=1)]
RunLength = Annotated[float, Field(ge=100, le=1e9)]
Count = Annotated[int, Field(ge=0, le=100_000)]
# An address of a page; without spaces, quotes and brackets it can stand in any text.
WebAddress = Annotated[str, StringConstraints(max_length=500, pattern=r"^https?://[^\s\x00-\x20\"<>\x7f]+$")]
SeriesName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class RuleParams(BaseModel):
    """`for_episodes`: how long a breach must last before it fires. `flap_minutes`: at most one notification in so
    long.
    """

    model_config = ConfigDict(extra="forbid")

    for_episodes: Count = 0
    flap_minutes: Annotated[float, Field(ge=0, le=1440)] = 10


class UnwaitingParams(RuleParams):
    """Parameters of a kind that does not look at every episode, and has nothing to wait for."""

    @model_validator(mode="after")
    def _does_not_wait(self) -> Self:
        if self.for_episodes:
            raise ValueError("for_episodes is for rules that look at every episode, and this kind does not")
        return self


@dataclass(frozen=True)
class Rule:
    name: str
    kind: str
    params: RuleParams
    severity: Severity
    match: Match = field(default_factory=Match)
    channels: tuple[int, ...] = ()
    dry_run: bool = False
    enabled: bool = True
    # Where it says what to do when it fires.
    runbook_url: str | None = None
    # Whether it is one of those that every project has, unchanged.
    is_default: bool = False
