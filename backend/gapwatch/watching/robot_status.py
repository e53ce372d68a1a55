"""What is said about a robot: it works, is parked, in repair or retired. Decides; the store writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

RobotState = Literal["working", "parked", "repair", "retired"]
# What a robot may say of itself. That it is broken or gone is for people to say, and to take back.
SAID_BY_ROBOTS: tuple[RobotState, ...] = ("working", "parked")
SAID_BY_PEOPLE: tuple[RobotState, ...] = ("repair", "retired")
# Retired is for good; the others may end by themselves.
MAY_END: tuple[RobotState, ...] = ("parked", "repair")


@dataclass(frozen=True)
class RobotStatus:
    """What was last said about a robot, when and by whom."""

    status: RobotState
    since: datetime
    until: datetime | None
    reason: str | None
    actor: str
    ends_when_heard: bool = False

    def at(self, now: datetime) -> RobotState:
        """Return the status at a time: one that has an end is over by itself."""
        return "working" if self.until is not None and self.until <= now else self.status

    def at_work_since(self, now: datetime) -> datetime | None:
        """Return since when the robot works again; None while it rests. Its silence counts from then."""
        if self.status == "working":
            return self.since
        return self.until if self.at(now) == "working" else None


def objection(
    current: RobotStatus | None, *, said_at: datetime, by_robot: bool, now: datetime
) -> Literal["older", "set by people"] | None:
    """Return why a statement does not count: a newer one stands, or people said what a robot cannot take back."""
    if current is None:
        return None
    if said_at < current.since:
        return "older"
    return "set by people" if by_robot and current.at(now) in SAID_BY_PEOPLE else None
