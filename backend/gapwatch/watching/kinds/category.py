"""One gap category that costs much, by the ledger; `watching/categories.py` says when it is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gapwatch.watching.phrases import AlertReason, category_name
from gapwatch.watching.rule_kind import DefaultRule, RuleKind, points
from gapwatch.watching.rules import Fraction, SeriesName, UnwaitingParams


class CategoryParams(UnwaitingParams):
    """Fires when one gap category costs more than `above` of success, and more than nothing for certain."""

    above: Fraction = 0.1
    category: list[SeriesName] = Field(default_factory=list)
    min_episodes: Annotated[int, Field(ge=10, le=100_000)] = 50
    window_days: Annotated[int, Field(ge=1, le=365)] = 30


def _phrase(reason: AlertReason) -> str:
    cost = 100 * reason.evidence.get("contribution", 0)
    return f"{category_name(reason.evidence.get('category'))} costs {cost:.0f} points of success"


def _limits(params: CategoryParams) -> list[str]:
    return [f"more than {points(params.above)}"]


KIND = RuleKind(
    label="one gap category costs much",
    params=CategoryParams,
    order=50,
    limits=_limits,
    phrase=_phrase,
    defaults=(
        DefaultRule(
            "gap-category",
            CategoryParams(),
            "warning",
            "with a drop established, one category costs more than 10 points and more than nothing for certain",
        ),
    ),
)
