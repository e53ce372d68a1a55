"""Freezing a plan for the stage that begins: its reference, its power card, and whether it can be decided."""

from __future__ import annotations

from typing import Any

from gapwatch.errors import Fault, Invalid
from gapwatch.notation import count
from gapwatch.rollouts.mix import frozen_mix
from gapwatch.rollouts.plan import STAGES, Stage, alpha_of, budget_days, of_stage
from gapwatch.statistics.gates.criteria import Reference
from gapwatch.statistics.gates.limits import clean_needed, single_group_size
from gapwatch.statistics.gates.power import FURTHEST, PowerRow, power_of_drop, power_of_rate
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout.evidence import Evidenced, SimReference, sim_cells, sim_reference, surrounding
from gapwatch.store.rollout.rollouts import PolicyVersion

# Of fewer, or of a shorter time, the number of episodes that will come is a guess.
FEWEST_TO_RECKON = 100


def complete(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    plan: dict[str, Any],
    stage: Stage,
    policy: PolicyVersion,
) -> dict[str, Any]:
    """The plan with what it is judged by in this stage. Nothing is refused yet."""
    found = sim_reference(connection, project_id, deployment_id, policy.name, policy.version)
    reference = None if found is None else Reference(found.successes, found.n)
    return plan | {
        "reference": None if found is None else _frozen(connection, project_id, deployment_id, policy, found),
        "power": [vars(row) for row in _power(plan, stage, reference)],
        "expected_episodes": _expected(connection, project_id, deployment_id, plan, stage, policy),
        "once": _once(plan, reference),
    }


def _frozen(
    connection: Connection, project_id: int, deployment_id: int, policy: PolicyVersion, found: SimReference
) -> dict[str, Any]:
    cells = sim_cells(connection, project_id, deployment_id, policy, found.simulator_id)
    counts = {name: value for name, value in vars(found).items() if name != "simulator_id"}
    return counts | {"mix": frozen_mix(cells)}


def _power(plan: dict[str, Any], stage: Stage, reference: Reference | None) -> list[PowerRow]:
    """Of the drop of this stage, or of the next one that has any."""
    for later in STAGES[STAGES.index(stage) :]:
        for criterion in of_stage(plan, later):
            if criterion["kind"] == "max_drop" and reference is not None:
                return power_of_drop(reference, float(criterion["limit"]), alpha_of(plan, later))
    return []


def _once(plan: dict[str, Any], reference: Reference | None) -> int | None:
    """Episodes that one look, at a number fixed in advance, would take: what looking at any time costs."""
    if reference is None or not 0 < reference.value < 1:
        return None
    return single_group_size(reference.value, reference.value, float(plan["margin"]), float(plan["alpha"]))


def _expected(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    plan: dict[str, Any],
    stage: Stage,
    policy: PolicyVersion,
) -> int | None:
    given: int | None = plan["budget"]["episodes"].get(stage)
    if given is not None:
        return given
    if stage == "offline":
        return None
    meant = Evidenced(deployment_id, stage, policy.name, policy.version, now(connection))
    around = surrounding(connection, project_id, meant)
    if around.lately < FEWEST_TO_RECKON:
        return None
    return round(around.episodes_a_day * budget_days(plan, stage))


def refuse_undecidable(plan: dict[str, Any], stage: Stage) -> None:
    """Refuse a plan that its stage cannot decide, with the number that it would take."""
    faults = [
        Fault(pointer=f"/body/plan/criteria/{place}", code=code, message=message)
        for place, criterion in enumerate(plan["criteria"])
        if criterion["stage"] == stage and (found := _too_much(plan, stage, criterion)) is not None
        for code, message in [found]
    ]
    if faults:
        raise Invalid(f"This plan cannot be decided in the stage {stage}: {faults[0]['message']}", errors=faults)


def _too_much(plan: dict[str, Any], stage: Stage, criterion: dict[str, Any]) -> tuple[str, str] | None:
    kind, name = criterion["kind"], criterion["id"]
    if kind == "min_days" and criterion["limit"] > budget_days(plan, stage):
        days = budget_days(plan, stage)
        return (
            "beyond-budget",
            f"{name} takes {criterion['limit']:.0f} days; the budget is {days}. Raise `budget.days`.",
        )
    needed, why = _needed(plan, stage, criterion)
    if needed == 0:
        return "not-decidable", f"{name}: {why}."
    expected = plan["expected_episodes"]
    if needed is not None and expected is not None and needed > expected:
        return (
            "not-decidable",
            f"{name} takes {count(needed)} episodes ({why}); {count(expected)} are expected in this stage. "
            "Widen the limit, plan for more episodes (`budget.episodes`) or days, or leave it out.",
        )
    return None


def _needed(plan: dict[str, Any], stage: Stage, criterion: dict[str, Any]) -> tuple[int | None, str]:
    """Episodes that a criterion takes, and at what; 0 where no number of them would do."""
    kind, alpha = criterion["kind"], alpha_of(plan, stage)
    if kind == "max_drop":
        return _needed_for_drop(plan, criterion, alpha)
    if kind in ("max_rate", "min_rate", "max_infeasible", "max_disagreement"):
        limit = float(criterion["limit"])
        median = power_of_rate(limit, alpha, is_most=kind != "min_rate")
        if median is None:
            return 0, f"its limit of {100 * limit:g} % takes more than {count(FURTHEST)} episodes; widen it"
        return median, "the median, at half the distance to its limit"
    if kind == "zero_violations":
        return clean_needed(float(criterion["limit"]), alpha), "without a violation"
    if kind in ("min_episodes", "drift_free") and stage != "offline":
        return int(criterion["limit"]), "its own number"
    return None, ""


def _needed_for_drop(plan: dict[str, Any], criterion: dict[str, Any], alpha: float) -> tuple[int | None, str]:
    frozen = plan["reference"]
    if frozen is None:
        return 0, "there are no simulated episodes of this policy version to compare with; send them first"
    reference = Reference(int(frozen["successes"]), int(frozen["n"]))
    margin = float(criterion["limit"])
    if margin >= reference.value:
        return 0, f"a margin of {100 * margin:g} points is more than simulation succeeds in at all"
    median = power_of_drop(reference, margin, alpha)[0].median_episodes
    if median is None:
        return 0, (
            f"with {count(reference.n)} simulated episodes an equal policy would not pass within "
            f"{count(FURTHEST)}; simulate more or widen the margin"
        )
    return median, "the median of an equal policy"
