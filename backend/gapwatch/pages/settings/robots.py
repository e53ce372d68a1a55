"""`/settings/robots`: where robots work, when they were heard, and who rests, is in repair or gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import cast, get_args

from starlette.responses import RedirectResponse, Response

from gapwatch.errors import NotFound
from gapwatch.incidents import robot_actions
from gapwatch.incidents.robot_actions import StatusWish
from gapwatch.pages.frame import View, Visit
from gapwatch.store.alerting import robot_statuses
from gapwatch.store.alerting.robot_statuses import ListedRobot, RobotChange, RobotPlace
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.read import directory
from gapwatch.watching.robot_status import MAY_END, RobotState
from gapwatch.watching.silence import NO_ROBOT

ROBOTS_A_PAGE = 100
UNTIL_SAID = "until somebody says so"
LASTING = {UNTIL_SAID: 0, "1 hour": 1, "4 hours": 4, "24 hours": 24, "7 days": 168, "30 days": 720}


@dataclass(frozen=True)
class RobotEntry:
    robot: ListedRobot
    # What people call it: robots of a deployment whose episodes name none are one entry.
    name: str


@dataclass(frozen=True)
class RobotsPage:
    robots: list[RobotEntry]
    deployment: str
    status: str
    next: str | None
    # One robot, with what was said about it.
    chosen: RobotEntry | None
    history: list[RobotChange]
    deployments: list[str]
    lasting: list[str]
    problem: str


class RobotHandlers:
    def __init__(self, nudge: Callable[[str], None]) -> None:
        self._nudge = nudge

    def show(self, visit: Visit) -> View:
        return _view(visit)

    def change(self, visit: Visit) -> View | Response:
        robot, act = visit.form.one("robot"), visit.form.one("act")
        if not robot_statuses.find_robot(visit.transaction, visit.project_id, robot):
            raise NotFound("There is no such robot.")
        if act == "move":
            problem = _move(visit, robot)
        elif act in get_args(RobotState):
            problem = _set(visit, robot, cast(RobotState, act))
        else:
            problem = "Choose what became of the robot."
        if problem:
            return _view(visit, problem)
        self._nudge("send")
        kept = {"deployment": visit.form.line("kept_deployment"), "status": visit.form.line("kept_status")}
        return RedirectResponse(visit.frame.links.to("settings", "robots", **kept, robot=robot), 303)


def _set(visit: Visit, robot: str, status: RobotState) -> str:
    lasting = visit.form.one("lasting", UNTIL_SAID)
    if lasting not in LASTING:
        return "Choose how long it lasts."
    hours = LASTING[lasting] if status in MAY_END else 0
    until = now(visit.transaction) + timedelta(hours=hours) if hours else None
    wish = StatusWish(status, until, visit.form.line("reason", 500) or None)
    robot_actions.set_status(visit.transaction, visit.project_id, robot, wish, visit.actor)
    return ""


def _move(visit: Visit, robot: str) -> str:
    found = directory.find_deployment(visit.transaction, visit.project_id, visit.form.line("deployment"))
    if found is None:
        return "There is no deployment of this name; the first real episode makes one."
    to, reason = RobotPlace(found.id, found.slug), visit.form.line("reason", 400) or None
    if not robot_actions.move_robot(visit.transaction, visit.project_id, robot, to, visit.actor, reason):
        return "No live episode of this robot has come yet; its first one says where it works."
    return ""


def _view(visit: Visit, problem: str = "") -> View:
    query = visit.request.query_params
    deployment, status = query.get("deployment", "")[:256], query.get("status", "")
    rows = robot_statuses.list_robots(
        visit.transaction,
        visit.project_id,
        after=_text(query.get("after", "")),
        deployment=_text(deployment) or None,
        limit=ROBOTS_A_PAGE + 1,
    )
    shown = rows[:ROBOTS_A_PAGE]
    chosen = _text(visit.form.one("robot") or query.get("robot", ""))
    found = robot_statuses.list_robots(visit.transaction, visit.project_id, only=chosen) if chosen else []
    page = RobotsPage(
        robots=[_entry(row) for row in shown if status in {"", row.status}],
        deployment=deployment,
        status=status if status in get_args(RobotState) else "",
        next=shown[-1].robot if len(rows) > len(shown) else None,
        chosen=_entry(found[0]) if found else None,
        history=robot_statuses.history_of(visit.transaction, visit.project_id, chosen) if found else [],
        deployments=[one.slug for one in directory.deployments(visit.transaction, visit.project_id)],
        lasting=list(LASTING),
        problem=problem,
    )
    return View("settings_robots.html", page, 422 if problem else 200)


def _entry(row: ListedRobot) -> RobotEntry:
    is_nameless = row.robot.startswith(NO_ROBOT)
    return RobotEntry(row, f"robots of {row.deployment} without a name" if is_nameless else row.robot)


def _text(value: str) -> str:
    return value.replace("\0", "")
