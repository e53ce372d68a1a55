"""What every answer carries: its subject, window, baseline and filter, and what must be said first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import msgspec

Interval = tuple[float, float]


@dataclass(frozen=True)
class FieldDifference:
    """One field in which the contracts of the two sides differ."""

    field: str
    kind: str
    sim: Any
    real: Any


@dataclass(frozen=True)
class Caution:
    """Something to know before the numbers are believed. `differences` are there when the contracts differ."""

    code: str
    message: str
    differences: tuple[FieldDifference, ...] = ()


@dataclass(frozen=True)
class Span:
    """From when until when; an open end is null."""

    since: datetime | None
    until: datetime | None


@dataclass(frozen=True)
class NamedSpan(Span):
    """The window an answer speaks of; `name` says what it is, in words."""

    name: str


@dataclass(frozen=True)
class HeldAgainst:
    """What the real episodes are held against: simulation, or the real episodes `before` the present regime.

    What an answer calls `sim` speaks of these. `name` says it in words.
    """

    kind: Literal["simulation", "before"] = "simulation"
    name: str = "simulation"
    window: Span | None = None


SIMULATION = HeldAgainst()


@dataclass(frozen=True)
class SimulatorCount:
    """A simulator and how many of its episodes could be a baseline, over all time."""

    simulator: str
    version: str
    n: int


@dataclass(frozen=True)
class Baseline:
    """The sim episodes a side is compared with. `window` is null when the whole baseline is used."""

    simulator: str
    version: str
    chosen: Literal["named", "pinned", "most episodes"]
    n: int
    window: Span | None
    alternatives: tuple[SimulatorCount, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`n_sim` and `n_real` count successes and failures; `reason` says why something is null."""

    deployment: str | None
    policy: str
    version: str
    task: str | None
    window: NamedSpan
    filter: Mapping[str, Any] = field(default_factory=dict)
    baseline: Baseline | None
    n_sim: int
    n_real: int
    warnings: tuple[Caution, ...] = ()
    reason: str | None = None
    against: HeldAgainst = SIMULATION


def to_json(answer: Any) -> Any:
    """The one way from an answer to JSON, for the API and for the pages' islands."""
    return msgspec.to_builtins(answer)
