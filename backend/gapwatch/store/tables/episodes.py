"""Episodes, their former versions, and what was refused."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.schema import SchemaItem

from gapwatch.store.tables.schema import (
    OUTCOMES,
    SIDES,
    STAGES,
    Base,
    CreatedAt,
    Numbers,
    ProjectId,
    RowId,
    Time,
    Word,
    Words,
    all_finite,
    finite,
    one_of,
)

ARRAYS = ("numbers", "signals", "metrics", "embedding")
COUNTS = ("violations", "interventions", "overrides")


def episode_checks() -> list[SchemaItem]:
    return [
        one_of("domain", *SIDES),
        one_of("outcome", *OUTCOMES),
        one_of("stage", *STAGES),
        CheckConstraint("domain = 'sim' OR deployment_id IS NOT NULL", name="deployment_of_real"),
        CheckConstraint("domain <> 'sim' OR simulator_id IS NOT NULL", name="simulator_of_sim"),
        CheckConstraint("duration_s >= 0", name="duration_not_negative"),
        finite("duration_s"),
        finite("reward"),
        finite("clock_skew_s"),
        *(all_finite(column) for column in ARRAYS),
        *(CheckConstraint(f"{column} >= 0", name=f"{column}_not_negative") for column in COUNTS),
    ]


class EpisodeColumns:
    """The columns of an attempt: fixed widths first and in pairs, so that rows carry no padding.

    Foreign keys to the registry are left out on purpose: they cost a look-up each on every row of the
    busiest table, the numbers are made in the same transaction, and registry rows are never deleted.

    `domain` is the side that the episode is counted on (`record.side_of`): a real one of stage `shadow` has a side
    of its own.
    """

    project_id: Mapped[int] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(server_default=text("1"))
    started_at: Mapped[Time]
    received_at: Mapped[CreatedAt]
    duration_s: Mapped[float | None]
    reward: Mapped[float | None]
    clock_skew_s: Mapped[float | None]
    policy_id: Mapped[int]
    task_id: Mapped[int]
    deployment_id: Mapped[int | None]
    simulator_id: Mapped[int | None]
    robot_id: Mapped[int | None]
    site_id: Mapped[int | None]
    condition_set_id: Mapped[int | None]
    number_names_id: Mapped[int | None]
    signal_names_id: Mapped[int | None]
    metric_names_id: Mapped[int | None]
    contract_id: Mapped[int | None]
    violations: Mapped[int | None]
    interventions: Mapped[int | None]
    overrides: Mapped[int | None]
    id: Mapped[Word] = mapped_column(primary_key=True)
    domain: Mapped[Word]
    outcome: Mapped[Word]
    stage: Mapped[Word | None]
    session: Mapped[Word | None]
    pair: Mapped[Word | None]
    failure_phase: Mapped[Word | None]
    failure_labels: Mapped[Words | None]
    failure_category: Mapped[Word | None]
    failure_note: Mapped[str | None]
    numbers: Mapped[Numbers | None]
    signals: Mapped[Numbers | None]
    metrics: Mapped[Numbers | None]
    embedding: Mapped[Numbers | None]
    links: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    provenance: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    shadow: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    plan: Mapped[int | None]


class EpisodeTable(EpisodeColumns, Base):
    """One attempt. The id comes from the sender and is the retry key for ever."""

    __tablename__ = "episodes"
    __table_args__ = (
        *episode_checks(),
        Index(None, "project_id", "started_at", "id"),
        Index(
            None, "project_id", "deployment_id", "started_at", postgresql_where=text("deployment_id IS NOT NULL")
        ),
        Index(
            "episodes_sim_idx",
            *("project_id", "policy_id", "task_id", "started_at"),
            postgresql_where=text("domain = 'sim'"),
        ),
        Index(
            "episodes_failed_idx",
            *("project_id", "policy_id", "task_id", "domain", "started_at"),
            postgresql_where=text("outcome = 'failure'"),
        ),
        Index("episodes_pair_idx", "project_id", "pair", postgresql_where=text("pair IS NOT NULL")),
        # Few episodes have a category, so counting them per deployment costs the others nothing.
        Index(
            "episodes_labelled_idx",
            *("project_id", "deployment_id"),
            postgresql_where=text("failure_category IS NOT NULL"),
        ),
        Index(
            "episodes_shadow_idx",
            *("project_id", "deployment_id", "started_at"),
            postgresql_where=text("domain = 'shadow'"),
        ),
        # Trials that say which plan they are of, by the field or by the name of their session.
        Index("episodes_plan_idx", "project_id", "plan", postgresql_where=text("plan IS NOT NULL")),
        Index(
            "episodes_plan_session_idx",
            *("project_id", "session"),
            postgresql_where=text("session LIKE 'plan-%'"),
        ),
    )

    # The order of arrival: clocks of robots jump, this does not.
    seq: Mapped[int] = mapped_column(BigInteger, Identity(always=True))


class EpisodeRevisionTable(EpisodeColumns, Base):
    """What an episode was before a correction, or at its deletion: the audit, and what a fold takes back."""

    __tablename__ = "episode_revisions"
    __table_args__ = (*episode_checks(), one_of("ended_by", "correction", "deletion"))

    revision: Mapped[int] = mapped_column(primary_key=True, sort_order=1)
    seq: Mapped[int] = mapped_column(BigInteger, sort_order=1)
    ended_by: Mapped[Word] = mapped_column(sort_order=1)
    ended_at: Mapped[CreatedAt] = mapped_column(sort_order=1)
    actor: Mapped[Word] = mapped_column(sort_order=1)


class RepeatedEpisodeTable(Base):
    """A stored episode that says what another one says under another id, and is counted like any other."""

    __tablename__ = "repeated_episodes"
    __table_args__ = (Index(None, "project_id", "policy_id", "deployment_id"),)

    project_id: Mapped[ProjectId]
    episode_id: Mapped[Word] = mapped_column(primary_key=True)
    first_id: Mapped[Word]
    policy_id: Mapped[int]
    deployment_id: Mapped[int | None]
    simulator_id: Mapped[int | None]


class RejectedRecordTable(Base):
    """The quarantine: what was refused and why, bounded in size and age."""

    __tablename__ = "rejected_records"
    __table_args__ = (Index(None, "project_id", "received_at"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    received_at: Mapped[CreatedAt]
    key_prefix: Mapped[Word]
    code: Mapped[Word]
    errors: Mapped[list[Any]] = mapped_column(JSONB)
    record: Mapped[bytes] = mapped_column(LargeBinary)
