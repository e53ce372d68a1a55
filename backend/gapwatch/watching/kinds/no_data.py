"""A robot that falls silent, by the clock; `watching/silence.py` says when."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gapwatch.watching.phrases import AlertReason, clock
from gapwatch.watching.rule_kind import DefaultRule, RuleKind
from gapwatch.watching.rules import UnwaitingParams


class NoDataParams(UnwaitingParams):
    """Fires when a robot that was sending is quiet for longer than it has ever been, by far."""

    after_minutes: Annotated[float, Field(ge=1, le=100_000)] = 60
    times_longest_gap: Annotated[float, Field(ge=1, le=100)] = 3
    min_episodes: Annotated[int, Field(ge=1, le=100_000)] = 20


def _phrase(reason: AlertReason) -> str:
    robot = reason.evidence.get("robot", "no robot")
    return f"{robot} silent since {clock(reason.evidence.get('heard_at'))}"


def _limits(params: NoDataParams) -> list[str]:
    return [f"quiet for {params.after_minutes:g} min"]


KIND = RuleKind(
    label="a robot falls silent",
    params=NoDataParams,
    order=60,
    limits=_limits,
    phrase=_phrase,
    defaults=(DefaultRule("robot-silent", NoDataParams(), "warning", "a robot that was sending is silent"),),
)
