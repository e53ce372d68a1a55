"""Rules, what their detectors know, alerts, and the outbox that carries them to people."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Identity, Index, LargeBinary, text
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
    Words,
    kind_name,
    one_of,
)

SEVERITIES = ("info", "warning", "critical")
ALERT_STATES = ("pending", "firing", "acknowledged", "no_data", "resolved")
INCIDENT_STATES = ("firing", "acknowledged", "resolved")
SILENCE_KINDS = ("silence", "maintenance")
SILENCES = ("died", "absent", "unknown", "normal", "fault")
DELIVERY_STATES = ("due", "sent", "superseded", "dead")
REASON_KINDS = ("silence", "safety", "performance", "gate", "signals")


class ChannelTable(Base):
    """Where alerts go. What is secret in the configuration is encrypted in `secret`."""

    __tablename__ = "channels"
    __table_args__ = (kind_name("kind"), Index(None, "project_id", "name", unique=True))

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[Word]
    kind: Mapped[Word]
    config: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    secret: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[CreatedAt]
    disabled_at: Mapped[Time | None]
    # What comes here and when: least severity, match, escalation, repeat, quiet hours, the channel to fall back
    # on.
    routing: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    # Of a kind that forgets what it is not told again: when what is open was last sent there, how often in a row
    # it was not taken since, and what was answered then.
    resent_at: Mapped[Time | None]
    resend_tried_at: Mapped[Time | None]
    resend_failures: Mapped[int] = mapped_column(server_default=text("0"))
    resend_answer: Mapped[str | None]


class MailAddressTable(Base):
    """An address of mail channels: asked whether it wants alerts, and told of none before it has confirmed."""

    __tablename__ = "mail_addresses"
    __table_args__ = (Index(None, "project_id", "address", unique=True),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    address: Mapped[Word]
    # Its link is signed over this time, so that asking again makes the link before it worthless.
    asked_at: Mapped[Time | None]
    confirmed_at: Mapped[Time | None]
    created_at: Mapped[CreatedAt]


class RuleTable(Base):
    """A rule of a project. One that bears the name of a default rule stands in its place."""

    __tablename__ = "rules"
    __table_args__ = (
        kind_name("kind"),
        one_of("severity", *SEVERITIES),
        Index(None, "project_id", "name", unique=True),
    )

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
    # Where it says what to do when it fires.
    runbook_url: Mapped[Word | None]


class IncidentTable(Base):
    """What is wrong with a deployment: one notification, however many rules tell of it. At most one is open."""

    __tablename__ = "incidents"
    __table_args__ = (
        one_of("state", *INCIDENT_STATES),
        one_of("severity", *SEVERITIES),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        Index(
            "incidents_one_open_per_deployment",
            "project_id",
            "deployment_id",
            unique=True,
            postgresql_where=text("state <> 'resolved'"),
        ),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    deployment_id: Mapped[int]
    state: Mapped[Word]
    severity: Mapped[Word]
    opened_at: Mapped[CreatedAt]
    # When people were told of it and how severe it was then; `page_at` is when they still have to be told.
    paged_at: Mapped[Time | None]
    paged_severity: Mapped[Word | None]
    page_at: Mapped[Time | None]
    acknowledged_at: Mapped[Time | None]
    acknowledged_by: Mapped[Word | None]
    resolved_at: Mapped[Time | None]
    content: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    # When what is wrong began, by the earliest change of its alerts; `opened_at` is when it was found.
    changed_at: Mapped[Time | None]
    # Who takes care of it.
    owner: Mapped[Word | None]
    # Kinds of reasons that people were told of.
    told_reasons: Mapped[Words] = mapped_column(server_default=EMPTY_ARRAY)
    # Built from history, in its own time; written anew when more comes, unless people were told of it or acted.
    from_history: Mapped[bool] = mapped_column(server_default=text("false"))
    # The import whose one line tells of it.
    backfill_id: Mapped[int | None]


class AlertTable(Base):
    """One time of trouble of one series under one rule; at most one is open at a time."""

    __tablename__ = "alerts"
    __table_args__ = (
        one_of("state", *ALERT_STATES),
        one_of("severity", *SEVERITIES),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        ForeignKeyConstraint(["project_id", "incident_id"], ["incidents.project_id", "incidents.id"]),
        Index(
            "alerts_one_open_per_series",
            "project_id",
            "deployment_id",
            "rule",
            "series",
            unique=True,
            postgresql_where=text("state <> 'resolved'"),
        ),
        Index(None, "project_id", "opened_at"),
        Index(None, "project_id", "incident_id"),
        Index(
            "alerts_changes_idx", "project_id", "deployment_id", postgresql_where=text("changed_at IS NOT NULL")
        ),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    series: Mapped[Word]
    state: Mapped[Word]
    severity: Mapped[Word]
    evidence: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    opened_at: Mapped[CreatedAt]
    state_since: Mapped[CreatedAt]
    resolved_at: Mapped[Time | None]
    rule: Mapped[Word]
    kind: Mapped[Word]
    deployment_id: Mapped[int]
    incident_id: Mapped[int | None]
    # The state to return to when data comes again.
    before_no_data: Mapped[Word | None]
    dry_run: Mapped[bool] = mapped_column(server_default=text("false"))
    regressed: Mapped[bool] = mapped_column(server_default=text("false"))
    escalating: Mapped[bool] = mapped_column(server_default=text("false"))
    acknowledged_at: Mapped[Time | None]
    acknowledged_by: Mapped[Word | None]
    # When the series changed, by its detector's estimate; NULL where there is none.
    changed_at: Mapped[Time | None]
    from_history: Mapped[bool] = mapped_column(server_default=text("false"))


class IncidentHistoryTable(Base):
    """What people did with an incident as a whole: took it on, passed it on, said something about it."""

    __tablename__ = "incident_history"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "incident_id"], ["incidents.project_id", "incidents.id"]),
        Index(None, "project_id", "incident_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    incident_id: Mapped[int]
    at: Mapped[CreatedAt]
    actor: Mapped[Word]
    action: Mapped[Word]
    comment: Mapped[str | None]


class NotifiedReasonTable(Base):
    """One kind of reason in one notification of an incident: what people know of it, and how they were told."""

    __tablename__ = "notified_reasons"
    __table_args__ = (
        one_of("kind", *REASON_KINDS),
        one_of("severity", *SEVERITIES),
        one_of("standing", *SEVERITIES),
        ForeignKeyConstraint(["project_id", "incident_id"], ["incidents.project_id", "incidents.id"]),
        Index(None, "project_id", "deployment_id", "kind", "severity", "at"),
        Index(None, "project_id", "incident_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    incident_id: Mapped[int]
    deployment_id: Mapped[int]
    # Which notification of its incident it was part of, counted from one.
    number: Mapped[int]
    kind: Mapped[Word]
    severity: Mapped[Word]
    # How severe it is by now; it only falls, since what gets worse is told anew.
    standing: Mapped[Word]
    at: Mapped[CreatedAt]
    # When it recovered, or was told anew.
    over_at: Mapped[Time | None]


class AlertTransitionTable(Base):
    """The history of an alert: what happened, who did it, and what they said."""

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
    input: Mapped[Word] = mapped_column(server_default=text("''"))


class DeliveryTable(Base):
    """The outbox: written with the transition, marked sent only after it was sent. A test has no incident, nor has
    the question whether an address wants alerts, nor news of a rollout, nor a digest.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        one_of("state", *DELIVERY_STATES),
        one_of("action", "trigger", "acknowledge", "resolve", "test", "confirm", "rollout", "digest"),
        ForeignKeyConstraint(["project_id", "incident_id"], ["incidents.project_id", "incidents.id"]),
        ForeignKeyConstraint(["project_id", "channel_id"], ["channels.project_id", "channels.id"]),
        Index(None, "due_at", postgresql_where=text("state = 'due'")),
        Index(None, "project_id", "incident_id", "channel_id", "id"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    channel_id: Mapped[int]
    action: Mapped[Word]
    dedup_key: Mapped[Word]
    content: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[Word] = mapped_column(server_default=text("'due'"))
    created_at: Mapped[CreatedAt]
    due_at: Mapped[CreatedAt]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    sent_at: Mapped[Time | None]
    incident_id: Mapped[int | None]
    # When a sender began with it; NULL again when it knows what came of it.
    begun_at: Mapped[Time | None]
    # Why it exists: the change itself, a repeat, an escalation, or another channel that gave up.
    reason: Mapped[Word] = mapped_column(server_default=text("'change'"))
    # Retries end here; what was held back for quiet hours counts from when it was let go.
    give_up_at: Mapped[Time | None]


class DeliveryAttemptTable(Base):
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
    outcome: Mapped[Word] = mapped_column(server_default=text("'sent'"))
    took_ms: Mapped[int | None]


class SilenceTable(Base):
    """When people are not told: once, or every week until the series ends. In maintenance robots rest too."""

    __tablename__ = "silences"
    __table_args__ = (
        CheckConstraint("ends_at > starts_at", name="ends_after_start"),
        CheckConstraint("ends_at IS NOT NULL OR recurrence IS NOT NULL", name="ends_or_recurs"),
        one_of("kind", *SILENCE_KINDS),
        Index(None, "project_id", "ends_at"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    match: Mapped[dict[str, Any]] = mapped_column(JSONB)
    owner: Mapped[Word]
    reason: Mapped[str]
    starts_at: Mapped[Time]
    ends_at: Mapped[Time | None]
    created_at: Mapped[CreatedAt]
    kind: Mapped[Word] = mapped_column(server_default=text("'silence'"))
    # Days, hours and time zone of a series; `starts_at` and `ends_at` are those of the whole series.
    recurrence: Mapped[dict[str, Any] | None] = mapped_column(JSONB)


class EventTable(Base):
    """A dated fact that may explain a change: a release, a calibration, a mitigation."""

    __tablename__ = "events"
    __table_args__ = (
        one_of(
            "kind",
            "release",
            "calibration",
            "simulator",
            "site",
            "mitigation",
            "other",
            "rollout",
            "system_identification",
        ),
        CheckConstraint("fix IS NULL OR kind = 'mitigation'", name="fix_of_mitigation"),
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
        Index(None, "project_id", "at"),
        Index("events_mitigations_idx", "project_id", "id", postgresql_where=text("kind = 'mitigation'")),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    kind: Mapped[Word]
    at: Mapped[Time]
    title: Mapped[str]
    deployment_id: Mapped[int | None]
    details: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    created_at: Mapped[CreatedAt]
    # The name of a deployment that had no episodes yet when the event was told.
    awaited: Mapped[str | None]
    # Of a mitigation: its kind, the category it aims at, where it applies, what it cost and was expected to bring.
    fix: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    # What it closed, once the days after it are over, and when that was measured: closing/closures.py writes it.
    closure: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    measured_at: Mapped[Time | None]


class WatchDueTable(Base):
    """Episodes that were folded and are still to be watched: one row an accepted batch, in the order of
    arrival.
    """

    __tablename__ = "watch_due"

    project_id: Mapped[ProjectId]
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    episode_ids: Mapped[Words]
    # When the batch was accepted: the transaction's time, which its episodes bear too.
    accepted_at: Mapped[Time]
    created_at: Mapped[CreatedAt]


class WatchTable(Base):
    """How far the detectors of a deployment have come."""

    __tablename__ = "watches"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    episodes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    # Episodes that came as history; they are judged when the deployment is taken in order again.
    late: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    newest_started_at: Mapped[Time | None]
    newest_received_at: Mapped[Time | None]
    silent: Mapped[bool] = mapped_column(server_default=text("false"))
    updated_at: Mapped[CreatedAt]


class RewatchTable(Base):
    """A deployment whose episodes are to be taken in the order of their own time again, because history came."""

    __tablename__ = "rewatches"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    # NULL while no history waits.
    due_at: Mapped[Time | None]
    is_import: Mapped[bool] = mapped_column(server_default=text("false"))
    # Episodes that wait.
    episodes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    # Robots that were heard live before the import: what they send is judged at once.
    live_robots: Mapped[Words] = mapped_column(server_default=EMPTY_ARRAY)
    last_at: Mapped[CreatedAt]
    last_import_at: Mapped[Time | None]
    # The last run, how long it took, and how many there were since it was last calm.
    done_at: Mapped[Time | None]
    took_s: Mapped[float] = mapped_column(server_default=text("0"))
    times: Mapped[int] = mapped_column(server_default=text("0"))


class BackfillTable(Base):
    """An import of history into a project. When nothing more comes it is closed, and one line tells what is wrong
    now.
    """

    __tablename__ = "backfills"
    __table_args__ = (
        Index(
            "backfills_one_open_per_project",
            "project_id",
            unique=True,
            postgresql_where=text("closed_at IS NULL"),
        ),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    began_at: Mapped[CreatedAt]
    last_at: Mapped[CreatedAt]
    episodes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    closed_at: Mapped[Time | None]
    # When people were told, and when everything they were told of was over.
    told_at: Mapped[Time | None]
    over_at: Mapped[Time | None]


class DetectorStateTable(Base):
    """What one detector knows: its parameters, its numbers, and the first and last episode it saw."""

    __tablename__ = "detectors"

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    rule: Mapped[Word] = mapped_column(primary_key=True)
    series: Mapped[Word] = mapped_column(primary_key=True)
    params: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # Set by a person's "resolve": the detector begins to look for evidence anew.
    restart: Mapped[bool] = mapped_column(server_default=text("false"))
    updated_at: Mapped[CreatedAt]


class PresenceTable(Base):
    """When a robot was last heard of, its rhythm, and what its present silence is."""

    __tablename__ = "presence"
    __table_args__ = (one_of("silence", *SILENCES),)

    project_id: Mapped[ProjectId]
    robot: Mapped[Word] = mapped_column(primary_key=True)
    deployment_id: Mapped[int]
    heard_at: Mapped[Time]
    live_episodes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    rhythm: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    silence: Mapped[Word | None]
    # From when the oldest record was that its sender still had in its spool, and when the sender said so.
    spool_oldest_at: Mapped[Time | None]
    spool_told_at: Mapped[Time | None]


class DeploymentPresenceTable(Base):
    """The same of a deployment as a whole: all its robots, and episodes that name none."""

    __tablename__ = "deployment_presence"
    __table_args__ = (one_of("silence", *SILENCES),)

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    heard_at: Mapped[Time]
    live_episodes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    rhythm: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    silence: Mapped[Word | None]
