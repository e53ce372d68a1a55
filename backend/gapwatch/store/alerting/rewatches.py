"""Rows of deployments whose history is to be taken in order again, and of the imports that brought it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from gapwatch.store.alerting.watch_queue import EPISODES, seen_episode
from gapwatch.watching.history import IMPORT_PAUSES, MOST_EPISODES, REST_FACTOR, REST_S, Restart
from gapwatch.watching.series import SeenEpisode

# Deployments of one round.
MOST_AT_ONCE = 500


@dataclass
class Rewatch:
    """What waits of a deployment. `due_at` is None while nothing does."""

    due_at: datetime | None = None
    is_import: bool = False
    episodes: int = 0
    live_robots: list[str] = field(default_factory=list)
    last_at: datetime | None = None
    last_import_at: datetime | None = None
    done_at: datetime | None = None
    took_s: float = 0.0
    times: int = 0


class RewatchPlace(NamedTuple):
    project_id: int
    deployment_id: int


def rewatch_of(connection: Connection, project_id: int, deployment_id: int) -> Rewatch:
    row = (
        connection.execute(
            text("""
            SELECT due_at, is_import, episodes, live_robots, last_at, last_import_at, done_at, took_s, times
            FROM rewatches WHERE project_id = :p AND deployment_id = :d
            """),
            {"p": project_id, "d": deployment_id},
        )
        .mappings()
        .first()
    )
    return Rewatch() if row is None else Rewatch(**row)


def save_rewatch(connection: Connection, project_id: int, deployment_id: int, now: Rewatch) -> None:
    connection.execute(
        text("""
        INSERT INTO rewatches (project_id, deployment_id, due_at, is_import, episodes, live_robots, last_at,
                               last_import_at, done_at, took_s, times)
        VALUES (:p, :d, :due_at, :is_import, :episodes, :live_robots, coalesce(:last_at, now()), :last_import_at,
                :done_at, :took_s, :times)
        ON CONFLICT (project_id, deployment_id) DO UPDATE SET due_at = excluded.due_at,
            is_import = excluded.is_import, episodes = excluded.episodes, live_robots = excluded.live_robots,
            last_at = excluded.last_at, last_import_at = excluded.last_import_at, done_at = excluded.done_at,
            took_s = excluded.took_s, times = excluded.times
        """),
        {"p": project_id, "d": deployment_id, **now.__dict__},
    )


# When its time has come, or when an import is at rest.
_IS_DUE = """
due_at IS NOT NULL AND (due_at <= now() OR (
    is_import AND last_at < now() - greatest(:rest_s, :rest_factor * took_s) * interval '1 second'))
"""
_REST = {"rest_s": REST_S, "rest_factor": REST_FACTOR}


def due_rewatches(connection: Connection) -> list[RewatchPlace]:
    """Those that wait longest of each project, projects in turn: an import of one keeps no other waiting."""
    rows = connection.execute(
        text(f"""
        SELECT project_id, deployment_id FROM (
            SELECT project_id, deployment_id, row_number() OVER (PARTITION BY project_id
                ORDER BY due_at, deployment_id) AS place
            FROM rewatches WHERE {_IS_DUE}) due
        ORDER BY place, project_id LIMIT :most
        """),  # noqa: S608
        {**_REST, "most": MOST_AT_ONCE},
    ).mappings()
    return [RewatchPlace(**row) for row in rows]


def due_rewatch(connection: Connection, project_id: int, deployment_id: int) -> Rewatch | None:
    """What is due of a deployment; None if somebody else has done it in the meantime."""
    is_due = connection.execute(
        text(f"SELECT 1 FROM rewatches WHERE project_id = :p AND deployment_id = :d AND {_IS_DUE}"),  # noqa: S608
        {"p": project_id, "d": deployment_id, **_REST},
    ).first()
    return None if is_due is None else rewatch_of(connection, project_id, deployment_id)


def robots_heard(connection: Connection, project_id: int, deployment_id: int) -> list[str]:
    """The robots that have sent live episodes to a deployment."""
    return list(
        connection.scalars(
            text("SELECT robot FROM presence WHERE project_id = :p AND deployment_id = :d ORDER BY robot"),
            {"p": project_id, "d": deployment_id},
        )
    )


def has_imports(connection: Connection, project_id: int) -> bool:
    """Whether history is being imported, or was just now."""
    return bool(
        connection.execute(
            text("""
            SELECT EXISTS (SELECT 1 FROM rewatches
                           WHERE project_id = :p AND last_import_at > now() - CAST(:pauses AS interval))
            """),
            {"p": project_id, "pauses": IMPORT_PAUSES},
        ).scalar_one()
    )


def deployments_simulated_by(connection: Connection, project_id: int, episode_ids: list[str]) -> list[int]:
    """The deployments that history is imported into and whose simulation these episodes are."""
    return list(
        connection.scalars(
            text("""
            SELECT DISTINCT d.id FROM rewatches r
            JOIN deployments d ON d.project_id = r.project_id AND d.id = r.deployment_id
            JOIN episodes e ON e.project_id = d.project_id AND e.task_id = d.task_id AND e.domain = 'sim'
            WHERE r.project_id = :p AND r.last_import_at > now() - CAST(:pauses AS interval) AND e.id = ANY(:ids)
            ORDER BY 1
            """),
            {"p": project_id, "ids": episode_ids, "pauses": IMPORT_PAUSES},
        )
    )


def episodes_in_order(connection: Connection, project_id: int, deployment_id: int) -> list[SeenEpisode]:
    """The newest episodes of a deployment that the watch has come to, by their own time.

    Whoever asks is the project's only watcher: what is not in a queue after the episodes were read was watched.
    """
    rows = (
        connection.execute(
            text(f"{EPISODES} AND e.deployment_id = :d ORDER BY e.started_at DESC, e.id DESC LIMIT :most"),
            {"p": project_id, "d": deployment_id, "most": MOST_EPISODES},
        )
        .mappings()
        .all()
    )
    waiting = set(
        connection.scalars(
            text("""
            SELECT unnest(episode_ids) FROM watch_due WHERE project_id = :p
            UNION ALL
            SELECT unnest(episode_ids) FROM work
            WHERE project_id = :p AND kind = 'fold' AND sign = 1 AND revision = 1
            """),
            {"p": project_id},
        )
    )
    return [seen_episode(row) for row in reversed(rows) if row["id"] not in waiting]


def restarts_of(connection: Connection, project_id: int, deployment_id: int) -> list[Restart]:
    """When people resolved alerts of a deployment: their detectors began anew then."""
    rows = connection.execute(
        text("""
        SELECT t.at, a.rule, a.series FROM alerts a
        JOIN alert_transitions t ON t.project_id = a.project_id AND t.alert_id = a.id AND t.input = 'resolve'
        WHERE a.project_id = :p AND a.deployment_id = :d ORDER BY t.at, t.id
        """),
        {"p": project_id, "d": deployment_id},
    ).mappings()
    return [Restart(**row) for row in rows]


def forget_detectors(connection: Connection, project_id: int, deployment_id: int) -> None:
    connection.execute(
        text("DELETE FROM detectors WHERE project_id = :p AND deployment_id = :d"),
        {"p": project_id, "d": deployment_id},
    )


def open_backfill(connection: Connection, project_id: int) -> int:
    """The import that is going on in a project; it may be new."""
    known = connection.execute(
        text("SELECT id FROM backfills WHERE project_id = :p AND closed_at IS NULL"), {"p": project_id}
    ).scalar()
    if known is None:
        known = connection.execute(
            text("INSERT INTO backfills (project_id) VALUES (:p) RETURNING id"), {"p": project_id}
        ).scalar_one()
    return int(known)


def note_import(connection: Connection, project_id: int, episodes: int) -> None:
    connection.execute(
        text("""
        UPDATE backfills SET last_at = now(), episodes = episodes + :n WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": open_backfill(connection, project_id), "n": episodes},
    )


