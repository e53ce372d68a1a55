"""What the demo's people plan and identify: ranges of both simulators, friction that left its range, a plan half
done and two that are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from typing import Any
from zlib import crc32

import httpx
import numpy as np
import structlog

from gapwatch.demo.history import live_record
from gapwatch.demo.stories import ISAAC, MUJOCO, STORIES
from gapwatch.demo.whole_history import once_counted
from gapwatch.errors import GapwatchError
from gapwatch.levels import number_range
from gapwatch.store.core.database import Database
from gapwatch.store.people import trial_plans
from gapwatch.store.people.trial_plans import TrialPlan
from gapwatch.trials.planning import Goal, PlanWish, add_plan

log = structlog.get_logger()

SEED = 11
RANGES: tuple[dict[str, Any], ...] = (
    {"name": "belt_friction", "low": 0.55, "high": 0.95, "unit": None},
    {"name": "object_mass", "low": 0.8, "high": 1.2, "operation": "scale", "nominal": 0.5, "unit": "kg"},
    {"name": "actuator_latency", "low": 2.0, "high": 40.0, "unit": "ms", "signal": "loop_latency_ms_p95"},
    {"name": "joint_damping", "low": 1.0, "high": 0.1, "distribution": "gaussian", "operation": "scale",
     "nominal": 0.6, "unit": "N m s/rad"},
    {"name": "gripper_stiffness", "low": 85.0, "high": 85.0, "unit": "N m/rad"},
    {"name": "camera_tilt", "low": -2.0, "high": 2.0, "unit": "deg"},
)  # fmt: skip
# Day, deployment, title, values: the belt wore, and the simulator still has the friction of two months ago.
IDENTIFICATIONS: tuple[tuple[float, str, str, dict[str, dict[str, Any]]], ...] = (
    (
        -62,
        "berlin-line-3",
        "slip test on the new belt",
        {
            "belt_friction": {"value": 0.71, "interval": [0.66, 0.76]},
            "object_mass": {"value": 0.47, "interval": [0.44, 0.5], "unit": "kg"},
            "joint_damping": {"value": 0.61, "interval": [0.58, 0.64], "unit": "N m s/rad"},
        },
    ),
    (
        -3,
        "berlin-line-3",
        "slip test after two months of shifts",
        {"belt_friction": {"value": 0.47, "interval": [0.42, 0.52]}},
    ),
)


@dataclass(frozen=True)
class PlanStory:
    """A plan of a deployment, and the share of its trials that were made."""

    slug: str
    goal: Goal
    episodes: int
    setup_minutes: float
    done: float


PLANS = (
    PlanStory("osaka-line-1", "verdict", 80, 5.0, 1.0),
    PlanStory("turin-cell-1", "verdict", 60, 5.0, 1.0),
    PlanStory("berlin-line-3", "coverage", 60, 4.0, 0.5),
)


def send_ranges(client: httpx.Client, anchor: date) -> None:
    """Declare the ranges of both simulators, as a training pipeline would, and tell what was identified."""
    parameters = [{name: value for name, value in one.items() if value is not None} for one in RANGES]
    for name, version in (ISAAC, MUJOCO):
        body = {"parameters": parameters}
        client.put(f"/api/v1/simulators/{name}/{version}/ranges", json=body).raise_for_status()
    for day, slug, title, values in IDENTIFICATIONS:
        at = datetime.combine(anchor, clock_time(5), UTC) + timedelta(days=day)
        told = {
            "kind": "system_identification",
            "title": title,
            "at": at.isoformat(),
            "deployment": slug,
            "values": values,
        }
        client.post("/api/v1/events", json=told).raise_for_status()


def plan_stories(
    database_url: str, project: str, person: str, send: Callable[[dict[str, Any]], None], sent: threading.Event
) -> None:
    """Wait until the whole history is counted, then plan and carry out."""
    with once_counted(database_url, project, sent) as (database, project_id):
        for story in PLANS:
            try:
                for record in carry_out(story, planned(database, project_id, story, person), datetime.now(UTC)):
                    send(record)
            except GapwatchError as error:
                log.warning("a plan of the demo is left out", deployment=story.slug, reason=error.detail)


def planned(database: Database, project_id: int, story: PlanStory, person: str) -> TrialPlan:
    wish = PlanWish(story.goal, episodes=story.episodes, setup_minutes=story.setup_minutes, episode_minutes=2.0)
    with database.transaction(project_id) as connection:
        known = trial_plans.plans_page(connection, project_id, deployment=story.slug, before_id=None, limit=1)
        # A demo that was stopped and started again may have come this far before.
        return known[0] if known else add_plan(connection, project_id, story.slug, wish, datetime.now(UTC), person)


def carry_out(story: PlanStory, plan: TrialPlan, now: datetime) -> list[dict[str, Any]]:
    """The trials that were made of a plan, cell by cell; the same ids for the same plan: none is kept twice."""
    generator = np.random.default_rng([SEED, plan.id, crc32(story.slug.encode())])
    told = next(one for one in STORIES if one.slug == story.slug)
    trials = [cell for cell in plan.body["cells"] for _ in range(cell["episodes"])]
    made = trials[: round(story.done * len(trials))]
    records = []
    for at, cell in enumerate(made):
        record = live_record(told, now - timedelta(minutes=2 * (len(made) - at)), generator)
        record |= {"id": f"plan-{plan.id}-trial-{at}", "plan": plan.id}
        record["conditions"] |= {name: as_sent(level) for name, level in cell["conditions"].items()}
        records.append(record)
    return records


def as_sent(level: str) -> str | bool | float:
    """A value of the level, as a robot would send it."""
    if level in ("true", "false"):
        return level == "true"
    bounds = number_range(level)
    return level if bounds is None else sum(bounds) / 2
