"""Category rules: when the ledger is asked, and what its answer means for the alerts that are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gapwatch.watching.kinds.category import CategoryParams

# The ledger is asked again after so many episodes of a deployment, and only while there is a drop to explain.
ASKED_EVERY = 50


class CategoryCost(Protocol):
    """What one gap category costs of success."""

    @property
    def category(self) -> str: ...

    @property
    def contribution(self) -> float: ...

    @property
    def interval(self) -> Sequence[float] | None: ...


@dataclass(frozen=True)
class CategoryVerdict:
    """Categories that cost too much and are news, with their evidence; and those that are over."""

    breaches: dict[str, dict[str, Any]]
    recoveries: list[str]


def is_time_to_ask(before: int, after: int) -> bool:
    return before // ASKED_EVERY != after // ASKED_EVERY


def judge_costs(params: CategoryParams, costs: Sequence[CategoryCost], alarmed: set[str]) -> CategoryVerdict:
    """`alarmed` are the categories that have an open alert. One is over when it costs half of what is too much."""
    costly = {cost.category: cost for cost in costs if _is_costly(cost, params)}
    kept = {cost.category for cost in costs if cost.contribution > params.above / 2}
    return CategoryVerdict(
        {category: cost_evidence(costly[category]) for category in sorted(costly.keys() - alarmed)},
        sorted(alarmed - kept),
    )


def cost_evidence(cost: CategoryCost) -> dict[str, Any]:
    interval = None if cost.interval is None else list(cost.interval)
    return {"category": cost.category, "contribution": cost.contribution, "interval": interval}


def _is_costly(cost: CategoryCost, params: CategoryParams) -> bool:
    wanted = not params.category or cost.category in params.category
    return bool(wanted and cost.contribution > params.above and cost.interval is not None and cost.interval[0] > 0)
