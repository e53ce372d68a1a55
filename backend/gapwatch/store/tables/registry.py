"""What episodes refer to by number: registered on first sight, never deleted."""

from __future__ import annotations

from datetime import date
from typing import Any

from sqlalchemy import Date, ForeignKeyConstraint, LargeBinary, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import STAGES, Base, CreatedAt, ProjectId, RowId, Time, Word, Words, one_of


class PolicyTable(Base):
    """One version of a policy: zero-shot and fine-tuned versions stay apart."""

    __tablename__ = "policies"
    __table_args__ = (UniqueConstraint("project_id", "name", "version"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    version: Mapped[Word]
    created_at: Mapped[CreatedAt]


class SimulatorTable(Base):
    __tablename__ = "simulators"
    __table_args__ = (UniqueConstraint("project_id", "name", "version"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    version: Mapped[Word]
    created_at: Mapped[CreatedAt]


class TaskTable(Base):
    __tablename__ = "tasks"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    created_at: Mapped[CreatedAt]


class RobotTable(Base):
    __tablename__ = "robots"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    created_at: Mapped[CreatedAt]


class SiteTable(Base):
    __tablename__ = "sites"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    created_at: Mapped[CreatedAt]


class DeploymentTable(Base):
    """A policy version doing a task at a site, with a stage: the values of its newest episode.

    `described_at` is that episode's time, so that a late episode never turns the description back.
    """

    __tablename__ = "deployments"
    __table_args__ = (
        UniqueConstraint("project_id", "slug"),
        one_of("stage", *STAGES),
        ForeignKeyConstraint(["project_id", "policy_id"], ["policies.project_id", "policies.id"]),
        ForeignKeyConstraint(["project_id", "task_id"], ["tasks.project_id", "tasks.id"]),
        ForeignKeyConstraint(["project_id", "site_id"], ["sites.project_id", "sites.id"]),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    slug: Mapped[Word]
    policy_id: Mapped[int]
    task_id: Mapped[int]
    site_id: Mapped[int | None]
    stage: Mapped[Word | None]
    described_at: Mapped[Time]
    created_at: Mapped[CreatedAt]


class BaselineTable(Base):
    """The simulator a deployment is pinned to; without a row every simulator of its policy and task."""

    __tablename__ = "baselines"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        ForeignKeyConstraint(["project_id", "simulator_id"], ["simulators.project_id", "simulators.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    simulator_id: Mapped[int]
    pinned_by: Mapped[Word]
    pinned_at: Mapped[CreatedAt]


class NewNameTable(Base):
    """How many names a key brought on a day that its project did not have, by field of the record."""

    __tablename__ = "new_names"

    project_id: Mapped[ProjectId]
    key_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    field: Mapped[Word] = mapped_column(primary_key=True)
    names: Mapped[int] = mapped_column(server_default=text("0"))
    # Names beyond the budget; their episodes went to the quarantine.
    refused: Mapped[int] = mapped_column(server_default=text("0"))


class ConditionSetTable(Base):
    """An interned set of category and boolean conditions; numbers stay with the episode."""

    __tablename__ = "condition_sets"
    __table_args__ = (UniqueConstraint("project_id", "content_hash"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    levels: Mapped[dict[str, Any]] = mapped_column(JSONB)


class NameSetTable(Base):
    """An interned, sorted list of names that an episode's numbers stand against."""

    __tablename__ = "name_sets"
    __table_args__ = (
        UniqueConstraint("project_id", "content_hash"),
        one_of("kind", "condition", "signal", "metric"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    kind: Mapped[Word]
    names: Mapped[Words]


class ContractTable(Base):
    """What both sides must agree on: units, frames, joint order, scales, rates."""

    __tablename__ = "contracts"
    __table_args__ = (UniqueConstraint("project_id", "content_hash"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
