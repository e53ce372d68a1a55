"""Real success established below sim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from gapwatch.statistics.change.drift_against_sim import SimWatch
from gapwatch.watching.detectors import Detector, SimDetector, seed_of
from gapwatch.watching.rule_kind import (
    DefaultRule,
    EpisodeWatch,
    RuleKind,
    RuleSeries,
    points,
    promise,
    rule_series,
)
from gapwatch.watching.rules import Rule, RuleParams, RunLength
from gapwatch.watching.series import SeenEpisode


class DropParams(RuleParams):
    """Fires when real is established to be below sim and the lower limit of the drop is above `above`."""

    metric: Literal["success"] = "success"
    above: Annotated[float, Field(ge=0, lt=1)] = 0.05
    alpha: Annotated[float, Field(gt=0, le=0.2)] = 0.025
    arl: RunLength = 30_000
    clear_arl: RunLength = 500


def _series(
    rule: Rule,
    episodes: Sequence[SeenEpisode],
    stored: Mapping[tuple[str, str], Any],
) -> list[RuleSeries]:
    return [rule_series("success")]


def _detector(rule: Rule, series: RuleSeries, stored: dict[str, Any] | None, seed: int) -> Detector:
    params = cast(DropParams, rule.params)
    own_seed = seed_of(seed, rule.name)
    return SimDetector(SimWatch(params.above, params.alpha, params.arl, params.clear_arl, own_seed), stored)


def _limits(params: DropParams) -> list[str]:
    return [f"more than {points(params.above)}", promise(params.arl)]


KIND = RuleKind(
    label="real success is below sim for certain",
    params=DropParams,
    order=20,
    limits=_limits,
    watch=EpisodeWatch(_series, _detector),
    defaults=(
        DefaultRule(
            "success-below-sim",
            DropParams(),
            "warning",
            "real is established below sim, and the drop is above 5 points for certain",
        ),
    ),
)
