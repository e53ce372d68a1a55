"""SQL of robots: where each works, when it was heard, and what people and it itself said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit
from gapwatch.watching.robot_status import RobotState, RobotStatus

MOST_HISTORY = 50

_STATUS = "status, since, until, reason, actor, ends_when_heard"
# Robots of which something is known: heard live, spoken of, or named by a real episode of any age. The newest
# day of such episodes says where a robot works that was never heard live.
_ROBOTS = """
SELECT n.robot, d.slug AS deployment, x.heard_at, coalesce(x.live_episodes, 0) AS live_episodes,
       x.spool_oldest_at, s.status, s.since, s.until, s.reason, s.actor, s.ends_when_heard,
       a.id AS alert_id, a.incident_id, now() AS now
FROM (SELECT robot FROM presence WHERE project_id = :p
      UNION SELECT robot FROM robot_statuses WHERE project_id = :p
      UNION SELECT r.name FROM robots r WHERE r.project_id = :p AND r.id IN (
          SELECT robot_id FROM rollup_places WHERE project_id = :p AND domain IN ('real', 'shadow'))) n
LEFT JOIN presence x ON x.project_id = :p AND x.robot = n.robot
LEFT JOIN robot_statuses s ON s.project_id = :p AND s.robot = n.robot
LEFT JOIN LATERAL (
    SELECT l.source_id FROM robots r JOIN rollup_places l ON l.project_id = :p AND l.domain IN ('real', 'shadow')
        AND l.robot_id = r.id
    WHERE r.project_id = :p AND r.name = n.robot AND x.robot IS NULL ORDER BY l.bucket_at DESC LIMIT 1) h ON true
LEFT JOIN deployments d ON d.project_id = :p AND d.id = coalesce(x.deployment_id, h.source_id)
LEFT JOIN LATERAL (
    SELECT l.id, l.incident_id FROM alerts l WHERE l.project_id = :p AND l.deployment_id = d.id
        AND l.kind = 'no_data' AND l.series = 'robot:' || n.robot AND l.state <> 'resolved' LIMIT 1) a ON true
"""


@dataclass(frozen=True)
class ListedRobot:
    """A robot as people see it."""

    robot: str
    deployment: str | None
    heard_at: datetime | None
    live_episodes: int
    spool_oldest_at: datetime | None
    status: RobotState
    since: datetime | None
    until: datetime | None
    reason: str | None
    actor: str | None
    alert_id: int | None
    incident_id: int | None

    @classmethod
    def unheard(cls, robot: str) -> ListedRobot:
        """A robot of which nothing is known but its name: its episodes are not folded yet, or are simulated."""
        return cls(robot, None, None, 0, None, "working", None, None, None, None, None, None)


@dataclass(frozen=True)
class RobotChange:
    """A line of a robot's history."""

    at: datetime
    actor: str
    change: str
    until: datetime | None
    reason: str | None


@dataclass(frozen=True)
class RobotPlace:
    """The deployment that a robot was last heard at."""

    deployment_id: int
    deployment: str


def resting_robots(connection: Connection, project_id: int) -> set[str]:
    """Return the robots that are now parked, in repair or retired: nobody waits for them."""
    statement = text("""
    SELECT robot FROM robot_statuses
    WHERE project_id = :p AND status <> 'working' AND (until IS NULL OR until > now())
    """)
    return set(connection.scalars(statement, {"p": project_id}))


def at_work_since(connection: Connection, project_id: int) -> dict[str, datetime]:
    """Return since when robots that rested or moved are at work again: their silence counts from then."""
    rows = connection.execute(
        text(f"SELECT robot, now() AS now, {_STATUS} FROM robot_statuses WHERE project_id = :p"),  # noqa: S608
        {"p": project_id},
    ).mappings()
    since = {row["robot"]: _status(row).at_work_since(row["now"]) for row in rows}
    return {robot: at for robot, at in since.items() if at is not None}


def list_robots(
    connection: Connection,
    project_id: int,
    *,
    after: str = "",
    limit: int = 1000,
    deployment: str | None = None,
    only: str | None = None,
) -> list[ListedRobot]:
    """Return robots in the order of their names: those behind `after`, of one deployment, or only one."""
    rows = connection.execute(
        text(f"""
        {_ROBOTS} WHERE n.robot > :after AND (CAST(:slug AS text) IS NULL OR d.slug = :slug)
          AND (CAST(:only AS text) IS NULL OR n.robot = :only)
        ORDER BY n.robot LIMIT :limit
        """),
        {"p": project_id, "after": after, "slug": deployment, "only": only, "limit": limit},
    ).mappings()
    return [_listed(row) for row in rows]


def find_robot(connection: Connection, project_id: int, robot: str) -> bool:
    """Return whether the project has a robot of this name, however it was sent."""
    statement = text("""
    SELECT EXISTS (SELECT FROM robots WHERE project_id = :p AND name = :robot)
        OR EXISTS (SELECT FROM presence WHERE project_id = :p AND robot = :robot)
    """)
    return bool(connection.execute(statement, {"p": project_id, "robot": robot}).scalar_one())


def status_of(connection: Connection, project_id: int, robot: str) -> RobotStatus | None:
    """Return what was last said about a robot, locked against others who want to say something."""
    row = (
        connection.execute(
            text(f"SELECT {_STATUS} FROM robot_statuses WHERE project_id = :p AND robot = :robot FOR UPDATE"),  # noqa: S608
            {"p": project_id, "robot": robot},
        )
        .mappings()
        .first()
    )
    return None if row is None else _status(row)


