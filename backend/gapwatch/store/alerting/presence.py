"""Rows of robots and of deployments, by when each was last heard, with their rhythm as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.core import uptime
from gapwatch.watching.rhythm import GAPS_KEPT_S, ExcusedSpan, Rhythm
from gapwatch.watching.silence import Outage, SenderPresence

# What a sender said of its spool counts for a while only: the process that heard it may not be the one that hears
# that it has caught up. Ingest writes it.
_ROBOT = """
SELECT robot, deployment_id, heard_at, live_episodes, rhythm, silence,
       CASE WHEN spool_told_at > now() - interval '15 minutes' THEN spool_oldest_at END AS spool_oldest_at
FROM presence WHERE project_id = :p
"""
_DEPLOYMENT = """
SELECT NULL AS robot, deployment_id, heard_at, live_episodes, rhythm, silence, NULL AS spool_oldest_at
FROM deployment_presence WHERE project_id = :p
"""
# Accepted so long ago and not watched yet: whom we seem not to hear may be waiting in there.
_BEHIND = text("""
SELECT EXISTS (SELECT 1 FROM watch_due WHERE project_id = :p AND accepted_at < now() - interval '2 minutes')
    OR EXISTS (SELECT 1 FROM work WHERE project_id = :p AND kind = 'fold' AND attempts = 0
               AND created_at < now() - interval '2 minutes')
