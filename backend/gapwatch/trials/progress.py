"""What became of a plan: trials done and remaining, and the promise against what was obtained."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from gapwatch.csv_cells import safe_cell
from gapwatch.notation import utc_text
from gapwatch.statistics.plans.forecast import stratified_drop, widest_of
from gapwatch.store.core.database import Connection
from gapwatch.store.people import trial_plans
from gapwatch.store.people.trial_plans import TrialGroup, TrialPlan
from gapwatch.trials.planning import forecast_cells

# A promise within a fifth of what was obtained is kept.
NEAR = 0.2
MOST_CALIBRATED = 50


def plan_json(plan: TrialPlan) -> dict[str, Any]:
    """As it was made."""
    shown = ("goal", "created_by")
    return {
        "id": plan.id,
        "deployment": plan.deployment,
        "policy": plan.policy,
        "version": plan.version,
        "task": plan.task,
        **{name: getattr(plan, name) for name in shown},
        "created_at": utc_text(plan.created_at),
        **{name: value for name, value in plan.body.items() if name not in ("background", "cells")},
        "cells": [_public(cell) for cell in plan.body["cells"]],
    }


def read_plan(connection: Connection, project_id: int, number: int) -> tuple[TrialPlan, dict[str, Any]] | None:
    """A plan and what was obtained so far."""
    plan = trial_plans.find_plan(connection, project_id, number)
    if plan is None:
        return None
    return plan, obtained(plan, trial_plans.plan_trials(connection, project_id, [number]))


def obtained(plan: TrialPlan, trials: Sequence[TrialGroup]) -> dict[str, Any]:
    """What its trials have come to, beside what was known before.

    Only real trials of its deployment and version that lie in one of its cells count; the rest is `elsewhere`.
    """
    cells = plan.body["cells"]
    done = [[0, 0, 0] for _ in cells]
    elsewhere = 0
    for group in trials:
        if group.plan != plan.id:
            continue
        at = _cell_of(plan, group)
        if at is None:
            elsewhere += group.episodes
        elif group.outcome in ("success", "failure"):
            done[at][0] += group.episodes * (group.outcome == "success")
            done[at][1] += group.episodes
        else:
            done[at][2] += group.episodes
    counts = [(successes, n) for successes, n, _ in done]
    planned = sum(cell["episodes"] for cell in cells)
    total = sum(n for _, n in counts)
    remaining = sum(max(0, cell["episodes"] - n) for cell, (_, n) in zip(cells, counts, strict=True))
    state = "done" if not remaining else "under way" if total else "not begun"
    width, value, interval = _measured(plan, counts)
    ratio = None if width is None else width / plan.body["predicted"]["interval_width"]
    low, high = plan.body["predicted"]["between"]
    is_done = state == "done" and width is not None and ratio is not None
    return {
        "state": state,
        "episodes": total,
        "planned": planned,
        "remaining": remaining,
        "elsewhere": elsewhere,
        "cells": [
            {
                "conditions": cell["conditions"],
                "done": n,
                "successes": successes,
                "ended_early": early,
                "remaining": max(0, cell["episodes"] - n),
            }
            for cell, (successes, n, early) in zip(cells, done, strict=True)
        ],
        "interval_width": None if width is None else round(width, 4),
        "value": None if value is None else round(value, 4),
        "interval": interval,
        "of_predicted": None if ratio is None else round(ratio, 3),
        "within_range": low - 1e-9 <= (width or 0) <= high + 1e-9 if is_done else None,
        "kept": abs(1 / (ratio or 1) - 1) <= NEAR if is_done else None,
    }


def calibration(connection: Connection, project_id: int, plans: Sequence[TrialPlan]) -> dict[str, Any]:
    """Promised against obtained, over the newest plans that are done; one query for all of their trials."""
    trials = trial_plans.plan_trials(connection, project_id, [plan.id for plan in plans[:MOST_CALIBRATED]])
    return calibration_of([(plan, obtained(plan, trials)) for plan in plans[:MOST_CALIBRATED]])


def calibration_of(plans: Sequence[tuple[TrialPlan, Mapping[str, Any]]]) -> dict[str, Any]:
    points = [
        {
            "id": plan.id,
            "deployment": plan.deployment,
            "goal": plan.goal,
            "predicted": plan.body["predicted"]["interval_width"],
            "between": plan.body["predicted"]["between"],
            "obtained": found["interval_width"],
            "kept": found["kept"],
            "within_range": found["within_range"],
        }
        for plan, found in plans
        if found["state"] == "done" and found["interval_width"] is not None
    ]
    n = len(points)
    return {
        "plans": n,
        "kept": sum(bool(point["kept"]) for point in points),
        "within_range": sum(bool(point["within_range"]) for point in points),
        "points": points,
        "reason": None if n else "No plan is done yet.",
    }


def plan_csv(plan: TrialPlan, found: Mapping[str, Any]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(plan_rows(plan, found))
    return written.getvalue()


def plan_rows(plan: TrialPlan, found: Mapping[str, Any]) -> list[list[Any]]:
    """For an operator: one row a cell, in the order of visiting; the head first."""
    names = list(dict.fromkeys(name for cell in plan.body["cells"] for name in cell["conditions"]))
    head = ["plan", "visit", *names, "episodes", "done", "remaining", "seeds", "why"]
    rows = [
        [
            plan.id,
            number,
            *(cell["conditions"].get(name, "") for name in names),
            cell["episodes"],
            progress["done"],
            progress["remaining"],
            " ".join(cell.get("seeds", ())),
            cell["why"],
        ]
        for number, (cell, progress) in enumerate(zip(plan.body["cells"], found["cells"], strict=True), start=1)
    ]
    return [[safe_cell(value) for value in row] for row in [head, *rows]]


def _measured(
    plan: TrialPlan, counts: Sequence[tuple[int, int]]
) -> tuple[float | None, float | None, list[float] | None]:
    cells, background = plan.body["cells"], plan.body["background"]
    if plan.goal == "coverage":
        return widest_of(forecast_cells(cells, counts)), None, None
    every = forecast_cells([*cells, *background], [*counts, *((0, 0) for _ in background)])
    if not any(cell.n and cell.sim_n for cell in every):
        return None, None, None
    found = stratified_drop(every, plan.body["design_effect"])
    return found.high - found.low, found.value, [round(found.low, 4), round(found.high, 4)]


def _cell_of(plan: TrialPlan, group: TrialGroup) -> int | None:
    if group.deployment_id != plan.deployment_id or group.policy_id != plan.policy_id or group.is_shadow:
        return None
    return next(
        (
            at
            for at, cell in enumerate(plan.body["cells"])
            if all(group.levels.get(name) == level for name, level in cell["conditions"].items())
        ),
        None,
    )


def _public(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name != "weight"}
