"""Plans: what each stage has to show before the next, as people write it and as it is frozen."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from gapwatch.notation import count

Stage = Literal["offline", "shadow", "supervised", "full"]
STAGES: tuple[Stage, ...] = get_args(Stage)
CriterionKind = Literal[
    "min_episodes",
    "min_days",
    "max_drop",
    "max_rate",
    "min_rate",
    "zero_violations",
    "drift_free",
    "contract_equal",
    "cells_covered",
    "no_open_incident",
    "max_infeasible",
    "max_disagreement",
]
Measure = Literal["overrides", "interventions", "violations", "acceptance", "success"]
# Those that spend error: each has an e-process of its own.
TESTED: tuple[CriterionKind, ...] = (
    *("max_drop", "max_rate", "min_rate", "zero_violations", "max_infeasible", "max_disagreement"),
)
COUNTED: tuple[CriterionKind, ...] = ("min_episodes", "min_days", "drift_free")
SHARES: tuple[CriterionKind, ...] = (
    *(
        "max_drop",
        "max_rate",
        "min_rate",
        "zero_violations",
        "cells_covered",
        "max_infeasible",
        "max_disagreement",
    ),
)
SHADOW_ONLY: tuple[CriterionKind, ...] = ("max_infeasible", "max_disagreement")
# After which a stage that waits for a decision asks a person, unless the plan says otherwise.
BUDGET_DAYS: dict[Stage, int] = {"offline": 30, "shadow": 28, "supervised": 60, "full": 120}
# The watch of a full deployment: until which day, and the chance of a false alarm that it takes until then.
WATCH: tuple[tuple[int, float], ...] = ((30, 0.20), (60, 0.10), (90, 0.05))
DRILL_DAYS = 90

Word = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Open = Annotated[float, Field(gt=0, lt=1)]


class PlanPart(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PolicyName(PlanPart):
    name: Name
    version: Name


Days = Annotated[int, Field(ge=1, le=730)]
Volume = Annotated[int, Field(ge=1, le=1_000_000_000)]


class Budget(PlanPart):
    """How long a stage may wait for a decision, and how many episodes are expected in it.

    A number is of the stage that begins with the plan; of others, name them.
    """

    days: Days | dict[Stage, Days] | None = None
    episodes: Volume | dict[Stage, Volume] | None = Field(
        None, description="Expected in the stage; without it, what the deployment sent of late is reckoned on."
    )


class Criterion(PlanPart):
    """One thing that a stage has to show."""

    id: Word | None = None
    kind: CriterionKind
    stage: Stage | None = Field(None, description="The stage that it ends; the current one if it is not given.")
    claim: Line | None = Field(None, description="What it supports, in a sentence of yours.")
    limit: Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)] | None = Field(
        None, description="A share, or a number of episodes or days; of `max_drop` the margin if it is not given."
    )
    measure: Measure | None = Field(None, description="Of `max_rate` and `min_rate`.")
    episodes: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Of `cells_covered`: how many make a cell covered."
    )
    conditions: dict[Name, Annotated[list[Name], Field(min_length=1, max_length=50)]] | None = Field(
        None,
        description="Of `cells_covered`: the levels of each condition; every combination is a cell.",
        max_length=6,
    )
    critical: bool = Field(False, description="Of shadow criteria: within the critical interval only.")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Criterion:
        if self.kind in SHARES and self.limit is not None and not 0 < self.limit < 1:
            raise ValueError("a share lies between 0 and 1, without its ends")
        if self.kind in COUNTED and (self.limit is None or self.limit < 1 or self.limit != int(self.limit)):
            raise ValueError("give a whole number of episodes or days as `limit`")
        if self.kind in ("max_rate", "min_rate", "cells_covered", *SHADOW_ONLY) and self.limit is None:
            raise ValueError("give a `limit`")
        if (self.kind in ("max_rate", "min_rate")) != (self.measure is not None):
            raise ValueError("`measure` belongs to max_rate and min_rate, and they need it")
        if (self.kind == "cells_covered") != bool(self.conditions):
            raise ValueError("`conditions` belong to cells_covered, which needs them")
        if self.stage not in (None, "shadow") and self.kind in SHADOW_ONLY:
            raise ValueError("only shadow episodes say what a candidate proposed")
        return self


class PlanBody(PlanPart):
    """A plan as it is sent. A stage without criteria of its own has those of its preset."""

    margin: Open = Field(0.10, description="The largest drop that is still as good as none, as a share.")
    alpha: Annotated[float, Field(ge=0.0001, le=0.2)] = Field(
        0.05, description="The chance that any claim of a stage is passed wrongly, however often it is looked at."
    )
    budget: Budget = Field(default_factory=lambda: Budget(days=None, episodes=None))
    expires_at: Annotated[str, StringConstraints(min_length=2, max_length=40)] | None = Field(
        None, description="RFC 3339: after it a person is asked, whatever the budget says."
    )
    fallback: PolicyName | None = Field(None, description="What drives when the candidate may not.")
    criteria: Annotated[list[Criterion], Field(max_length=40)] = []
    retention: Literal["standard", "legal"] = Field(
        "standard", description="How long packets are to be kept: written into each of them."
    )


def preset(stage: Stage, margin: float) -> list[dict[str, Any]]:
    """What a stage has to show unless the plan says otherwise."""
    incident = {"id": "no-incident", "kind": "no_open_incident", "claim": "Nothing is known to be wrong with it."}
    drop = {
        "id": "drop",
        "kind": "max_drop",
        "limit": margin,
        "claim": f"It loses less than {100 * margin:g} points of success against its simulation.",
    }
    overrides = {
        "id": "overrides",
        "kind": "max_rate",
        "measure": "overrides",
        "limit": 0.10,
        "claim": "People override it in fewer than 10 % of episodes.",
    }
    violations = {
        "id": "violations",
        "kind": "zero_violations",
        "limit": 0.01,
        "claim": "It violates a safety limit in fewer than 1 % of episodes.",
    }
    presets: dict[Stage, list[dict[str, Any]]] = {
        "offline": [
            {
                "id": "episodes",
                "kind": "min_episodes",
                "limit": 10_000,
                "claim": "It was tried in at least 10,000 simulated or historical episodes.",
            },
            {
                "id": "contract",
                "kind": "contract_equal",
                "claim": "Simulation and robot mean the same by every field of the contract.",
            },
        ],
        "shadow": [
            {"id": "days", "kind": "min_days", "limit": 14, "claim": "It was watched for two weeks of real work."},
            {
                "id": "infeasible",
                "kind": "max_infeasible",
                "limit": 0.05,
                "claim": "The robot could not have done fewer than 5 % of what it proposed.",
            },
            {
                "id": "bound",
                "kind": "max_disagreement",
                "limit": 0.20,
                "claim": "Its success is known within 20 points, because it proposes what is done.",
            },
        ],
        "supervised": [
            {"id": "days", "kind": "min_days", "limit": 30, "claim": "It drove for a month under supervision."},
            drop,
            overrides,
            {
                "id": "acceptance",
                "kind": "min_rate",
                "measure": "acceptance",
                "limit": 0.70,
                "claim": "More than 70 % of episodes succeed without anybody stepping in.",
            },
            violations,
            incident,
        ],
        "full": [
            {"id": "days", "kind": "min_days", "limit": 90, "claim": "It was watched closely for 90 days."},
            drop,
            overrides,
            violations,
            incident,
        ],
    }
    return presets[stage]


def freeze(body: PlanBody, current: Stage, expires_at: datetime | None) -> dict[str, Any]:
    """The plan as it is stored: every criterion with its id, stage, claim and limit.

    ValueError, with the place in `criteria`, for two of one id.
    """
    given = [criterion.model_copy(update={"stage": criterion.stage or current}) for criterion in body.criteria]
    written: list[dict[str, Any]] = []
    for stage in STAGES:
        own = [criterion for criterion in given if criterion.stage == stage]
        rows = [_written(criterion, body.margin) for criterion in own] if own else preset(stage, body.margin)
        written += [row | {"stage": stage} for row in rows]
    seen: set[tuple[str, str]] = set()
    for row in written:
        if (row["stage"], row["id"]) in seen:
            raise ValueError(f"Two criteria of {row['stage']} have the id {row['id']}; give each its own.")
        seen.add((row["stage"], row["id"]))
    return {
        "margin": body.margin,
        "alpha": body.alpha,
        "budget": {
            "days": _by_stage(body.budget.days, current),
            "episodes": _by_stage(body.budget.episodes, current),
        },
        "expires_at": None if expires_at is None else expires_at.isoformat().replace("+00:00", "Z"),
        "fallback": None if body.fallback is None else body.fallback.model_dump(),
        "retention": body.retention,
        "criteria": written,
    }


def _by_stage(given: int | dict[Stage, int] | None, current: Stage) -> dict[Stage, int]:
    return {current: given} if isinstance(given, int) else dict(given or {})


def _written(criterion: Criterion, margin: float) -> dict[str, Any]:
    row = {name: value for name, value in criterion.model_dump().items() if value not in (None, False)}
    if criterion.kind == "max_drop":
        row.setdefault("limit", margin)
    if criterion.kind == "zero_violations":
        row.setdefault("limit", 0.01)
    row["id"] = criterion.id or (f"{criterion.kind}-{criterion.measure}" if criterion.measure else criterion.kind)
    words = wanted_words(row)
    row.setdefault("claim", f"{words[0].upper()}{words[1:]}.")
    return row


def of_stage(plan: dict[str, Any], stage: str) -> list[dict[str, Any]]:
    return [criterion for criterion in plan["criteria"] if criterion["stage"] == stage]


def alpha_of(plan: dict[str, Any], stage: str) -> float:
    """What each tested criterion of a stage may spend: an equal part, so that all errors together stay below α."""
    tested = sum(criterion["kind"] in TESTED for criterion in of_stage(plan, stage))
    return float(plan["alpha"]) / max(1, tested)


def union_words(plan: dict[str, Any], stage: str) -> str:
    """The union bound in figures."""
    tested = [criterion["id"] for criterion in of_stage(plan, stage) if criterion["kind"] in TESTED]
    if not tested:
        return "No criterion of this stage is tested, so no error is spent."
    share = alpha_of(plan, stage)
    return (
        f"α {plan['alpha']:g} = {len(tested)} × {share:.4g} ({', '.join(tested)}): the chance that any of them "
        f"passes wrongly, at any look, is at most {plan['alpha']:g}."
    )


def budget_days(plan: dict[str, Any], stage: Stage) -> int:
    return int(plan["budget"]["days"].get(stage) or BUDGET_DAYS[stage])


def is_expired(plan: dict[str, Any] | None, now: datetime) -> bool:
    return (
        plan is not None and plan["expires_at"] is not None and now >= datetime.fromisoformat(plan["expires_at"])
    )


def next_stage(stage: str) -> Stage | None:
    place = STAGES.index(stage)
    return STAGES[place + 1] if place + 1 < len(STAGES) else None


def wanted_words(criterion: dict[str, Any]) -> str:
    """What a criterion wants, in words."""
    kind, limit = criterion["kind"], criterion.get("limit", 0)
    share = f"{100 * limit:g} %"
    where = " in the critical interval" if criterion.get("critical") else ""
    words = {
        "min_episodes": f"at least {count(limit)} episodes",
        "min_days": f"at least {limit:.0f} days",
        "max_drop": f"a drop below {100 * limit:g} points",
        "max_rate": f"{criterion.get('measure')} in fewer than {share} of episodes",
        "min_rate": f"{criterion.get('measure')} in more than {share} of episodes",
        "zero_violations": f"no violation, in enough episodes to prove fewer than {share}",
        "drift_free": f"no change for {limit:.0f} episodes",
        "contract_equal": "equal contracts of simulation and robot",
        "cells_covered": f"at least {share} of the planned cells seen",
        "no_open_incident": "no open incident",
        "max_infeasible": f"fewer than {share} of proposed steps infeasible{where}",
        "max_disagreement": f"fewer than {share} of proposed steps unlike what was done{where}",
    }
    return words[kind]
