"""What detectors know, as JSON beside their parameters; and when robots were last heard of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from sqlalchemy import Connection, text

from gapwatch.watching.series import Seen
from gapwatch.watching.watched import Stored

# An episode that arrives later than this after it began was not sent by a robot that is on line.
LIVE_WITHIN = timedelta(days=1)
# Stands for the robots of a deployment whose episodes name none.
NO_ROBOT = "@deployment:"


def load(connection: Connection, project_id: int, deployment_id: int) -> dict[tuple[str, str], Stored]:
    rows = connection.execute(
        text("""
        SELECT rule, series, params, state, restart FROM detectors WHERE project_id = :p AND deployment_id = :d
        """),
        {"p": project_id, "d": deployment_id},
    )
    return {(row.rule, row.series): Stored(row.params, row.state, row.restart) for row in rows}


def save(
    connection: Connection, project_id: int, deployment_id: int, states: Mapping[tuple[str, str], Stored]
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
    """A person said that it is over: the detector looks for evidence anew."""
    connection.execute(
        text("""
        UPDATE detectors SET restart = true
        WHERE project_id = :p AND deployment_id = :d AND rule = :rule AND series = :series
        """),
        {"p": project_id, "d": deployment_id, "rule": rule, "series": series},
    )


def drop(connection: Connection, project_id: int, rule: str) -> None:
    """A rule is gone: so is what it knew."""
    connection.execute(
        text("DELETE FROM detectors WHERE project_id = :p AND rule = :rule"), {"p": project_id, "rule": rule}
    )


@dataclass(frozen=True)
class Heard:
    """A robot that was sending."""

    robot: str
    deployment_id: int
    heard_at: datetime
    live_episodes: int
    longest_gap_s: float
    silent: bool


def hear(connection: Connection, project_id: int, deployment_id: int, episodes: Sequence[Seen]) -> list[str]:
    """Note the robots behind these episodes; returns those that had been silent."""
    arrivals: dict[str, list[datetime]] = {}
    for episode in episodes:
        if episode.received_at - episode.started_at < LIVE_WITHIN:
            arrivals.setdefault(episode.robot or f"{NO_ROBOT}{deployment_id}", []).append(episode.received_at)
    if not arrivals:
        return []
    known = {
        row.robot: row
        for row in connection.execute(
            text("""
            SELECT robot, heard_at, longest_gap_s, silent FROM presence WHERE project_id = :p AND robot = ANY(:r)
            """),
            {"p": project_id, "r": sorted(arrivals)},
        )
    }
    rows = []
    for robot, times in sorted(arrivals.items()):
        before = known.get(robot)
        points = ([before.heard_at] if before else []) + sorted(times)
        gaps = [(b - a).total_seconds() for a, b in pairwise(points)]
        # A silence that was an alert is no example of how long the robot is usually quiet.
        if before is not None and before.silent:
            gaps = gaps[1:]
        longest = max([before.longest_gap_s if before else 0.0, *gaps])
        rows.append(
            {
                "p": project_id,
                "robot": robot,
                "d": deployment_id,
                "at": points[-1],
                "n": len(times),
                "gap": longest,
            }
        )
    connection.execute(
        text("""
        INSERT INTO presence AS x (project_id, robot, deployment_id, heard_at, live_episodes, longest_gap_s)
        VALUES (:p, :robot, :d, :at, :n, :gap)
        ON CONFLICT (project_id, robot) DO UPDATE SET deployment_id = excluded.deployment_id,
            heard_at = greatest(x.heard_at, excluded.heard_at), live_episodes = x.live_episodes +
            excluded.live_episodes, longest_gap_s = excluded.longest_gap_s, silent = false
        """),
        rows,
    )
    return sorted(robot for robot, before in known.items() if before.silent)


def quiet_robots(connection: Connection, project_id: int, quiet_for: timedelta) -> list[Heard]:
    """Robots not heard of for at least so long and not yet called silent."""
    rows = connection.execute(
        text("""
        SELECT robot, deployment_id, heard_at, live_episodes, longest_gap_s, silent FROM presence
        WHERE project_id = :p AND NOT silent AND heard_at < now() - CAST(:quiet AS interval)
        """),
        {"p": project_id, "quiet": quiet_for},
    )
    return [Heard(*row) for row in rows]


def projects_with_robots(connection: Connection) -> list[int]:
    return list(connection.scalars(text("SELECT DISTINCT project_id FROM presence WHERE NOT silent")))


def mark_silent(connection: Connection, project_id: int, robot: str) -> None:
    connection.execute(
        text("UPDATE presence SET silent = true WHERE project_id = :p AND robot = :robot"),
        {"p": project_id, "robot": robot},
    )


def speaking_robots(connection: Connection, project_id: int, deployment_id: int) -> int:
    """How many robots of a deployment are not silent."""
    return int(
        connection.execute(
            text("SELECT count(*) FROM presence WHERE project_id = :p AND deployment_id = :d AND NOT silent"),
            {"p": project_id, "d": deployment_id},
        ).scalar_one()
    )
