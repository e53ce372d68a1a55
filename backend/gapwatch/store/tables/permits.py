"""What follows shadow and what robots ask for: frozen forecasts, who knows the permit, and how fast all knew."""

from __future__ import annotations

from typing import Any

from sqlalchemy import DDL, BigInteger, ForeignKeyConstraint, Index, event
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.rollouts import RolloutTable
from gapwatch.store.tables.schema import Base, CreatedAt, ProjectId, RowId, Time, Word, finite


class ShadowForecastTable(Base):
    """The gap by category that a policy version was expected to have when it left shadow. Never changed."""

    __tablename__ = "shadow_forecasts"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        ForeignKeyConstraint(["project_id", "policy_id"], ["policies.project_id", "policies.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    policy_id: Mapped[int] = mapped_column(primary_key=True)
    made_at: Mapped[CreatedAt]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)


class PermitClientTable(Base):
    """Who asks for the permit of a deployment, when last, and since when it knows which revision."""

    __tablename__ = "permit_clients"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    client: Mapped[Word] = mapped_column(primary_key=True)
    asked_at: Mapped[Time]
    revision: Mapped[int] = mapped_column(BigInteger)
    knew_at: Mapped[Time]


class DrillTable(Base):
    """A drill: how many clients asked for the permit, how many knew in time, and after how long."""

    __tablename__ = "drills"
    __table_args__ = (
        finite("seconds"),
        finite("p95_seconds"),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        Index(None, "project_id", "deployment_id", "at"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    deployment_id: Mapped[int]
    revision: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[CreatedAt]
    clients: Mapped[int]
    knew: Mapped[int]
    # Until the last of those who knew did, and until 95 % of them did.
    seconds: Mapped[float | None]
    p95_seconds: Mapped[float | None]


event.listen(
    RolloutTable.__table__,
    "after_create",
    DDL(  # type: ignore[no-untyped-call]
        """
        CREATE FUNCTION tell_of_permit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
            IF TG_OP = 'INSERT' OR NEW.revision <> OLD.revision THEN
                PERFORM pg_notify('gapwatch_permit', NEW.project_id || '/' || NEW.deployment_id);
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER rollouts_tell_of_permit AFTER INSERT OR UPDATE ON rollouts
        FOR EACH ROW EXECUTE FUNCTION tell_of_permit();
        """
    ),
)
