"""What the people of the demo decide about rollouts: one walks on, one is stopped, one is rolled back."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog

from gapwatch.demo.whole_history import once_counted
from gapwatch.errors import GapwatchError
from gapwatch.rollouts.deciding import Decider, decide, put_plan
from gapwatch.rollouts.plan import PlanBody, Stage
from gapwatch.rollouts.watching import judge_rollouts
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Database
from gapwatch.store.rollout.rollouts import PolicyVersion, date_plan, find_rollout

log = structlog.get_logger()


@dataclass(frozen=True)
class RolloutStory:
    """A rollout whose stage began some days ago, and what is decided about it on its evidence."""

    slug: str
    stage: Stage
    policy: tuple[str, str]
    fallback: str
    days_ago: float
    plan: dict[str, Any] = field(default_factory=dict)
    decision: str | None = None
    to: Stage | None = None
    reason: str = ""


ROLLOUTS = (
    RolloutStory(
        "lisbon-pick-5",
        "shadow",
        ("mug-hang", "1.0.0"),
        "0.0.9",
        16.5,
        {"budget": {"days": 28}},
        "promote",
        reason="Two weeks in shadow, hardly anything infeasible, and it proposes what is done.",
    ),
    RolloutStory(
        "seoul-arm-4",
        "shadow",
        ("drawer-open", "0.4.0"),
        "0.0.9",
        6.5,
        {"budget": {"days": 28}},
        "stop",
        reason="A fifth of what it proposes the arm cannot do; the joint order of the contract is wrong.",
    ),
    RolloutStory(
        "austin-pack-2",
        "full",
        ("bag-pack", "2.1.0"),
        "2.0.3",
        24,
        {
            "criteria": [
                {"id": "days", "kind": "min_days", "limit": 90, "stage": "full"},
                {"id": "drop", "kind": "max_drop", "stage": "full", "claim": "2.1.0 loses less than 10 points."},
            ]
        },
        "rollback",
        "supervised",
        "2.1.0 is established to lose more than the margin; 2.0.3 goes back onto all three robots.",
    ),
    RolloutStory(
        "zurich-sort-2",
        "full",
        ("parcel-sort", "4.2.0"),
        "4.1.0",
        62,
        {
            "criteria": [
                {"id": "days", "kind": "min_days", "limit": 90, "stage": "full"},
                {"id": "drop", "kind": "max_drop", "stage": "full"},
                {"id": "no-incident", "kind": "no_open_incident", "stage": "full"},
            ]
        },
    ),
    RolloutStory(
        "madrid-bin-6",
        "supervised",
        ("bottle-grasp", "1.4.1"),
        "1.4.0",
        28,
        {
            "margin": 0.2,
            "budget": {"days": 21},
            "criteria": [
                {"id": "days", "kind": "min_days", "limit": 14, "stage": "supervised"},
                {"id": "drop", "kind": "max_drop", "stage": "supervised"},
            ],
        },
    ),
)


def decide_stories(database_url: str, project: str, person: str, link_base: str, sent: threading.Event) -> None:
    """Wait until the whole history is counted, then begin the rollouts of those stories and decide about them."""
    with once_counted(database_url, project, sent) as (database, project_id):
        for story in ROLLOUTS:
            try:
                tell_rollout(database, project_id, story, person, link_base)
            except GapwatchError as error:
                # A demo that was stopped and started again may have come this far before.
                log.warning("a rollout of the demo is left out", deployment=story.slug, reason=error.detail)
        with database.transaction(project_id) as connection:
            judge_rollouts(connection, project_id, link_base)


def tell_rollout(database: Database, project_id: int, story: RolloutStory, person: str, link_base: str) -> None:
    """Begin a rollout in the time of its story and decide about it, each in a transaction as people would."""
    name, version = story.policy
    body = PlanBody.model_validate(story.plan | {"fallback": {"name": name, "version": story.fallback}})
    decider = Decider(person, "engineer", link_base)
    with database.transaction(project_id) as connection:
        if find_rollout(connection, project_id, story.slug) is not None:
            return
        put_plan(
            connection,
            project_id,
            story.slug,
            body,
            stage=story.stage,
            policy=PolicyVersion(name, version),
            expires_at=None,
            decider=decider,
        )
        date_plan(connection, project_id, story.slug, now(connection) - timedelta(days=story.days_ago))
    if story.decision is not None:
        with database.transaction(project_id) as connection:
            decide(
                connection,
                project_id,
                story.slug,
                story.decision,
                reason=story.reason,
                decider=decider,
                to=story.to,
            )
