"""The rollout on the page of its deployment: ladder, gate, power card, decisions and their packets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.pages.frame import Visit
from gapwatch.pages.sentences.rollout import criterion_measured, gate_sentence, power_words, state_sentence
from gapwatch.rollouts.overview import drill_json, due_at, next_decision, overdue_words, watch_json
from gapwatch.rollouts.plan import STAGES, next_stage, of_stage, union_words, wanted_words
from gapwatch.store.rollout.rollouts import DecisionRow, PolicyVersion, Rollout, read_rollout


@dataclass(frozen=True)
class ShownCriterion:
    """One criterion of the gate in words; `verdict` is open while nothing was judged yet."""

    id: str
    claim: str
    wanted: str
    measured: str
    note: str
    verdict: str
    alpha: float | None


@dataclass(frozen=True)
class ShownDecision:
    id: int
    kind: str
    from_stage: str
    to_stage: str
    who: str
    reason: str
    at: datetime
    is_override: bool
    packet_hash: str
    html: str
    json: str


@dataclass(frozen=True)
class PlanFields:
    """The plan in force, as the form that changes it shows it; days and episodes of the stage that it is in."""

    margin: float
    alpha: float
    days: int | None
    episodes: int | None
    expires_at: str
    criteria: str


@dataclass(frozen=True)
class RolloutPart:
    slug: str
    stage: str
    next: str | None
    state: str
    entered_at: datetime
    frozen_at: datetime | None
    policy: PolicyVersion
    fallback: PolicyVersion | None
    verdict: str | None
    judged_at: datetime | None
    sentence: str
    what_drives: str
    criteria: list[ShownCriterion]
    union: str
    power: list[str]
    expected: int | None
    plan: PlanFields | None
    next_decision: str
    due_at: datetime | None
    overdue: str | None
    watch: dict[str, Any] | None
    drill: dict[str, Any] | None
    drill_at: datetime | None
    decisions: list[ShownDecision]
    # What may be decided now, by whoever may decide.
    acts: list[str]
    back: list[str]


def rollout_part(visit: Visit, stored: Mapping[str, Any] | None, slug: str, now: datetime) -> RolloutPart | None:
    """`stored` is what the surroundings of the deployment say of it."""
    if stored is None:
        return None
    rollout, decisions = read_rollout(stored, slug)
    return _part(visit, rollout, decisions, now)


def _part(visit: Visit, rollout: Rollout, decisions: list[DecisionRow], now: datetime) -> RolloutPart:
    plan, gate = rollout.plan, rollout.gate
    verdict = None if gate is None else str(gate["verdict"])
    return RolloutPart(
        slug=rollout.slug,
        stage=rollout.stage,
        next=next_stage(rollout.stage),
        state=rollout.state,
        entered_at=rollout.entered_at,
        frozen_at=rollout.frozen_at,
        policy=rollout.policy,
        fallback=rollout.fallback,
        verdict=verdict,
        judged_at=rollout.gate_at,
        sentence=gate_sentence(rollout.stage, next_stage(rollout.stage), gate),
        what_drives=state_sentence(rollout.state, rollout.driver, rollout.policy),
        criteria=_criteria(rollout),
        union="" if plan is None else union_words(plan, rollout.stage),
        power=[] if plan is None else power_words(plan),
        expected=None if plan is None else plan.get("expected_episodes"),
        plan=None if plan is None else _plan_fields(plan, rollout),
        next_decision=next_decision(rollout, verdict),
        due_at=due_at(rollout),
        overdue=overdue_words(rollout, now),
        watch=watch_json(rollout, now),
        drill=drill_json(rollout, now),
        drill_at=rollout.drill_at,
        decisions=[
            ShownDecision(
                row.id,
                row.kind,
                row.from_stage,
                row.to_stage,
                row.who,
                row.reason,
                row.at,
                row.is_override,
                row.packet_hash,
                visit.frame.links.to("decisions", str(row.id), format="html"),
                visit.frame.links.to("decisions", str(row.id), format="json"),
            )
            for row in decisions
        ],
        acts=_acts(rollout),
        back=list(map(str, reversed(STAGES[: STAGES.index(rollout.stage)]))),
    )


def _plan_fields(plan: Mapping[str, Any], rollout: Rollout) -> PlanFields:
    return PlanFields(
        margin=float(plan["margin"]),
        alpha=float(plan["alpha"]),
        days=plan["budget"]["days"].get(rollout.stage),
        episodes=plan["budget"]["episodes"].get(rollout.stage),
        expires_at=plan["expires_at"] or "",
        criteria="[" + ",\n ".join(json.dumps(one, ensure_ascii=False) for one in plan["criteria"]) + "]",
    )


def _criteria(rollout: Rollout) -> list[ShownCriterion]:
    if rollout.plan is None:
        return []
    judged = {found["id"]: found for found in (rollout.gate or {}).get("criteria", ())}
    shown = []
    for criterion in of_stage(rollout.plan, rollout.stage):
        found = judged.get(criterion["id"])
        shown.append(
            ShownCriterion(
                criterion["id"],
                criterion["claim"],
                wanted_words(criterion),
                "" if found is None else criterion_measured(found),
                "judged within seconds" if found is None else found["note"],
                "open" if found is None else found["verdict"],
                None if found is None else found["alpha"],
            )
        )
    return shown


def _acts(rollout: Rollout) -> list[str]:
    if rollout.state == "stop":
        return ["resume", "rollback", "hold"]
    acts = ["promote"] if next_stage(rollout.stage) else []
    acts += ["resume"] if rollout.state == "fallback" else []
    return [*acts, "hold", "rollback", "stop"]