@dataclass(frozen=True)
class Backfill:
    project_id: int
    id: int
    began_at: datetime
    episodes: int


def finished_backfills(connection: Connection, quiet_s: float, at_most_every_s: float) -> list[Backfill]:
    """Imports that nothing came to for a while and whose history is in order; at most one line in a while."""
    rows = connection.execute(
        text("""
        SELECT b.project_id, b.id, b.began_at, b.episodes FROM backfills b
        WHERE b.closed_at IS NULL AND b.last_at < now() - :quiet * interval '1 second'
          AND NOT EXISTS (SELECT 1 FROM rewatches r
                          WHERE r.project_id = b.project_id AND r.is_import AND r.due_at IS NOT NULL)
          AND NOT EXISTS (SELECT 1 FROM backfills told WHERE told.project_id = b.project_id
                          AND told.told_at > now() - :every * interval '1 second')
        ORDER BY b.project_id
        """),
        {"quiet": quiet_s, "every": at_most_every_s},
    ).mappings()
    return [Backfill(**row) for row in rows]


def close_backfill(connection: Connection, backfill: Backfill, *, is_told: bool) -> bool:
    """Close an import; False if somebody else has."""
    row = connection.execute(
        text("""
        UPDATE backfills SET closed_at = now(), told_at = CASE WHEN :told THEN now() END
        WHERE project_id = :p AND id = :id AND closed_at IS NULL RETURNING id
        """),
        {"p": backfill.project_id, "id": backfill.id, "told": is_told},
    ).first()
    return row is not None


class BackfillIncident(NamedTuple):
    id: int
    deployment_id: int
    severity: str
    changed_at: datetime
    is_from_start: bool


def incidents_of_backfill(connection: Connection, backfill: Backfill) -> list[BackfillIncident]:
    """What is open of an import, the newest change first. `is_from_start`: it was so from the first day."""
    rows = connection.execute(
        text("""
        SELECT id, deployment_id, severity, changed_at, is_from_start FROM (
            SELECT i.id, i.deployment_id, i.severity, coalesce(i.changed_at, i.opened_at) AS changed_at,
                   coalesce((i.content ->> 'from_start')::boolean, false) AS is_from_start
            FROM incidents i
            WHERE i.project_id = :p AND i.backfill_id = :id AND i.state <> 'resolved' AND i.paged_at IS NULL) x
        ORDER BY changed_at DESC, id
        """),
        {"p": backfill.project_id, "id": backfill.id},
    ).mappings()
    return [BackfillIncident(**row) for row in rows]


def finish_lines(connection: Connection) -> list[tuple[int, int]]:
    """Mark imports whose open incidents are all over by now; return project and id of each."""
    rows = connection.execute(
        text("""
        UPDATE backfills b SET over_at = now()
        WHERE b.told_at IS NOT NULL AND b.over_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM incidents i
            WHERE i.project_id = b.project_id AND i.backfill_id = b.id AND i.state <> 'resolved')
        RETURNING b.project_id, b.id
        """)
    )
    return [(row.project_id, row.id) for row in rows]
