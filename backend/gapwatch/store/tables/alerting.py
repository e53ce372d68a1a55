"""Rules, alerts, and the outbox that carries them to people."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Integer

from gapwatch.store.tables.schema import (
    EMPTY_ARRAY,
    EMPTY_JSON,
    Base,
    CreatedAt,
    ProjectId,
    RowId,
    Time,
    Word,
    one_of,
)

SEVERITIES = ("info", "warning", "critical")
ALERT_STATES = ("pending", "firing", "acknowledged", "no_data", "resolved")
CHANNEL_KINDS = ("webhook", "pagerduty", "slack", "email", "alertmanager", "apprise")
DELIVERY_STATES = ("due", "sent", "superseded", "dead")


class Channel(Base):
    """Where alerts go. What is secret in the configuration is encrypted in `secret`."""

    __tablename__ = "channels"
    __table_args__ = (one_of("kind", *CHANNEL_KINDS), Index(None, "project_id", "name", unique=True))

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    kind: Mapped[Word]
    config: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    secret: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[CreatedAt]
    disabled_at: Mapped[Time | None]


class Rule(Base):
    __tablename__ = "rules"
    __table_args__ = (one_of("severity", *SEVERITIES), Index(None, "project_id", "name", unique=True))

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    kind: Mapped[Word]
    params: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    match: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    severity: Mapped[Word]
    channel_ids: Mapped[list[int]] = mapped_column(ARRAY(Integer), server_default=EMPTY_ARRAY)
    dry_run: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[CreatedAt]
    disabled_at: Mapped[Time | None]


class Alert(Base):
    """One episode of trouble of one series under one rule; at most one is open at a time."""

    __tablename__ = "alerts"
    __table_args__ = (
        one_of("state", *ALERT_STATES),
        one_of("severity", *SEVERITIES),
        ForeignKeyConstraint(["project_id", "rule_id"], ["rules.project_id", "rules.id"]),
        Index(
            "alerts_one_open_per_series",
            "project_id",
            "rule_id",
            "series",
            unique=True,
            postgresql_where=text("state <> 'resolved'"),
        ),
        Index(None, "project_id", "opened_at"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    rule_id: Mapped[int]
    series: Mapped[Word]
    state: Mapped[Word]
    severity: Mapped[Word]
    evidence: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    opened_at: Mapped[CreatedAt]
    state_since: Mapped[CreatedAt]
    resolved_at: Mapped[Time | None]


class AlertTransition(Base):
    __tablename__ = "alert_transitions"
    __table_args__ = (
        one_of("to_state", *ALERT_STATES),
        ForeignKeyConstraint(["project_id", "alert_id"], ["alerts.project_id", "alerts.id"]),
        Index(None, "project_id", "alert_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    alert_id: Mapped[int]
    at: Mapped[CreatedAt]
    from_state: Mapped[Word | None]
    to_state: Mapped[Word]
    actor: Mapped[Word]
    comment: Mapped[str | None]


class Delivery(Base):
    """The outbox: written with the transition, marked sent only after it was sent."""

    __tablename__ = "deliveries"
    __table_args__ = (
        one_of("state", *DELIVERY_STATES),
        ForeignKeyConstraint(["project_id", "alert_id"], ["alerts.project_id", "alerts.id"]),
        ForeignKeyConstraint(["project_id", "channel_id"], ["channels.project_id", "channels.id"]),
        Index(None, "due_at", postgresql_where=text("state = 'due'")),
        Index(None, "project_id", "alert_id", "channel_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    alert_id: Mapped[int]
    channel_id: Mapped[int]
    action: Mapped[Word]
    dedup_key: Mapped[Word]
    content: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[Word] = mapped_column(server_default=text("'due'"))
    created_at: Mapped[CreatedAt]
    due_at: Mapped[CreatedAt]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    sent_at: Mapped[Time | None]


class DeliveryAttempt(Base):
    __tablename__ = "delivery_attempts"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "delivery_id"], ["deliveries.project_id", "deliveries.id"]),
        Index(None, "project_id", "delivery_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    delivery_id: Mapped[int]
    at: Mapped[CreatedAt]
    status: Mapped[int | None]
    answer: Mapped[str]


class Silence(Base):
    __tablename__ = "silences"
    __table_args__ = (
        CheckConstraint("ends_at > starts_at", name="ends_after_start"),
        Index(None, "project_id", "ends_at"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    match: Mapped[dict[str, Any]] = mapped_column(JSONB)
    owner: Mapped[Word]
    reason: Mapped[str]
    starts_at: Mapped[Time]
    ends_at: Mapped[Time]
    created_at: Mapped[CreatedAt]


class Event(Base):
    """A dated fact that may explain a change: a release, a calibration, a mitigation."""

    __tablename__ = "events"
    __table_args__ = (
        one_of("kind", "release", "calibration", "simulator", "site", "mitigation", "other"),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        Index(None, "project_id", "at"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    kind: Mapped[Word]
    at: Mapped[Time]
    title: Mapped[str]
    deployment_id: Mapped[int | None]
    details: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    created_at: Mapped[CreatedAt]
