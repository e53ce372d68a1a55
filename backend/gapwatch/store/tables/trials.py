"""Plans of trials, and the ranges that simulators were randomised over."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import Base, CreatedAt, ProjectId, RowId, Word, one_of

PLAN_GOALS = ("verdict", "gate", "cause", "coverage")


class TrialPlanTable(Base):
    """Which trials to make next at a deployment, and what they were expected to tell. Never changed."""

    __tablename__ = "trial_plans"
    __table_args__ = (
        one_of("goal", *PLAN_GOALS),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        ForeignKeyConstraint(["project_id", "policy_id"], ["policies.project_id", "policies.id"]),
        Index(None, "project_id", "deployment_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    deployment_id: Mapped[int]
    # The version that the trials are of.
    policy_id: Mapped[int]
    goal: Mapped[Word]
    # Cells with what was known of them, budget and promise.
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
    created_by: Mapped[Word]


class SimulatorRangesTable(Base):
    """What a training run randomised, as it was declared for a version of a simulator."""

    __tablename__ = "simulator_ranges"

    project_id: Mapped[ProjectId]
    simulator: Mapped[Word] = mapped_column(primary_key=True)
    version: Mapped[Word] = mapped_column(primary_key=True)
    parameters: Mapped[list[Any]] = mapped_column(JSONB)
    updated_at: Mapped[CreatedAt]
    updated_by: Mapped[Word]
