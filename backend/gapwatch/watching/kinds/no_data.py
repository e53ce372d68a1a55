"""A robot that falls silent, by the clock; `watching/silence.py` says when."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gapwatch.watching.phrases import AlertReason, clock
from gapwatch.watching.rule_kind import DefaultRule, RuleKind
from gapwatch.watching.rules import UnwaitingParams


class NoDataParams(UnwaitingParams):
    """Fires when a sender that should be at work is quiet for longer than it usually is, by far."""

    after_minutes: Annotated[float, Field(ge=1, le=100_000)] = 30
    times_longest_gap: Annotated[float, Field(ge=1, le=100)] = 3
    min_episodes: Annotated[int, Field(ge=1, le=100_000)] = 20
    # Whoever does not begin to work may be on holiday: a page after more days of work than are free at Christmas.
    absent_days: Annotated[float, Field(ge=0, le=365)] = 8


def _phrase(reason: AlertReason) -> str:
    evidence = reason.evidence
    robots = evidence.get("robots") or []
    who = f"all {len(robots)} robots" if len(robots) > 1 else evidence.get("robot", "no robot")
    since = clock(evidence.get("heard_at"))
    if evidence.get("silence") == "absent":
        return f"{who} not back at work, silent since {since}"
    return f"{who} silent since {since}"


def _limits(params: NoDataParams) -> list[str]:
    return [f"quiet for {params.after_minutes:g} min at work"]


KIND = RuleKind(
    label="robots fall silent",
    params=NoDataParams,
    order=60,
    limits=_limits,
    phrase=_phrase,
    question="Was this silence normal?",
    defaults=(
        DefaultRule(
            "robot-silent",
            NoDataParams(),
            "warning",
            "all robots of a deployment are silent at work; of one robot of many it is information",
        ),
    ),
)
