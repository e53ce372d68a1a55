"""Making a plan: cells for the goal, trials for the budget, the promise, and why each cell is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.question import Question
from gapwatch.answers.sides import ANSWER_FIELDS, Sides
from gapwatch.answers.subjects import Subject, deployment_subject
from gapwatch.errors import Fault, Invalid, NotFound
from gapwatch.statistics.plans.allocation import FEWEST_A_CELL, TrialBudget, allocate
from gapwatch.statistics.plans.forecast import (
    ForecastCell,
    WidthForecast,
    forecast_drop,
    told_apart,
    widest_wilson,
)
from gapwatch.store.core.database import Connection
from gapwatch.store.people import trial_plans
from gapwatch.store.people.trial_plans import ReplayableScene, TrialPlan, replayable_scenes, trial_minutes
from gapwatch.trials import candidates
from gapwatch.trials.candidates import CandidateCell, Candidates
from gapwatch.trials.gate_evidence import GateAhead, read_gate_ahead

Goal = Literal["verdict", "gate", "cause", "coverage"]
NEEDS = ANSWER_FIELDS | Need.CELLS | Need.SESSIONS | Need.PLACES
MOST_TRIALS = 20_000
# What `interval_width` is the width of, goal by goal.
WIDTH_OF: dict[str, str] = {
    "verdict": "the drop under matched conditions, over the cells of the plan",
    "gate": "the drop under matched conditions, over the cells of the plan",
    "cause": "the difference between the drop at the first suspect and at the usual conditions",
    "coverage": "the real success rate of the least known cell of the plan",
}
METHOD = (
    "smoothed rates (k + 1)/(n + 2) and Neyman's allocation, at least five a cell; the promise by 2,000 seeded "
    "draws from Jeffreys' posterior of the real episodes, never from sim's rates"
)


@dataclass(frozen=True)
class PlanWish:
    """What somebody asks for: a goal and a budget, in episodes or in robot-hours."""

    goal: Goal
    episodes: int | None = None
    robot_hours: float | None = None
    setup_minutes: float = 0.0
    episode_minutes: float | None = None
    # None: where sim can be replayed.
    paired: bool | None = None


@dataclass(frozen=True)
class MadePlan:
    subject: Subject
    body: dict[str, Any]


def add_plan(
    connection: Connection, project_id: int, slug: str, wish: PlanWish, now: datetime, actor: str
) -> TrialPlan:
    """Make a plan and store it."""
    made = make_plan(connection, project_id, slug, wish, now)
    assert made.subject.deployment_id is not None  # noqa: S101 - a deployment's subject
    number = trial_plans.add_plan(
        connection,
        project_id,
        deployment_id=made.subject.deployment_id,
        policy_id=made.subject.policy_id,
        goal=wish.goal,
        body=made.body,
        actor=actor,
    )
    stored = trial_plans.find_plan(connection, project_id, number)
    assert stored is not None  # noqa: S101 - stored a line ago
    return stored


def make_plan(connection: Connection, project_id: int, slug: str, wish: PlanWish, now: datetime) -> MadePlan:
    """Everything that is stored of a plan. Bad wishes raise Invalid, and say what to do."""
    if "\0" in slug:
        raise NotFound("There is no deployment with this name.")
    subject = deployment_subject(connection, project_id, slug)
    question = Question(now, asked_window="now")
    sides = load_sides(connection, project_id, subject, question, NEEDS)
    if sides.reason is not None and wish.goal != "gate":
        raise _refusal("goal", "nothing-to-compare", f"{sides.reason} A plan needs episodes of both sides.")
    assert subject.deployment_id is not None  # noqa: S101 - a deployment's subject
    budget = _budget(wish, trial_minutes(connection, project_id, subject.deployment_id))
    ahead = read_gate_ahead(connection, project_id, slug) if wish.goal == "gate" else None
    found = _candidates(sides, wish, budget, ahead)
    visitable = [cell for cell in found.cells if cell.can_be_set_up]
    further = allocate([cell.stratum for cell in visitable], budget)
    trials = dict(zip(map(id, visitable), further, strict=True))
    visited = [cell for cell in visitable if trials[id(cell)]]
    if not visited or (wish.goal == "cause" and len(visited) < 2):  # noqa: PLR2004 - one against another
        message = "With these set-ups the budget leaves no time to try what is wanted; give more of it."
        raise _refusal(_budget_field(wish), "too-small", message)
    scenes = _scenes(connection, project_id, sides, wish)
    ordered = _in_order(visited)
    cells = [_cell_json(cell, trials[id(cell)], scenes) for cell in ordered]
    background = [_cell_json(cell, 0, None) for cell in found.cells if not trials.get(id(cell))]
    effect = max(1.0, sides.real.cluster_effect.inflation)
    planned = sum(cell["episodes"] for cell in cells)
    return MadePlan(
        subject,
        {
            "cells": cells,
            "background": background if wish.goal != "coverage" else [],
            "budget": _budget_json(wish, budget, planned, len(cells)),
            "predicted": _predicted(wish.goal, cells, background, effect, sides, ahead),
            "design_effect": effect,
            "left_out": sum(cell.is_urgent for cell in visitable) - sum(cell.is_urgent for cell in visited),
            "simulate": [
                {"conditions": dict(conditions), "real_episodes": n, "why": "real meets it and sim never ran it"}
                for conditions, n in found.simulate[:20]
            ],
            "paired": scenes is not None,
            "reason": _reason(wish, scenes),
            "method": METHOD,
        },
    )


def forecast_cells(
    cells: Sequence[Mapping[str, Any]], done: Sequence[tuple[int, int]] | None = None
) -> list[ForecastCell]:
    """The cells of a stored plan; with `done`, successes and trials of each, instead of those to come."""
    return [
        ForecastCell(
            cell["weight"],
            cell["pilot"]["successes"] + (done[at][0] if done else 0),
            cell["pilot"]["n"] + (done[at][1] if done else 0),
            0 if done else cell["episodes"],
            cell["sim"]["successes"],
            cell["sim"]["n"],
        )
        for at, cell in enumerate(cells)
    ]


def _candidates(sides: Sides, wish: PlanWish, budget: TrialBudget, ahead: GateAhead | None) -> Candidates:
    most = max(1, budget.trials_for(1) // FEWEST_A_CELL)
    if wish.goal == "verdict":
        return candidates.for_verdict(sides, most)
    if wish.goal == "coverage":
        found = candidates.for_coverage(sides)
        if not found.cells:
            message = "Every combination that sim ran has five real episodes or more: nothing is uncovered."
            raise _refusal("goal", "covered", message)
        return found
    if wish.goal == "cause":
        found = candidates.for_cause(sides)
        if not found.cells:
            message = "No level of a condition does worse than the others of it: log more conditions first."
            raise _refusal("goal", "no-suspect", message)
        return found
    if ahead is None:
        message = (
            "This deployment has no rollout with a plan, so there is no gate; begin one, or plan for a verdict."
        )
        raise _refusal("goal", "no-gate", message)
    return candidates.for_gate(sides, most, ahead.planned_cells, ahead.seen, ahead.needed)


def _budget(wish: PlanWish, usual_minutes: float | None) -> TrialBudget:
    if (wish.episodes is None) == (wish.robot_hours is None):
        raise _refusal("episodes", "one-budget", "Give a budget: either `episodes` or `robot_hours`.")
    minutes = wish.episode_minutes if wish.episode_minutes is not None else usual_minutes
    if minutes is None and (wish.robot_hours is not None or wish.setup_minutes):
        message = "The episodes there name no `duration_s`: say how long one takes, with `episode_minutes`."
        raise _refusal("episode_minutes", "missing", message)
    minutes = minutes or 1.0
    if wish.robot_hours is None:
        budget = TrialBudget(wish.episodes, None, wish.setup_minutes, minutes)
    else:
        budget = TrialBudget(None, 60 * wish.robot_hours, wish.setup_minutes, minutes)
    if budget.trials_for(1) < FEWEST_A_CELL:
        message = f"That is less than {FEWEST_A_CELL} episodes and one set-up, and fewer tell nothing of a cell."
        raise _refusal(_budget_field(wish), "too-small", message)
    if budget.trials_for(1) > MOST_TRIALS:
        raise _refusal(_budget_field(wish), "too-large", f"A plan has at most {MOST_TRIALS:,} episodes.")
    return budget


def _budget_field(wish: PlanWish) -> str:
    return "robot_hours" if wish.robot_hours is not None else "episodes"


def _budget_json(wish: PlanWish, budget: TrialBudget, planned: int, visits: int) -> dict[str, Any]:
    return {
        "episodes": wish.episodes,
        "robot_hours": wish.robot_hours,
        "setup_minutes": wish.setup_minutes,
        "episode_minutes": round(budget.trial_minutes, 3),
        "planned_episodes": planned,
        "planned_hours": round(budget.minutes_of(planned, visits) / 60, 2),
    }


def _predicted(
    goal: str,
    cells: Sequence[Mapping[str, Any]],
    background: Sequence[Mapping[str, Any]],
    effect: float,
    sides: Sides,
    ahead: GateAhead | None,
) -> dict[str, Any]:
    forecast = _forecast(goal, cells, background, effect)
    reaches: float | None = forecast.reaches
    evidence: list[dict[str, Any]] = []
    if goal == "coverage":
        reaches = None
    if ahead is not None:
        planned = sum(cell["episodes"] for cell in cells)
        evidence, reaches = ahead.forecast(planned, cells, (sides.real.successes, sides.real.n))
    return {
        "interval_width": round(forecast.width, 4),
        "between": [round(forecast.low, 4), round(forecast.high, 4)],
        "probability": forecast.probability,
        "of": WIDTH_OF[goal],
        "reaches_goal": None if reaches is None else round(reaches, 3),
        "evidence": evidence,
    }


def _forecast(
    goal: str, cells: Sequence[Mapping[str, Any]], background: Sequence[Mapping[str, Any]], effect: float
) -> WidthForecast:
    if goal == "coverage":
        return widest_wilson(forecast_cells(cells))
    every = forecast_cells([*cells, *background])
    return forecast_drop(every, effect, reached=told_apart if goal == "cause" else None)


def _cell_json(cell: CandidateCell, episodes: int, scenes: Sequence[ReplayableScene] | None) -> dict[str, Any]:
    written = {
        "conditions": dict(cell.conditions),
        "episodes": episodes,
        "why": cell.why,
        "pilot": {"successes": cell.successes, "n": cell.n},
        "sim": {"successes": cell.sim_successes, "n": cell.sim_n},
        "weight": cell.weight,
        "empty": not cell.n,
    }
    if scenes is not None and episodes:
        seeds = [scene.seed for scene in scenes if _is_in(scene.levels, cell.conditions)]
        if seeds:
            written["seeds"] = list(dict.fromkeys(seeds))[:episodes]
    return written


def _is_in(levels: Mapping[str, str], conditions: Mapping[str, str]) -> bool:
    return all(levels.get(name) == level for name, level in conditions.items())


def _scenes(
    connection: Connection, project_id: int, sides: Sides, wish: PlanWish
) -> Sequence[ReplayableScene] | None:
    """Scenes of sim to make again in real; None where nobody wants pairs, or no sim episode names its seed."""
    subject = sides.subject
    if wish.paired is False or sides.baseline is None or subject.task_ids is None:
        return None
    wanted = (sides.baseline.simulator, sides.baseline.version)
    simulator_id = next(number for number, name in subject.surroundings.simulators.items() if name == wanted)
    found = replayable_scenes(
        connection,
        project_id,
        policy_id=subject.policy_id,
        task_id=subject.task_ids[0],
        simulator_id=simulator_id,
    )
    return found or None


def _reason(wish: PlanWish, scenes: Sequence[ReplayableScene] | None) -> str | None:
    if wish.paired and scenes is None:
        return "No sim episode names its seed in `provenance`, so nothing can be paired."
    return None


def _in_order(cells: Sequence[CandidateCell]) -> list[CandidateCell]:
    """Those with nothing known first; then each with the fewest conditions changed from the one before."""
    left = sorted(cells, key=lambda cell: (not cell.is_urgent, -abs(cell.weight), sorted(cell.conditions.items())))
    ordered = [left.pop(0)]
    while left:
        last = ordered[-1]
        ordered.append(left.pop(min(range(len(left)), key=lambda at: _changes(last, left[at], at))))
    return ordered


def _changes(last: CandidateCell, cell: CandidateCell, at: int) -> tuple[bool, int, int]:
    changed = sum(last.conditions.get(name) != level for name, level in cell.conditions.items())
    return not cell.is_urgent, changed, at


def _refusal(field: str, code: str, message: str) -> Invalid:
    return Invalid(message, errors=[Fault(pointer=f"/body/{field}", code=code, message=message)])
