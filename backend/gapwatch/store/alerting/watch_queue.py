"""The queue of the watch, the episodes it takes from it, and how far each deployment has come.

Accepted batches come here when they are folded, in the same transaction. One process watches a project at a time,
in the order of arrival, so that the same episodes always give the same alarms.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from gapwatch.levels import level_of
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import RobotArrival
from gapwatch.watching.sim_mix import SimCell

# Rows of one transaction.
ROWS_AT_MOST = 500
# The newest episodes since a change that its levels are counted in.
MOST_OF_LEVELS = 2000
# More combinations of levels than this are not looked through.
MOST_SIM_CELLS = 5000
# The first number of an advisory lock: one watcher a project.
WATCHER = 7301

# Corrections and deletions change numbers that are shown, never what a detector has seen: only first versions
# come.
_HAND_OVER = text("""
WITH done AS (
    DELETE FROM work WHERE id = ANY(:ids) RETURNING project_id, id, episode_ids, revision, sign, created_at
)
INSERT INTO watch_due (project_id, episode_ids, accepted_at)
SELECT project_id, episode_ids, created_at FROM done WHERE sign = 1 AND revision = 1 ORDER BY id
""")
# What is still to be folded may be older than what is here; it is waited for, unless it keeps failing.
_ROWS = text("""
SELECT id, episode_ids, accepted_at FROM watch_due
WHERE project_id = :p AND accepted_at < (
    SELECT coalesce(min(created_at), 'infinity') FROM work
    WHERE project_id = :p AND kind = 'fold' AND sign = 1 AND revision = 1 AND attempts = 0)
ORDER BY accepted_at, id LIMIT :most
""")
EPISODES = """
SELECT e.id, e.deployment_id, e.started_at, e.received_at, e.revision, e.outcome, e.policy_id, e.stage,
       r.name AS robot, e.session, e.reward, e.duration_s, e.violations, e.interventions, e.overrides,
       sn.names AS signal_names, e.signals, mn.names AS metric_names, e.metrics, c.levels
FROM episodes e
LEFT JOIN condition_sets c ON c.project_id = e.project_id AND c.id = e.condition_set_id
LEFT JOIN robots r ON r.project_id = e.project_id AND r.id = e.robot_id
LEFT JOIN name_sets sn ON sn.project_id = e.project_id AND sn.id = e.signal_names_id
LEFT JOIN name_sets mn ON mn.project_id = e.project_id AND mn.id = e.metric_names_id
WHERE e.project_id = :p AND e.domain IN ('real', 'shadow')
"""


@dataclass(frozen=True)
class DueRow:
    id: int
    episode_ids: list[str]
    accepted_at: datetime


@dataclass
class WatchProgress:
    """How far the watch of a deployment has come. `late` counts those of its episodes that came as history."""

    episodes: int = 0
    late: int = 0
    newest_started_at: datetime | None = None
    newest_received_at: datetime | None = None
    silent: bool = False


def hand_over(connection: Connection, work_ids: list[int]) -> None:
    """Folded work rows end, and what they brought is due to be watched."""
    connection.execute(_HAND_OVER, {"ids": work_ids})


def projects_due(connection: Connection) -> list[int]:
    return list(connection.scalars(text("SELECT DISTINCT project_id FROM watch_due")))


def try_lock_project(connection: Connection, project_id: int) -> bool:
    """Try to become the project's only watcher until the transaction ends; never waits."""
    statement = text("SELECT pg_try_advisory_xact_lock(:kind, :p)")
    return bool(connection.execute(statement, {"kind": WATCHER, "p": project_id}).scalar_one())


def lock_deployment(connection: Connection, project_id: int, deployment_id: int) -> None:
    """Keep everybody else, people and the watch, from moving alerts of a deployment until the transaction ends."""
    # Deployments are numbered by project: one number would make tenants wait for each other.
    statement = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
    connection.execute(statement, {"name": f"alerts/{project_id}/{deployment_id}"})


def due_rows(connection: Connection, project_id: int, most: int) -> list[DueRow]:
    """Return the first due rows that hold at most `most` episodes together, but at least a batch.

    A batch may have been folded in parts; it is watched in the order of its own time, so all of them at once.
    """
    rows: list[DueRow] = []
    episodes = 0
    for row in connection.execute(_ROWS, {"p": project_id, "most": ROWS_AT_MOST}):
        is_next_batch = bool(rows) and row.accepted_at != rows[-1].accepted_at
        if is_next_batch and episodes + len(row.episode_ids) > most:
            break
        rows.append(DueRow(row.id, row.episode_ids, row.accepted_at))
        episodes += len(row.episode_ids)
    return rows


def places_of(connection: Connection, project_id: int, rows: list[DueRow]) -> dict[str, int]:
    """The deployment of each episode of these rows, in the order of the rows; those of simulators left out."""
    ids = [episode_id for row in rows for episode_id in row.episode_ids]
    found = connection.execute(
        text("""
        SELECT id, deployment_id FROM episodes
        WHERE project_id = :p AND id = ANY(:ids) AND domain IN ('real', 'shadow')
        """),
        {"p": project_id, "ids": ids},
    )
    where = {row.id: row.deployment_id for row in found}
    return {episode_id: where[episode_id] for episode_id in ids if episode_id in where}


