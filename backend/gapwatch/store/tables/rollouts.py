"""How far each deployment is trusted, what may drive there, and every decision about it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import DDL, BigInteger, CheckConstraint, ForeignKeyConstraint, Index, event, text
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import (
    EMPTY_JSON,
    STAGES,
    Base,
    CreatedAt,
    ProjectId,
    RowId,
    Time,
    Word,
    finite,
    one_of,
)

ROLLOUT_STATES = ("go", "fallback", "stop")
DECISION_KINDS = ("promote", "hold", "rollback", "stop", "resume", "drill")


class RolloutTable(Base):
    """The rollout of a deployment: its stage, its frozen plan, and what may drive there now."""

    __tablename__ = "rollouts"
    __table_args__ = (
        one_of("stage", *STAGES),
        one_of("state", *ROLLOUT_STATES),
        CheckConstraint("(fallback_name IS NULL) = (fallback_version IS NULL)", name="whole_fallback"),
        CheckConstraint("(plan IS NULL) = (frozen_at IS NULL)", name="plan_is_frozen"),
        finite("drill_seconds"),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        ForeignKeyConstraint(["project_id", "decision_id"], ["decisions.project_id", "decisions.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    stage: Mapped[Word]
    entered_at: Mapped[CreatedAt]
    state: Mapped[Word] = mapped_column(server_default=text("'go'"))
    # The candidate: it drives at `supervised` and `full` while the state is `go`, else the fallback does.
    policy_name: Mapped[Word]
    policy_version: Mapped[Word]
    fallback_name: Mapped[Word | None]
    fallback_version: Mapped[Word | None]
    decided_at: Mapped[CreatedAt]
    # NULL until somebody decided.
    decision_id: Mapped[int | None]
    # Grows with everything that may change what drives: the tag of the permit.
    revision: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    plan: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    frozen_at: Mapped[Time | None]
    # What each criterion has come to since the plan was frozen, by its id.
    criteria: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    # The gate as the watch last found it, for lists of many deployments.
    gate: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    gate_at: Mapped[Time | None]
    # From when the time counts after which a person is asked to decide; a hold sets it anew.
    waiting_since: Mapped[Time | None]
    asked_at: Mapped[Time | None]
    drill_at: Mapped[Time | None]
    drill_seconds: Mapped[float | None]


class DecisionTable(Base):
    """What somebody decided about a rollout, with the evidence of that moment. Never changed."""

    __tablename__ = "decisions"
    __table_args__ = (
        one_of("kind", *DECISION_KINDS),
        one_of("from_stage", *STAGES),
        one_of("to_stage", *STAGES),
        one_of("state", *ROLLOUT_STATES),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        Index(None, "project_id", "deployment_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    deployment_id: Mapped[int]
    kind: Mapped[Word]
    from_stage: Mapped[Word]
    to_stage: Mapped[Word]
    # What it left the rollout in.
    state: Mapped[Word]
    revision: Mapped[int] = mapped_column(BigInteger)
    who: Mapped[Word]
    reason: Mapped[str]
    # Promoted without a passed gate, by an admin.
    is_override: Mapped[bool] = mapped_column(server_default=text("false"))
    at: Mapped[CreatedAt]
    # As it was written: JSONB would write some numbers in another way, and their hash would be another.
    packet: Mapped[dict[str, Any]] = mapped_column(JSON)
    # SHA-256 of the packet, which names the hash before it: those of a deployment are a chain.
    packet_hash: Mapped[Word]
    previous_hash: Mapped[Word | None]


event.listen(
    DecisionTable.__table__,
    "after_create",
    DDL(  # type: ignore[no-untyped-call]
        """
        CREATE FUNCTION refuse_change_of_decision() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'decisions are never changed or deleted'; END $$;
        CREATE TRIGGER decisions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON decisions
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_decision();
        """
    ),
)
