"""Robots that should be sending and are not, by the same rule live and in a replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from gapwatch.watching.kinds.no_data import NoDataParams

# An episode that arrives later than this after it began was not sent by a robot that is on line.
LIVE_WITHIN = timedelta(days=1)
# Stands for the robots of a deployment whose episodes name none.
NO_ROBOT = "@deployment:"


@dataclass(frozen=True)
class RobotPresence:
    """When and how often a robot was heard, and its longest gap so far."""

    robot: str
    deployment_id: int
    heard_at: datetime
    live_episodes: int
    longest_gap_s: float
    silent: bool = False


@dataclass(frozen=True)
class RobotArrival:
    """When an episode of a robot began and when it arrived."""

    robot: str | None
    deployment_id: int
    started_at: datetime
    received_at: datetime

    @property
    def is_live(self) -> bool:
        return self.received_at - self.started_at < LIVE_WITHIN

    @property
    def sender(self) -> str:
        return self.robot or f"{NO_ROBOT}{self.deployment_id}"


def hear(before: RobotPresence | None, robot: str, deployment_id: int, times: Sequence[datetime]) -> RobotPresence:
    """Update what is known of a robot with the times it was heard at."""
    points = ([before.heard_at] if before else []) + sorted(times)
    gaps = [(b - a).total_seconds() for a, b in pairwise(points)]
    # A silence that was an alert is no example of how long the robot is usually quiet.
    if before is not None and before.silent:
        gaps = gaps[1:]
    longest_gap_s = max([before.longest_gap_s if before else 0.0, *gaps])
    episodes = (before.live_episodes if before else 0) + len(times)
    return RobotPresence(robot, deployment_id, points[-1], episodes, longest_gap_s)


def silent_at(heard: RobotPresence, params: NoDataParams) -> datetime | None:
    """Return when a robot that stays quiet counts as silent; None while too little was heard of it."""
    if heard.live_episodes < params.min_episodes:
        return None
    allowed_s = max(60 * params.after_minutes, params.times_longest_gap * heard.longest_gap_s)
    return heard.heard_at + timedelta(seconds=allowed_s)


def is_silent(heard: RobotPresence, params: NoDataParams, now: datetime) -> bool:
    at = silent_at(heard, params)
    return at is not None and now > at


def silence_evidence(heard: RobotPresence) -> dict[str, Any]:
    return {
        "robot": "no robot" if heard.robot.startswith(NO_ROBOT) else heard.robot,
        "heard_at": heard.heard_at.isoformat().replace("+00:00", "Z"),
        "longest_gap_s": heard.longest_gap_s,
        "episodes": heard.live_episodes,
    }


def hearings_of(arrivals: Sequence[RobotArrival]) -> dict[str, list[tuple[datetime, int]]]:
    """When each robot was heard, and by which deployment, in order.

    By the arrival of its live episodes, as the clock hears it. A robot all of whose episodes came as history never
    was on line; it is taken to have been heard when each of them began.
    """
    by_robot: dict[str, list[RobotArrival]] = {}
    for arrival in arrivals:
        by_robot.setdefault(arrival.sender, []).append(arrival)
    hearings = {}
    for robot, arrivals_of_robot in by_robot.items():
        live = [(arrival.received_at, arrival.deployment_id) for arrival in arrivals_of_robot if arrival.is_live]
        hearings[robot] = sorted(
            live or [(arrival.started_at, arrival.deployment_id) for arrival in arrivals_of_robot]
        )
    return hearings