def finish_rows(connection: Connection, project_id: int, rows: list[DueRow], later: Collection[str]) -> None:
    """End rows whose episodes were watched; those for later stay due, in their place."""
    rest = {row.id: [one for one in row.episode_ids if one in later] for row in rows}
    connection.execute(
        text("DELETE FROM watch_due WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": [row_id for row_id, ids in rest.items() if not ids]},
    )
    for row_id, ids in rest.items():
        if ids:
            connection.execute(
                text("UPDATE watch_due SET episode_ids = :rest WHERE project_id = :p AND id = :id"),
                {"p": project_id, "id": row_id, "rest": ids},
            )


def episodes_of(
    connection: Connection, project_id: int, rows: list[DueRow], deployment_ids: Collection[int]
) -> dict[int, list[SeenEpisode]]:
    """The episodes of these rows by deployment, in the order of arrival; within a batch by their own time.

    An episode is news only in the batch that brought it: a later fold of the same episodes, after a migration
    say, has another time and is passed over.
    """
    accepted = {episode_id: row.accepted_at for row in rows for episode_id in row.episode_ids}
    episode_rows = connection.execute(
        text(
            f"{EPISODES} AND e.id = ANY(:ids) AND e.deployment_id = ANY(:deployments)"
            " ORDER BY e.received_at, e.started_at, e.id"
        ),
        {"p": project_id, "ids": list(accepted), "deployments": list(deployment_ids)},
    )
    by_deployment: dict[int, list[SeenEpisode]] = {}
    for row in episode_rows.mappings():
        if row["received_at"] == accepted[row["id"]] or row["revision"] > 1:
            by_deployment.setdefault(row["deployment_id"], []).append(seen_episode(row))
    return by_deployment


def episodes_since(
    connection: Connection, project_id: int, deployment_id: int, since: datetime, most: int
) -> list[SeenEpisode]:
    """Return the newest episodes of a deployment since a time, in the order of their own time."""
    newest = (
        f"{EPISODES} AND e.deployment_id = :d AND e.started_at >= :since ORDER BY e.started_at DESC, e.id DESC"
    )
    episode_rows = connection.execute(
        text(f"{newest} LIMIT :most"), {"p": project_id, "d": deployment_id, "since": since, "most": most}
    ).mappings()
    return [seen_episode(row) for row in episode_rows][::-1]


def arrivals_since(connection: Connection, project_id: int, since: datetime, most: int) -> list[RobotArrival]:
    """Return when the newest real episodes of a project began and arrived."""
    rows = connection.execute(
        text("""
        SELECT r.name AS robot, e.deployment_id, e.started_at, e.received_at FROM episodes e
        LEFT JOIN robots r ON r.project_id = e.project_id AND r.id = e.robot_id
        WHERE e.project_id = :p AND e.domain IN ('real', 'shadow') AND e.started_at >= :since
        ORDER BY e.started_at DESC LIMIT :most
        """),
        {"p": project_id, "since": since, "most": most},
    ).mappings()
    return [RobotArrival(**row) for row in rows]


def sim_counts(connection: Connection, project_id: int, deployment_id: int, policy_id: int) -> tuple[int, int]:
    """Sim successes and n that a policy version is compared with at the task of a deployment: its baseline.

    The pinned simulator, or else the one with the most episodes: the same choice that the drop is shown with.
    """
    row = connection.execute(
        text("""
        SELECT sum(c.successes) AS successes, sum(c.successes + c.failures) AS n
        FROM rollup_counts c
        JOIN deployments d ON d.project_id = c.project_id AND d.id = :d AND d.task_id = c.task_id
        LEFT JOIN baselines b ON b.project_id = d.project_id AND b.deployment_id = d.id
        WHERE c.project_id = :p AND c.domain = 'sim' AND c.tier = 'month' AND c.policy_id = :policy
          AND (b.simulator_id IS NULL OR c.source_id = b.simulator_id)
        GROUP BY c.source_id ORDER BY n DESC, c.source_id LIMIT 1
        """),
        {"p": project_id, "d": deployment_id, "policy": policy_id},
    ).first()
    return (0, 0) if row is None else (int(row.successes), int(row.n))


def sim_cells(connection: Connection, project_id: int, deployment_id: int, policy_id: int) -> list[SimCell]:
    """The sim episodes of `sim_counts` by the levels of their conditions; none where their cells are too many."""
    rows = connection.execute(
        text("""
        SELECT x.levels, sum(c.successes) AS successes, sum(c.successes + c.failures) AS n
        FROM rollup_cells c
        JOIN cells x ON x.project_id = c.project_id AND x.id = c.cell_id
        JOIN deployments d ON d.project_id = c.project_id AND d.id = :d AND d.task_id = c.task_id
        WHERE c.project_id = :p AND c.domain = 'sim' AND c.tier = 'month' AND c.policy_id = :policy
          AND c.source_id = (
            SELECT k.source_id FROM rollup_counts k
            LEFT JOIN baselines b ON b.project_id = k.project_id AND b.deployment_id = :d
            WHERE k.project_id = :p AND k.domain = 'sim' AND k.tier = 'month' AND k.policy_id = :policy
              AND k.task_id = c.task_id AND (b.simulator_id IS NULL OR k.source_id = b.simulator_id)
            GROUP BY k.source_id ORDER BY sum(k.successes + k.failures) DESC, k.source_id LIMIT 1)
        GROUP BY x.levels LIMIT :most
        """),
        {"p": project_id, "d": deployment_id, "policy": policy_id, "most": MOST_SIM_CELLS + 1},
    ).all()
    if len(rows) > MOST_SIM_CELLS:
        return []
    return [SimCell(row.levels, int(row.successes), int(row.n)) for row in rows if row.n]


