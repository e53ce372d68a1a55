"""What a person may do in a project: each role may do what the one before it may."""

from __future__ import annotations

from typing import Literal

Role = Literal["viewer", "engineer", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "engineer", "admin")

WHAT_ROLES_DO = {
    "viewer": "reads everything",
    "engineer": "also labels episodes, answers alerts, decides about rollouts, and changes rules, robots, "
    "calendars and baselines",
    "admin": "also overrides gates, and manages members, keys, channels and the taxonomy",
}


def allows(held: str, needed: Role) -> bool:
    return held in ROLES and ROLES.index(held) >= ROLES.index(needed)
