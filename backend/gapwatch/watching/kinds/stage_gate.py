"""A deployment that misses what its stage demands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from gapwatch.statistics.change.drift import LevelWatch
from gapwatch.watching.detectors import Detector, LevelDetector
from gapwatch.watching.phrases import AlertReason, series_phrase
from gapwatch.watching.rule_kind import DefaultRule, EpisodeWatch, RuleKind, RuleSeries, promise
from gapwatch.watching.rules import Fraction, Rule, RuleParams, RunLength, Stage
from gapwatch.watching.series import SeenEpisode, value_of


class Gate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    success: Fraction | None = None
    interventions: Fraction | None = None
    overrides: Fraction | None = None
    violations: Fraction | None = None


GATED: tuple[Literal["success", "interventions", "overrides", "violations"], ...] = (
    *("success", "interventions", "overrides", "violations"),
)


class StageGateParams(RuleParams):
    """Fires when a deployment is established to miss what its stage demands.

    Of a deployment with a rollout, the plan of its stage says what that is.
    """

    gates: dict[Stage, Gate] = Field(default={"supervised": Gate(success=0.4), "full": Gate(success=0.6)})
    arl: RunLength = 10_000
    clear_arl: RunLength = 500


def _series(
    rule: Rule, episodes: Sequence[SeenEpisode], stored: Mapping[tuple[str, str], Any]
) -> list[RuleSeries]:
    params = cast(StageGateParams, rule.params)
    return [
        _gate_series(stage, series, limit)
        for stage, gate in sorted(params.gates.items())
        for series in GATED
        if (limit := getattr(gate, series)) is not None
    ]


def with_plan(rule: Rule, stage: str, plan: Mapping[str, Any]) -> Rule:
    """The rule for a deployment with a rollout: the limits of its stage are those of the frozen plan."""
    if rule.kind != "stage_gate":
        return rule
    limits: dict[str, float] = {}
    for criterion in plan["criteria"]:
        found = _planned_limit(criterion, plan) if criterion["stage"] == stage else None
        if found is not None:
            name, limit = found
            tighter = max if name == "success" else min
            limits[name] = tighter(limits[name], limit) if name in limits else limit
    params = cast(StageGateParams, rule.params)
    gates = {stage: Gate.model_validate(limits)} if limits else {}
    return replace(rule, params=params.model_copy(update={"gates": gates}))


def _planned_limit(criterion: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[str, float] | None:
    """The series that a criterion is about and the level that it must not miss; None for one without a level."""
    kind, reference = criterion["kind"], plan.get("reference")
    if kind == "max_drop" and reference and reference["n"]:
        level = reference["successes"] / reference["n"] - criterion["limit"]
        return ("success", level) if 0 < level < 1 else None
    if kind == "zero_violations":
        return "violations", float(criterion["limit"])
    if kind == "max_rate" and criterion["measure"] in GATED:
        return str(criterion["measure"]), float(criterion["limit"])
    if kind == "min_rate" and criterion["measure"] == "success":
        return "success", float(criterion["limit"])
    return None


def _gate_series(stage: str, series: str, limit: float) -> RuleSeries:
    def value(episode: SeenEpisode) -> float | None:
        return value_of(series, episode) if episode.stage == stage else None

    return RuleSeries(f"{series}@{stage}", value, lambda episode: episode.stage != stage, limit)


def _detector(rule: Rule, series: RuleSeries, stored: dict[str, Any] | None, seed: int) -> Detector:
    params = cast(StageGateParams, rule.params)
    side: Literal["lower", "higher"] = "lower" if series.name.startswith("success") else "higher"
    return LevelDetector(LevelWatch(side, params.arl, params.clear_arl, limit=series.limit), stored)


def _phrase(reason: AlertReason) -> str:
    return series_phrase(reason, reference_word="gate ")


def _limits(params: StageGateParams) -> list[str]:
    return [promise(params.arl)]


KIND = RuleKind(
    label="a stage's demand is missed",
    params=StageGateParams,
    order=40,
    limits=_limits,
    watch=EpisodeWatch(_series, _detector),
    phrase=_phrase,
    defaults=(
        DefaultRule(
            "stage-gate",
            StageGateParams(),
            "warning",
            "success is established below 40 % (supervised) or 60 % (full)",
        ),
    ),
)