def progress(connection: Connection, project_id: int, deployment_id: int) -> WatchProgress:
    row = (
        connection.execute(
            text("""
            SELECT episodes, late, newest_started_at, newest_received_at, silent FROM watches
            WHERE project_id = :p AND deployment_id = :d
            """),
            {"p": project_id, "d": deployment_id},
        )
        .mappings()
        .first()
    )
    return WatchProgress() if row is None else WatchProgress(**row)


def save_progress(connection: Connection, project_id: int, deployment_id: int, now: WatchProgress) -> None:
    connection.execute(
        text(""" INSERT INTO watches (project_id, deployment_id, episodes, late, newest_started_at,
        newest_received_at, silent) VALUES (:p, :d, :episodes, :late, :started, :received, :silent) ON CONFLICT
        (project_id, deployment_id) DO UPDATE SET episodes = excluded.episodes, late = excluded.late,
            newest_started_at = excluded.newest_started_at, newest_received_at = excluded.newest_received_at,
            silent = excluded.silent, updated_at = now()
        """),
        {
            "p": project_id,
            "d": deployment_id,
            "episodes": now.episodes,
            "late": now.late,
            "started": now.newest_started_at,
            "received": now.newest_received_at,
            "silent": now.silent,
        },
    )


def oldest_due_s(connection: Connection) -> float:
    statement = text("SELECT extract(epoch FROM now() - min(created_at)) FROM watch_due")
    return float(connection.execute(statement).scalar() or 0)


def seen_episode(row: object) -> SeenEpisode:
    def named(names: str, values: str) -> dict[str, float]:
        return dict(zip(row[names] or (), row[values] or (), strict=True))  # type: ignore[index]

    plain = ("id", "started_at", "received_at", "outcome", "policy_id", "stage", "robot", "session", "reward")
    counts = ("duration_s", "violations", "interventions", "overrides")
    fields = {name: row[name] for name in (*plain, *counts)}  # type: ignore[index]
    return SeenEpisode(
        **fields,
        signals=named("signal_names", "signals"),
        metrics=named("metric_names", "metrics"),
        levels={name: level_of(value) for name, value in (row["levels"] or {}).items()},  # type: ignore[index]
    )


def now(connection: Connection) -> datetime:
    """Return the time of the transaction, by the clock that all processes share."""
    at: datetime = connection.execute(text("SELECT now()")).scalar_one()
    return at


def deployment_words(connection: Connection, project_id: int, deployment_id: int) -> dict[str, str | None]:
    row = connection.execute(
        text("""
        SELECT d.slug, p.name AS policy, p.version, t.name AS task, s.name AS site, d.stage FROM deployments d
        JOIN policies p ON p.project_id = d.project_id AND p.id = d.policy_id
        JOIN tasks t ON t.project_id = d.project_id AND t.id = d.task_id
        LEFT JOIN sites s ON s.project_id = d.project_id AND s.id = d.site_id
        WHERE d.project_id = :p AND d.id = :d
        """),
        {"p": project_id, "d": deployment_id},
    ).mappings()
    return dict(row.one())


@dataclass(frozen=True)
class LevelCount:
    condition: str
    level: str
    successes: int
    n: int


def levels_since(connection: Connection, project_id: int, deployment_id: int, since: datetime) -> list[LevelCount]:
    """Count the successes under each level of each condition since a time, of the newest episodes."""
    rows = connection.execute(
        text("""
        SELECT l.key, l.value, sum(e.k)::int AS successes, sum(e.n)::int AS n FROM (
            SELECT x.condition_set_id, count(*) FILTER (WHERE x.outcome = 'success') AS k, count(*) AS n FROM (
                SELECT condition_set_id, outcome FROM episodes
                WHERE project_id = :p AND deployment_id = :d AND domain = 'real' AND started_at >= :since
                  AND outcome IN ('success', 'failure')
                ORDER BY started_at DESC LIMIT :most) x
            GROUP BY x.condition_set_id) e
        JOIN condition_sets c ON c.project_id = :p AND c.id = e.condition_set_id
        CROSS JOIN LATERAL jsonb_each_text(c.levels) l
        GROUP BY l.key, l.value ORDER BY l.key, l.value
        """),
        {"p": project_id, "d": deployment_id, "since": since, "most": MOST_OF_LEVELS},
    )
    return [LevelCount(row.key, row.value, row.successes, row.n) for row in rows]
