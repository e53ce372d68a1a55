"""Rows of detectors, state and parameters as JSON; and of robots, by when each was last heard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, text

from gapwatch.watching import silence
from gapwatch.watching.detector_run import StoredDetector
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import RobotArrival, RobotPresence

_PRESENCE = """
SELECT robot, deployment_id, heard_at, live_episodes, longest_gap_s, silent FROM presence WHERE project_id = :p
"""


def load(connection: Connection, project_id: int, deployment_id: int) -> dict[tuple[str, str], StoredDetector]:
    rows = connection.execute(
        text("""
        SELECT rule, series, params, state, restart FROM detectors WHERE project_id = :p AND deployment_id = :d
        """),
        {"p": project_id, "d": deployment_id},
    )
    return {(row.rule, row.series): StoredDetector(row.params, row.state, row.restart) for row in rows}


def save(
    connection: Connection, project_id: int, deployment_id: int, states: Mapping[tuple[str, str], StoredDetector]
) -> None:
    if not states:
        return
    connection.execute(
        text("""
        INSERT INTO detectors (project_id, deployment_id, rule, series, params, state)
        VALUES (:p, :d, :rule, :series, CAST(:params AS jsonb), CAST(:state AS jsonb))
        ON CONFLICT (project_id, deployment_id, rule, series) DO UPDATE
        SET params = excluded.params, state = excluded.state, restart = false, updated_at = now()
        """),
        [
            {
                "p": project_id,
                "d": deployment_id,
                "rule": rule,
                "series": series,
                "params": json.dumps(stored.params),
                "state": json.dumps(stored.state),
            }
            for (rule, series), stored in sorted(states.items())
        ],
    )


def restart(connection: Connection, project_id: int, deployment_id: int, rule: str, series: str) -> None:
    """Mark a detector to start over, because a person resolved its alert."""
    connection.execute(
        text("""
        UPDATE detectors SET restart = true
        WHERE project_id = :p AND deployment_id = :d AND rule = :rule AND series = :series
        """),
        {"p": project_id, "d": deployment_id, "rule": rule, "series": series},
    )


def drop(connection: Connection, project_id: int, rule: str) -> None:
    """Delete the detectors of a rule."""
    connection.execute(
        text("DELETE FROM detectors WHERE project_id = :p AND rule = :rule"), {"p": project_id, "rule": rule}
    )


def hear(
    connection: Connection, project_id: int, deployment_id: int, episodes: Sequence[SeenEpisode]
) -> list[str]:
    """Note when robots were heard; return those that had been silent."""
    arrivals: dict[str, list[datetime]] = {}
    for episode in episodes:
        arrival = RobotArrival(episode.robot, deployment_id, episode.started_at, episode.received_at)
        if arrival.is_live:
            arrivals.setdefault(arrival.sender, []).append(arrival.received_at)
    if not arrivals:
        return []
    rows = connection.execute(
        text(f"{_PRESENCE} AND robot = ANY(:robots)"), {"p": project_id, "robots": sorted(arrivals)}
    ).mappings()
    known = {row["robot"]: RobotPresence(**row) for row in rows}
    heard = [
        silence.hear(known.get(robot), robot, deployment_id, times) for robot, times in sorted(arrivals.items())
    ]
    connection.execute(
        text("""
        INSERT INTO presence AS x (project_id, robot, deployment_id, heard_at, live_episodes, longest_gap_s)
        VALUES (:p, :robot, :d, :at, :n, :gap)
        ON CONFLICT (project_id, robot) DO UPDATE SET deployment_id = excluded.deployment_id,
            heard_at = greatest(x.heard_at, excluded.heard_at), live_episodes = excluded.live_episodes,
            longest_gap_s = excluded.longest_gap_s, silent = false
        """),
        [
            {
                "p": project_id,
                "robot": presence.robot,
                "d": presence.deployment_id,
                "at": presence.heard_at,
                "n": presence.live_episodes,
                "gap": presence.longest_gap_s,
            }
            for presence in heard
        ],
    )
    return sorted(robot for robot, before in known.items() if before.silent)


def quiet_robots(connection: Connection, project_id: int, quiet_for: timedelta) -> list[RobotPresence]:
    """Return the robots that have been quiet for so long and are not marked silent."""
    rows = connection.execute(
        text(f"{_PRESENCE} AND NOT silent AND heard_at < now() - CAST(:quiet AS interval)"),
        {"p": project_id, "quiet": quiet_for},
    ).mappings()
    return [RobotPresence(**row) for row in rows]


def projects_with_robots(connection: Connection) -> list[int]:
    return list(connection.scalars(text("SELECT DISTINCT project_id FROM presence WHERE NOT silent")))


def mark_silent(connection: Connection, project_id: int, robot: str) -> None:
    connection.execute(
        text("UPDATE presence SET silent = true WHERE project_id = :p AND robot = :robot"),
        {"p": project_id, "robot": robot},
    )


def speaking_robots(connection: Connection, project_id: int, deployment_id: int) -> int:
    """Count the robots of a deployment that are not silent."""
    return int(
        connection.execute(
            text("SELECT count(*) FROM presence WHERE project_id = :p AND deployment_id = :d AND NOT silent"),
            {"p": project_id, "d": deployment_id},
        ).scalar_one()
    )
