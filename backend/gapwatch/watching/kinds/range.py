"""A parameter of the simulator that reality has left, by the clock; `alerts/range_watch.py` asks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gapwatch.watching.phrases import AlertReason
from gapwatch.watching.rule_kind import DefaultRule, RuleKind
from gapwatch.watching.rules import SeriesName, UnwaitingParams


class RangeParams(UnwaitingParams):
    """Fires when what was measured of a parameter lies beyond the range it was randomised over, for certain."""

    parameter: list[SeriesName] = Field(default_factory=list)
    newest: Annotated[int, Field(ge=20, le=2000)] = 100


def _phrase(reason: AlertReason) -> str:
    evidence = reason.evidence
    name = reason.series.partition(":")[2]
    value, low, high = (evidence.get(key) for key in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return f"{name} left its randomised range: the simulator must be identified again"
    where = f" at {evidence['place']}" if evidence.get("place") else ""
    unit = f" {evidence['unit']}" if evidence.get("unit") else ""
    range_words = f"the randomised {low:.3g} to {high:.3g}"
    return f"{name} is {value:.3g}{unit}{where}, outside {range_words}: the simulator must be identified again"


def _limits(params: RangeParams) -> list[str]:
    return [f"all of the interval beyond an end, by {params.newest} episodes or an identification"]


KIND = RuleKind(
    label="reality left a randomised range",
    params=RangeParams,
    order=70,
    limits=_limits,
    phrase=_phrase,
    defaults=(
        DefaultRule(
            "range-left",
            RangeParams(),
            "warning",
            "what was measured of a parameter lies beyond the range it was randomised over, interval and all",
        ),
    ),
)