def save_status(connection: Connection, project_id: int, robot: str, status: RobotStatus) -> None:
    """Store what is now said about a robot."""
    connection.execute(
        text("""
        INSERT INTO robot_statuses (project_id, robot, status, since, until, reason, actor, ends_when_heard)
        VALUES (:p, :robot, :status, :since, :until, :reason, :actor, :ends_when_heard)
        ON CONFLICT (project_id, robot) DO UPDATE SET status = excluded.status, since = excluded.since,
            until = excluded.until, reason = excluded.reason, actor = excluded.actor,
            ends_when_heard = excluded.ends_when_heard
        """),
        {"p": project_id, "robot": robot, **vars(status)},
    )


def write_history(connection: Connection, project_id: int, robot: str, change: RobotChange) -> None:
    """Add a line to the history of a robot, and to the audit trail."""
    connection.execute(
        text("""
        INSERT INTO robot_history (project_id, robot, at, actor, change, until, reason)
        VALUES (:p, :robot, :at, :actor, :change, :until, :reason)
        """),
        {"p": project_id, "robot": robot, **vars(change)},
    )
    audit(connection, project_id, change.actor, f"robot.{change.change}", f"robot/{robot}", reason=change.reason)


def history_of(connection: Connection, project_id: int, robot: str) -> list[RobotChange]:
    """Return the newest changes of a robot, newest first."""
    rows = connection.execute(
        text("""
        SELECT at, actor, change, until, reason FROM robot_history
        WHERE project_id = :p AND robot = :robot ORDER BY id DESC LIMIT :most
        """),
        {"p": project_id, "robot": robot, "most": MOST_HISTORY},
    ).mappings()
    return [RobotChange(**row) for row in rows]


def end_parked(connection: Connection, project_id: int, began: Mapping[str, datetime], actor: str) -> list[str]:
    """End what robots said of themselves once a live episode began after it; return those that work again.

    `began` has the newest beginning of each robot's live episodes. By the beginning and not the arrival: the last
    episode of a shift often arrives after the robot has said that it is parked.
    """
    if not began:
        return []
    robots = connection.scalars(
        text("""
        SELECT s.robot FROM robot_statuses s
        JOIN unnest(CAST(:robots AS text[]), CAST(:began AS timestamptz[])) AS e (robot, began_at) USING (robot)
        WHERE s.project_id = :p AND s.ends_when_heard AND s.status <> 'working' AND s.since < e.began_at
          AND (s.until IS NULL OR s.until > e.began_at)
        ORDER BY s.robot FOR UPDATE OF s
        """),
        {"p": project_id, "robots": list(began), "began": list(began.values())},
    ).all()
    for robot in robots:
        at_work = RobotStatus("working", began[robot], None, "heard sending", actor)
        save_status(connection, project_id, robot, at_work)
        write_history(
            connection, project_id, robot, RobotChange(began[robot], actor, "working", None, at_work.reason)
        )
    return list(robots)


def place_of(connection: Connection, project_id: int, robot: str) -> RobotPlace | None:
    """Return where a robot works by its presence; None if it was never heard live."""
    row = (
        connection.execute(
            text("""
            SELECT d.id AS deployment_id, d.slug AS deployment FROM presence x
            JOIN deployments d ON d.project_id = x.project_id AND d.id = x.deployment_id
            WHERE x.project_id = :p AND x.robot = :robot
            """),
            {"p": project_id, "robot": robot},
        )
        .mappings()
        .first()
    )
    return None if row is None else RobotPlace(**row)


def move_presence(connection: Connection, project_id: int, robot: str, deployment_id: int) -> None:
    connection.execute(
        text("""
        UPDATE presence SET deployment_id = :d, silence = NULL WHERE project_id = :p AND robot = :robot
        """),
        {"p": project_id, "robot": robot, "d": deployment_id},
    )


def forget_silence(connection: Connection, project_id: int, robot: str) -> None:
    """A robot that rests is not silent; when it works again, its silence is news again."""
    connection.execute(
        text("UPDATE presence SET silence = NULL WHERE project_id = :p AND robot = :robot"),
        {"p": project_id, "robot": robot},
    )


def robots_at_work(connection: Connection, project_id: int, deployment_id: int) -> int:
    """Count the robots of a deployment that are not resting, silent ones included."""
    statement = text("""
    SELECT count(*) FROM presence x WHERE x.project_id = :p AND x.deployment_id = :d AND NOT EXISTS (
        SELECT FROM robot_statuses s WHERE s.project_id = x.project_id AND s.robot = x.robot
          AND s.status <> 'working' AND (s.until IS NULL OR s.until > now()))
    """)
    return int(connection.execute(statement, {"p": project_id, "d": deployment_id}).scalar_one())


def _status(row: Mapping[Any, Any]) -> RobotStatus:
    return RobotStatus(
        row["status"], row["since"], row["until"], row["reason"], row["actor"], row["ends_when_heard"]
    )


def _listed(row: Mapping[Any, Any]) -> ListedRobot:
    stored = None if row["status"] is None else _status(row)
    status = "working" if stored is None else stored.at(row["now"])
    is_over = stored is not None and stored.status != status
    return ListedRobot(
        row["robot"],
        row["deployment"],
        row["heard_at"],
        row["live_episodes"],
        row["spool_oldest_at"],
        status,
        row["until"] if is_over else row["since"],
        None if is_over else row["until"],
        None if is_over else row["reason"],
        row["actor"],
        row["alert_id"],
        row["incident_id"],
    )
