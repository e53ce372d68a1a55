"""What people and robots say about robots, and the hours in which a deployment works."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import Base, CreatedAt, ProjectId, RowId, Time, Word, one_of

ROBOT_STATUSES = ("working", "parked", "repair", "retired")


class RobotStatusTable(Base):
    """What was last said about a robot. One without a row works, as one whose `until` has passed."""

    __tablename__ = "robot_statuses"
    __table_args__ = (one_of("status", *ROBOT_STATUSES),)

    project_id: Mapped[ProjectId]
    robot: Mapped[Word] = mapped_column(primary_key=True)
    status: Mapped[Word]
    since: Mapped[CreatedAt]
    until: Mapped[Time | None]
    reason: Mapped[str | None]
    actor: Mapped[Word]
    # Said by the robot itself: its next live episode ends it.
    ends_when_heard: Mapped[bool] = mapped_column(server_default=text("false"))


class RobotHistoryTable(Base):
    """Every status that a robot was given, and every move to another deployment."""

    __tablename__ = "robot_history"
    __table_args__ = (
        one_of("change", *ROBOT_STATUSES, "moved"),
        Index(None, "project_id", "robot", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    robot: Mapped[Word]
    at: Mapped[CreatedAt]
    actor: Mapped[Word]
    change: Mapped[Word]
    until: Mapped[Time | None]
    reason: Mapped[str | None]


class WorkCalendarTable(Base):
    """Shifts, time zone and holidays of a deployment; see `watching/working_hours.py`."""

    __tablename__ = "work_calendars"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    calendar: Mapped[dict[str, Any]] = mapped_column(JSONB)
    changed_by: Mapped[Word]
    changed_at: Mapped[CreatedAt]
