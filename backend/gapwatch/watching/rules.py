"""Rules: their kinds with parameters, and those every project has from its first day."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from gapwatch.watching.matchers import Match

Kind = Literal["drop", "drift", "category", "safety", "no_data", "stage_gate"]
Severity = Literal["info", "warning", "critical"]
Stage = Literal["offline", "shadow", "supervised", "full"]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Run = Annotated[float, Field(ge=100, le=1e9)]
Count = Annotated[int, Field(ge=0, le=100_000)]
Series = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Params(BaseModel):
    """`for_episodes`: how long a breach must last before it fires. `flap_minutes`: at most one page in so long."""

    model_config = ConfigDict(extra="forbid")

    for_episodes: Count = 0
    flap_minutes: Annotated[float, Field(ge=0, le=1440)] = 10


class UnwaitingParams(Params):
    """Of rules that do not look at every episode, for which there is nothing to wait for."""

    @model_validator(mode="after")
    def _does_not_wait(self) -> Self:
        if self.for_episodes:
            raise ValueError(
                "for_episodes is for rules that look at every episode: drop, drift, safety, stage_gate"
            )
        return self


class DropParams(Params):
    """Fires when real is established to be below sim and the drop is estimated above `above`."""

    metric: Literal["success"] = "success"
    above: Annotated[float, Field(ge=0, lt=1)] = 0.05
    alpha: Annotated[float, Field(gt=0, le=0.2)] = 0.025
    arl: Run = 30_000
    clear_arl: Run = 500


class DriftParams(Params):
    """Fires when a series leaves what it was. `signals` and `metrics` stand for every one of them."""

    series: Series = "success"
    worse: Literal["lower", "higher", "either"] | None = None
    method: Literal["level", "rank", "cusum"] | None = None
    arl: Run = 10_000
    clear_arl: Run = 500
    margin: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    learn_episodes: Annotated[int, Field(ge=20, le=10_000)] | None = None
    clear_episodes: Annotated[int, Field(ge=10, le=10_000)] = 60

    @model_validator(mode="after")
    def _method_fits_series(self) -> DriftParams:
        if self.method == "level" and self.series not in LEVELS:
            raise ValueError(f"method `level` is for numbers from 0 to 1: {', '.join(LEVELS)}")
        known = (*LEVELS, "reward", "duration", "signals", "metrics")
        if self.series not in known and not self.series.startswith(("signal:", "metric:")):
            raise ValueError(f"series is one of {', '.join(known)}, signal:NAME or metric:NAME")
        return self


class CategoryParams(UnwaitingParams):
    """Fires when one gap category costs more than `above` of success, and more than nothing for certain."""

    above: Fraction = 0.1
    category: list[Series] = []
    min_episodes: Annotated[int, Field(ge=10, le=100_000)] = 50
    window_days: Annotated[int, Field(ge=1, le=365)] = 30


class SafetyParams(Params):
    """Fires when a count per episode rises, and at once on an episode with `severe` of them or more."""

    what: Literal["violations", "interventions", "overrides"] = "violations"
    severe: Annotated[int, Field(ge=1, le=10_000)] | None = None
    rate: bool = True
    arl: Run = 10_000
    clear_arl: Run = 500
    margin: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    clear_episodes: Annotated[int, Field(ge=1, le=10_000)] = 50


class NoDataParams(UnwaitingParams):
    """Fires when a robot that was sending is quiet for longer than it has ever been, by far."""

    after_minutes: Annotated[float, Field(ge=1, le=100_000)] = 60
    times_longest_gap: Annotated[float, Field(ge=1, le=100)] = 3
    min_episodes: Annotated[int, Field(ge=1, le=100_000)] = 20


class Gate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    success: Fraction | None = None
    interventions: Fraction | None = None


class StageGateParams(Params):
    """Fires when a deployment is established to miss what its stage demands."""

    gates: dict[Stage, Gate] = {"supervised": Gate(success=0.4), "full": Gate(success=0.6)}
    arl: Run = 10_000
    clear_arl: Run = 500


PARAMS: dict[Kind, type[Params]] = {
    "drop": DropParams,
    "drift": DriftParams,
    "category": CategoryParams,
    "safety": SafetyParams,
    "no_data": NoDataParams,
    "stage_gate": StageGateParams,
}
# Series that are numbers from 0 to 1 by nature.
LEVELS = ("success", "violations", "interventions", "overrides")


@dataclass(frozen=True)
class Rule:
    name: str
    kind: Kind
    params: Params
    severity: Severity
    match: Match = field(default_factory=Match)
    channels: tuple[int, ...] = ()
    dry_run: bool = False
    enabled: bool = True
    # Whether it is one of those that every project has, as they come.
    is_default: bool = False


def read_params(kind: Kind, given: dict[str, Any]) -> Params:
    """The parameters of a rule; pydantic says what is wrong with them."""
    return PARAMS[kind].model_validate(given)


def _default(name: str, params: Params, severity: Severity) -> Rule:
    kind = next(kind for kind, model in PARAMS.items() if model is type(params))
    return Rule(name, kind, params, severity, is_default=True)


# A single violation is the one thing that is told while another page is open: it is more severe than all others.
# Signals move without anything being lost; they are recorded and shown, and named on the page of what is.
DEFAULT_RULES: tuple[Rule, ...] = (
    _default("safety-violation", SafetyParams(what="violations", severe=1, rate=False), "critical"),
    _default("success-below-sim", DropParams(), "warning"),
    _default("success-drift", DriftParams(series="success"), "warning"),
    _default("reward-drift", DriftParams(series="reward", worse="lower"), "warning"),
    _default("interventions-drift", SafetyParams(what="interventions"), "warning"),
    _default("stage-gate", StageGateParams(), "warning"),
    _default("gap-category", CategoryParams(), "warning"),
    _default("robot-silent", NoDataParams(), "warning"),
    _default("signal-drift", DriftParams(series="signals"), "info"),
)


def rules_in_force(own: list[Rule]) -> list[Rule]:
    """The default rules, each replaced by the project's own of the same name, and then the project's others."""
    by_name = {rule.name: rule for rule in own}
    defaults = [by_name.pop(rule.name, rule) for rule in DEFAULT_RULES]
    return defaults + sorted(by_name.values(), key=lambda rule: rule.name)
