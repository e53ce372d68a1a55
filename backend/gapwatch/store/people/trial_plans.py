"""SQL of plans of trials: kept as they were made, and the episodes that name them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.levels import level_of
from gapwatch.store.core.audit import audit
from gapwatch.store.fold.episode_rows import condition_sets, name_sets

# A trial may name its plan by its session instead of the field.
SESSION_PREFIX = "plan-"
# Groups of equal trials that are read; a plan has at most a few thousand.
MOST_GROUPS = 50_000
# The newest sim episodes that are looked at for seeds.
MOST_SEEDS = 5_000
NEWEST = 500


@dataclass(frozen=True)
class TrialPlan:
    """A stored plan. `body`: cells with what was known of them, budget and promise."""

    id: int
    deployment_id: int
    deployment: str
    policy_id: int
    policy: str
    version: str
    task: str
    goal: str
    body: dict[str, Any]
    created_at: datetime
    created_by: str


@dataclass(frozen=True)
class TrialGroup:
    """Trials of one plan that ended alike under the same conditions."""

    plan: int
    deployment_id: int | None
    policy_id: int
    outcome: str
    is_shadow: bool
    levels: Mapping[str, str]
    episodes: int


@dataclass(frozen=True)
class ReplayableScene:
    """A sim episode that can be made again: its seed, and its conditions."""

    seed: str
    levels: Mapping[str, str]


_PLANS = """
SELECT x.id, x.deployment_id, d.slug AS deployment, x.policy_id, p.name AS policy, p.version, t.name AS task,
       x.goal, x.body, x.created_at, x.created_by
FROM trial_plans x
JOIN deployments d ON d.project_id = x.project_id AND d.id = x.deployment_id
JOIN policies p ON p.project_id = x.project_id AND p.id = x.policy_id
JOIN tasks t ON t.project_id = d.project_id AND t.id = d.task_id
WHERE x.project_id = :p
"""


def add_plan(
    connection: Connection,
    project_id: int,
    *,
    deployment_id: int,
    policy_id: int,
    goal: str,
    body: Mapping[str, Any],
    actor: str,
) -> int:
    number = int(
        connection.execute(
            text("""
            INSERT INTO trial_plans (project_id, deployment_id, policy_id, goal, body, created_by)
            VALUES (:p, :d, :policy, :goal, CAST(:body AS jsonb), :actor) RETURNING id
            """),
            {
                "p": project_id,
                "d": deployment_id,
                "policy": policy_id,
                "goal": goal,
                "body": json.dumps(body),
                "actor": actor,
            },
        ).scalar_one()
    )
    audit(connection, project_id, actor, "plan.made", f"plan/{number}", goal=goal, budget=body["budget"])
    return number


def find_plan(connection: Connection, project_id: int, number: int) -> TrialPlan | None:
    row = connection.execute(text(f"{_PLANS} AND x.id = :id"), {"p": project_id, "id": number}).first()
    return None if row is None else TrialPlan(*row)


def plans_page(
    connection: Connection, project_id: int, *, deployment: str | None, before_id: int | None, limit: int
) -> list[TrialPlan]:
    """Newest first."""
    rows = connection.execute(
        text(f"""{_PLANS} AND (CAST(:slug AS text) IS NULL OR d.slug = :slug)
             AND (CAST(:before AS int) IS NULL OR x.id < :before) ORDER BY x.id DESC LIMIT :limit"""),
        {"p": project_id, "slug": deployment, "before": before_id, "limit": limit},
    )
    return [TrialPlan(*row) for row in rows]


def plan_trials(connection: Connection, project_id: int, numbers: Sequence[int]) -> list[TrialGroup]:
    """The trials of some plans, by field or by session; of an episode that names both, the field counts."""
    if not numbers:
        return []
    columns = "e.deployment_id, e.policy_id, e.outcome, e.domain = 'shadow', e.condition_set_id, e.number_names_id"
    rows = connection.execute(
        text(f"""
        SELECT plan, deployment_id, policy_id, outcome, is_shadow, condition_set_id, number_names_id, numbers,
               count(*)::int AS episodes
        FROM (
            SELECT e.plan, {columns} AS n, e.numbers FROM episodes e
            WHERE e.project_id = :p AND e.plan = ANY(:ids) AND e.domain IN ('real', 'shadow')
            UNION ALL
            SELECT CAST(substr(e.session, {len(SESSION_PREFIX) + 1}) AS int), {columns}, e.numbers FROM episodes e
            WHERE e.project_id = :p AND e.session LIKE '{SESSION_PREFIX}%' AND e.session = ANY(:sessions)
              AND e.plan IS NULL AND e.domain IN ('real', 'shadow')
        ) x (plan, deployment_id, policy_id, outcome, is_shadow, condition_set_id, number_names_id, numbers)
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 LIMIT {MOST_GROUPS}
        """),  # noqa: S608 - constants of ours
        {"p": project_id, "ids": list(numbers), "sessions": [f"{SESSION_PREFIX}{number}" for number in numbers]},
    ).all()
    levels = _levels_of(connection, project_id, rows)
    return [
        TrialGroup(row.plan, row.deployment_id, row.policy_id, row.outcome, row.is_shadow, at_levels, row.episodes)
        for row, at_levels in zip(rows, levels, strict=True)
    ]


def replayable_scenes(
    connection: Connection, project_id: int, *, policy_id: int, task_id: int, simulator_id: int
) -> list[ReplayableScene]:
    """Sim episodes that name their seed in `provenance`, newest first; of the newest few thousand."""
    rows = connection.execute(
        text(f"""
        SELECT condition_set_id, number_names_id, numbers, seed FROM (
            SELECT e.condition_set_id, e.number_names_id, e.numbers, e.provenance ->> 'seed' AS seed, e.started_at
            FROM episodes e WHERE e.project_id = :p AND e.domain = 'sim' AND e.policy_id = :policy
              AND e.task_id = :task AND e.simulator_id = :simulator
            ORDER BY e.started_at DESC LIMIT {MOST_SEEDS}) x
        WHERE seed IS NOT NULL ORDER BY started_at DESC, seed
        """),  # noqa: S608 - constants of ours
        {"p": project_id, "policy": policy_id, "task": task_id, "simulator": simulator_id},
    ).all()
    levels = _levels_of(connection, project_id, rows)
    return [ReplayableScene(row.seed, at_levels) for row, at_levels in zip(rows, levels, strict=True)]


def trial_minutes(connection: Connection, project_id: int, deployment_id: int) -> float | None:
    """How long an episode takes there, by the mean of the newest; None where none says."""
    mean_s = connection.execute(
        text(f"""
        SELECT avg(duration_s) FROM (
            SELECT duration_s FROM episodes WHERE project_id = :p AND deployment_id = :d AND domain = 'real'
              AND duration_s > 0 ORDER BY started_at DESC LIMIT {NEWEST}) x
        """),  # noqa: S608 - a constant of ours
        {"p": project_id, "d": deployment_id},
    ).scalar_one()
    return None if mean_s is None else float(mean_s) / 60


def _levels_of(connection: Connection, project_id: int, rows: Sequence[Any]) -> list[dict[str, str]]:
    words = condition_sets(connection, project_id, {row.condition_set_id for row in rows})
    names = name_sets(connection, project_id, {row.number_names_id for row in rows})
    return [
        {
            name: level_of(value)
            for name, value in [
                *words.get(row.condition_set_id, {}).items(),
                *zip(names.get(row.number_names_id, ()), row.numbers or (), strict=False),
            ]
            if value is not None
        }
        for row in rows
    ]
