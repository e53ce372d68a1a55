"""What people and robots do to robots: park, repair, retire, put back to work, move to another deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gapwatch.incidents.alert_moves import SERVICE, move_alert
from gapwatch.incidents.incident_lifecycle import close_if_over
from gapwatch.store.alerting import alert_transitions, events, robot_statuses
from gapwatch.store.alerting.robot_statuses import RobotChange, RobotPlace
from gapwatch.store.alerting.watch_queue import lock_deployment, now
from gapwatch.store.core.database import Connection
from gapwatch.watching.robot_status import SAID_BY_PEOPLE, RobotState, RobotStatus, objection
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import RobotArrival

_SAYING: dict[RobotState, str] = {
    "working": "back at work",
    "parked": "parked",
    "repair": "in repair",
    "retired": "retired",
}


@dataclass(frozen=True)
class StatusWish:
    """What shall be said about a robot. `age` is how long ago it was said: a robot may have been off line."""

    status: RobotState
    until: datetime | None = None
    reason: str | None = None
    age: timedelta = timedelta(0)


def set_status(
    connection: Connection, project_id: int, robot: str, wish: StatusWish, actor: str, *, by_robot: bool = False
) -> str | None:
    """Say that a robot works or rests. Return why that does not count, None if it does.

    One that rests is not silent: its silence alert is resolved, and its deployment's if no robot works there.
    """
    place = robot_statuses.place_of(connection, project_id, robot)
    if place is not None:
        lock_deployment(connection, project_id, place.deployment_id)
    at = now(connection)
    current = robot_statuses.status_of(connection, project_id, robot)
    reason_against = objection(current, said_at=at - wish.age, by_robot=by_robot, now=at)
    if reason_against is not None:
        return reason_against
    before = "working" if current is None else current.at(at)
    ends_when_heard = by_robot and wish.status == "parked"
    status = RobotStatus(wish.status, at - wish.age, wish.until, wish.reason, actor, ends_when_heard)
    robot_statuses.save_status(connection, project_id, robot, status)
    line = RobotChange(status.since, actor, wish.status, wish.until, wish.reason)
    robot_statuses.write_history(connection, project_id, robot, line)
    saying = _SAYING[wish.status] + (f": {wish.reason}" if wish.reason else "")
    if before != wish.status and {before, wish.status} & set(SAID_BY_PEOPLE):
        _record(connection, project_id, place, f"{robot} {saying}", robot, actor)
    if wish.status != "working" and place is not None:
        _end_silence(connection, project_id, place.deployment_id, robot, actor, f"{robot} is {saying}")
    return None


def move_robot(
    connection: Connection, project_id: int, robot: str, to: RobotPlace, actor: str, reason: str | None = None
) -> bool:
    """Let a robot belong to another deployment from now on; False if it was never heard live."""
    place = robot_statuses.place_of(connection, project_id, robot)
    if place is None:
        return False
    for deployment_id in sorted({place.deployment_id, to.deployment_id}):
        lock_deployment(connection, project_id, deployment_id)
    if place.deployment_id == to.deployment_id:
        return True
    at = now(connection)
    robot_statuses.move_presence(connection, project_id, robot, to.deployment_id)
    words = f"from {place.deployment} to {to.deployment}" + (f": {reason}" if reason else "")
    robot_statuses.write_history(connection, project_id, robot, RobotChange(at, actor, "moved", None, words))
    current = robot_statuses.status_of(connection, project_id, robot)
    if current is None or current.at(at) == "working":
        # Where it is new, its silence counts from now.
        at_work = RobotStatus("working", at, None, f"moved {words}"[:500], actor)
        robot_statuses.save_status(connection, project_id, robot, at_work)
    for deployment in (place, to):
        _record(connection, project_id, deployment, f"{robot} moved {words}", robot, actor)
    _end_silence(connection, project_id, place.deployment_id, robot, actor, f"{robot} moved {words}")
    return True


def note_at_work(
    connection: Connection, project_id: int, deployment_id: int, episodes: Sequence[SeenEpisode]
) -> None:
    """End what robots said of themselves when they are heard working."""
    began: dict[str, datetime] = {}
    for episode in episodes:
        arrival = RobotArrival(episode.robot, deployment_id, episode.started_at, episode.received_at)
        if arrival.is_live:
            began[arrival.sender] = max(began.get(arrival.sender, arrival.started_at), arrival.started_at)
    robot_statuses.end_parked(connection, project_id, began, SERVICE)


def _record(
    connection: Connection, project_id: int, place: RobotPlace | None, title: str, robot: str, actor: str
) -> None:
    """Put it on the time line: another set of robots may explain a change."""
    events.record_event(
        connection,
        project_id,
        kind="other",
        at=now(connection),
        title=title[:500],
        deployment_id=None if place is None else place.deployment_id,
        actor=actor,
        details={"robots": [robot]},
    )


def _end_silence(
    connection: Connection, project_id: int, deployment_id: int, robot: str, actor: str, comment: str
) -> None:
    robot_statuses.forget_silence(connection, project_id, robot)
    somebody_works = robot_statuses.robots_at_work(connection, project_id, deployment_id) > 0
    for alert in alert_transitions.open_alerts(connection, project_id, deployment_id):
        if alert.kind != "no_data":
            continue
        of_all_robots = not alert.series.startswith("robot:")
        if alert.series == f"robot:{robot}" or (of_all_robots and not somebody_works):
            move_alert(connection, project_id, alert, "resolve", actor, comment)
    close_if_over(connection, project_id, deployment_id, {"resolved_by": actor, "comment": comment})