""")
# Robots of a deployment that are looked at when it is quiet: a rhythm each, and names may be made up.
MOST_MEMBERS = 1000


@dataclass(frozen=True)
class Wanted:
    """Whose silence may be news by some rule: quiet for so long, and known by so many episodes."""

    quiet_for: timedelta
    episodes: int


def robots_named(connection: Connection, project_id: int, names: Collection[str]) -> dict[str, SenderPresence]:
    rows = connection.execute(
        text(f"{_ROBOT} AND robot = ANY(:names)"), {"p": project_id, "names": sorted(names)}
    ).mappings()
    return {row["robot"]: _presence(row) for row in rows}


def robots_of(
    connection: Connection, project_id: int, deployment_ids: Collection[int], since: datetime
) -> dict[int, list[SenderPresence]]:
    """Robots heard since a time, by the deployment where they work; of each those heard last."""
    rows = connection.execute(
        text(f"""
        SELECT r.* FROM unnest(CAST(:ids AS int[])) AS d (id) CROSS JOIN LATERAL (
            {_ROBOT} AND deployment_id = d.id AND heard_at >= :since ORDER BY heard_at DESC, robot LIMIT :most) r
        """),  # noqa: S608 - text of ours
        {"p": project_id, "ids": sorted(deployment_ids), "since": since, "most": MOST_MEMBERS},
    )
    found: dict[int, list[SenderPresence]] = {}
    for row in rows.mappings():
        found.setdefault(row["deployment_id"], []).append(_presence(row))
    return found


def missed_robots(
    connection: Connection, project_id: int, since: datetime, wanted: Wanted
) -> list[tuple[SenderPresence, datetime]]:
    """Robots, heard since a time, that are quiet while their deployment is heard, and when that was."""
    rows = connection.execute(
        text(f"""
        SELECT r.*, d.heard_at AS others_at FROM ({_ROBOT} AND silence IS NULL AND heard_at >= :since
            AND heard_at < now() - CAST(:quiet AS interval) AND live_episodes >= :episodes) r
        JOIN deployment_presence d ON d.project_id = :p AND d.deployment_id = r.deployment_id
        WHERE d.heard_at > r.heard_at ORDER BY r.deployment_id, r.robot
        """),  # noqa: S608 - text of ours
        {"p": project_id, "since": since, "quiet": wanted.quiet_for, "episodes": wanted.episodes},
    )
    return [(_presence(row), row["others_at"]) for row in rows.mappings()]


def deployment(connection: Connection, project_id: int, deployment_id: int) -> SenderPresence | None:
    rows = connection.execute(text(f"{_DEPLOYMENT} AND deployment_id = :d"), {"p": project_id, "d": deployment_id})
    row = rows.mappings().first()
    return None if row is None else _presence(row)


def quiet_deployments(connection: Connection, project_id: int, wanted: Wanted) -> list[SenderPresence]:
    rows = connection.execute(
        text(f"""
        {_DEPLOYMENT} AND heard_at < now() - CAST(:quiet AS interval) AND live_episodes >= :episodes
        ORDER BY deployment_id
        """),
        {"p": project_id, "quiet": wanted.quiet_for, "episodes": wanted.episodes},
    )
    return [_presence(row) for row in rows.mappings()]


def has_quiet_senders(connection: Connection, project_id: int, quiet_for: timedelta) -> bool:
    """Whether anybody has been quiet for so long: most of the time nobody has, and this is all that is asked."""
    statement = text("""
    SELECT EXISTS (SELECT 1 FROM deployment_presence
                   WHERE project_id = :p AND heard_at < now() - CAST(:quiet AS interval))
        OR EXISTS (SELECT 1 FROM presence
                   WHERE project_id = :p AND heard_at < now() - CAST(:quiet AS interval))
    """)
    return bool(connection.execute(statement, {"p": project_id, "quiet": quiet_for}).scalar_one())


def is_behind(connection: Connection, project_id: int) -> bool:
    return bool(connection.execute(_BEHIND, {"p": project_id}).scalar_one())


def save(connection: Connection, project_id: int, senders: Sequence[SenderPresence]) -> None:
    """Store what is known of robots and deployments, each in its table."""
    robots = [_columns(project_id, sender) for sender in senders if sender.robot is not None]
    if robots:
        connection.execute(
            text("""
            INSERT INTO presence (project_id, robot, deployment_id, heard_at, live_episodes, rhythm, silence)
            VALUES (:p, :robot, :d, :heard_at, :n, CAST(:rhythm AS jsonb), :silence)
            ON CONFLICT (project_id, robot) DO UPDATE SET deployment_id = excluded.deployment_id,
                heard_at = excluded.heard_at, live_episodes = excluded.live_episodes, rhythm = excluded.rhythm,
                silence = excluded.silence
            """),
            robots,
        )
    places = [_columns(project_id, sender) for sender in senders if sender.robot is None]
    if places:
        connection.execute(
            text("""
            INSERT INTO deployment_presence (project_id, deployment_id, heard_at, live_episodes, rhythm, silence)
            VALUES (:p, :d, :heard_at, :n, CAST(:rhythm AS jsonb), :silence)
            ON CONFLICT (project_id, deployment_id) DO UPDATE SET heard_at = excluded.heard_at,
                live_episodes = excluded.live_episodes, rhythm = excluded.rhythm, silence = excluded.silence
            """),
            places,
        )


def projects_listened_to(connection: Connection) -> list[int]:
    return list(
        connection.scalars(text("SELECT DISTINCT project_id FROM deployment_presence ORDER BY project_id"))
    )


def outages(connection: Connection, now: datetime) -> list[ExcusedSpan]:
    """When the service was away, with the time that senders had to catch up."""
    since = now - timedelta(seconds=GAPS_KEPT_S)
    return [Outage(start, end).excused for start, end in uptime.absences(connection, since, now)]


def _presence(row: Any) -> SenderPresence:
    heard_at = row["heard_at"].timestamp()
    stored = row["rhythm"]
    # Of robots that were heard before rhythms were learned nothing is known but when.
    rhythm = Rhythm.begin(heard_at) if stored is None else Rhythm.from_json({**stored, "heard_at": heard_at})
    return SenderPresence(
        row["robot"], row["deployment_id"], rhythm, row["live_episodes"], row["silence"], row["spool_oldest_at"]
    )


def _columns(project_id: int, sender: SenderPresence) -> dict[str, Any]:
    rhythm = sender.rhythm.to_json()
    del rhythm["heard_at"]
    return {
        "p": project_id,
        "robot": sender.robot,
        "d": sender.deployment_id,
        "heard_at": sender.heard_at,
        "n": sender.live_episodes,
        "rhythm": json.dumps(rhythm),
        "silence": sender.silence,
    }
