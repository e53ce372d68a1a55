"""What folding makes of episodes: counts, moments and sketches that add up, and the cells they stand in.

The scope of a row is (domain, policy, task, source); `source_id` is the deployment of real episodes and of
those in shadow, and the simulator of sim ones. A bucket is an hour, a day or a month of UTC.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, LargeBinary, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import (
    SIDES,
    STAGES,
    Base,
    CreatedAt,
    ProjectId,
    RowId,
    Time,
    Word,
    Words,
    one_of,
)

NO_CONTRACT = 0


class Scoped:
    """The columns every rollup starts with. No foreign key: its check would cost a quarter of a new row."""

    project_id: Mapped[int] = mapped_column(primary_key=True, sort_order=-5)
    domain: Mapped[Word] = mapped_column(primary_key=True, sort_order=-4)
    policy_id: Mapped[int] = mapped_column(primary_key=True, sort_order=-3)
    task_id: Mapped[int] = mapped_column(primary_key=True, sort_order=-2)
    source_id: Mapped[int] = mapped_column(primary_key=True, sort_order=-1)


class RollupCountTable(Base):
    """Exact counts of outcomes per source and hour, day or month."""

    __tablename__ = "rollup_counts"
    __table_args__ = (
        one_of("domain", *SIDES),
        one_of("tier", "hour", "day", "month"),
        Index(None, "project_id", "tier", "bucket_at"),
    )

    project_id: Mapped[ProjectId]
    domain: Mapped[Word] = mapped_column(primary_key=True)
    source_id: Mapped[int] = mapped_column(primary_key=True)
    policy_id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[int] = mapped_column(primary_key=True)
    tier: Mapped[Word] = mapped_column(primary_key=True)
    bucket_at: Mapped[Time] = mapped_column(primary_key=True)
    successes: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(BigInteger)
    aborted: Mapped[int] = mapped_column(BigInteger)
    abandoned: Mapped[int] = mapped_column(BigInteger)


class InternedCellTable(Base):
    """An interned combination: robot, site, stage, and the level of every condition (numbers binned)."""

    __tablename__ = "cells"
    __table_args__ = (UniqueConstraint("project_id", "content_hash"), one_of("stage", *STAGES))

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    robot_id: Mapped[int | None]
    site_id: Mapped[int | None]
    stage: Mapped[Word | None]
    levels: Mapped[dict[str, Any]] = mapped_column(JSONB)


class PooledConditionTable(Base):
    """A condition that is left out of the cells of a policy version's task: they would be as many as episodes."""

    __tablename__ = "pooled_conditions"

    project_id: Mapped[ProjectId]
    policy_id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[Word] = mapped_column(primary_key=True)
    levels: Mapped[int]
    pooled_at: Mapped[CreatedAt]


class RollupCellTable(Scoped, Base):
    """Exact counts of outcomes per cell and day or month."""

    __tablename__ = "rollup_cells"
    __table_args__ = (one_of("domain", *SIDES), one_of("tier", "day", "month"))

    tier: Mapped[Word] = mapped_column(primary_key=True)
    bucket_at: Mapped[Time] = mapped_column(primary_key=True)
    cell_id: Mapped[int] = mapped_column(primary_key=True)
    successes: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(BigInteger)
    aborted: Mapped[int] = mapped_column(BigInteger)
    abandoned: Mapped[int] = mapped_column(BigInteger)


class RollupPlaceTable(Scoped, Base):
    """Exact counts of real outcomes per day, robot and site; 0 where an episode names none.

    Cells say it too, in hundreds of rows a day. The onset of a loss compares every robot's days of a year.
    """

    __tablename__ = "rollup_places"

    bucket_at: Mapped[Time] = mapped_column(primary_key=True)
    robot_id: Mapped[int] = mapped_column(primary_key=True)
    site_id: Mapped[int] = mapped_column(primary_key=True)
    successes: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(BigInteger)
    aborted: Mapped[int] = mapped_column(BigInteger)
    abandoned: Mapped[int] = mapped_column(BigInteger)


class SignatureTable(Base):
    """What senders and people said of a failure: phase, labels and category, interned."""

    __tablename__ = "signatures"
    __table_args__ = (UniqueConstraint("project_id", "content_hash"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    phase: Mapped[Word | None]
    labels: Mapped[Words]
    category: Mapped[Word | None]


class RollupFailureTable(Scoped, Base):
    """Failed episodes per cell and signature."""

    __tablename__ = "rollup_failures"
    __table_args__ = (one_of("domain", *SIDES), one_of("tier", "day", "month"))

    tier: Mapped[Word] = mapped_column(primary_key=True)
    bucket_at: Mapped[Time] = mapped_column(primary_key=True)
    cell_id: Mapped[int] = mapped_column(primary_key=True)
    signature_id: Mapped[int] = mapped_column(primary_key=True)
    failures: Mapped[int] = mapped_column(BigInteger)


class RollupValueTable(Scoped, Base):
    """Moments and log-bin sketches of every metric or every signal over successes or failures.

    One row for all names, because a day of a deployment may hold few episodes and each has many signals. `body` is
    written by tally/values.py: sums that do not depend on the order of arrival and can be taken back.
    """

    __tablename__ = "rollup_values"
    __table_args__ = (
        one_of("domain", *SIDES),
        one_of("kind", "metric", "signal"),
        one_of("outcome", "success", "failure"),
        one_of("tier", "day", "month"),
    )

    kind: Mapped[Word] = mapped_column(primary_key=True)
    outcome: Mapped[Word] = mapped_column(primary_key=True)
    tier: Mapped[Word] = mapped_column(primary_key=True)
    bucket_at: Mapped[Time] = mapped_column(primary_key=True)
    body: Mapped[bytes] = mapped_column(LargeBinary)


class RollupSessionTable(Scoped, Base):
    """Successes and failures of one sitting on one day."""

    __tablename__ = "rollup_sessions"
    __table_args__ = (one_of("domain", *SIDES),)

    bucket_at: Mapped[Time] = mapped_column(primary_key=True)
    session: Mapped[Word] = mapped_column(primary_key=True)
    successes: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(BigInteger)


class RollupContractTable(Scoped, Base):
    """Episodes per contract; 0 stands for episodes that sent none."""

    __tablename__ = "rollup_contracts"
    __table_args__ = (one_of("domain", *SIDES), one_of("tier", "day", "month"))

    tier: Mapped[Word] = mapped_column(primary_key=True)
    bucket_at: Mapped[Time] = mapped_column(primary_key=True)
    contract_id: Mapped[int] = mapped_column(primary_key=True)
    episodes: Mapped[int] = mapped_column(BigInteger)


class PresentTable(Base):
    """How a deployment does now, since when, and how much it moved: made from its newest episodes.

    `since` is the first episode of the regime and `version_since` that of the policy version, for windows; `body`
    is written by tally/presents.py. `lead`: its leading category, None without one; see store/fold/leads.py.
    `sim_effect` and `real_effect`: how many episodes of the two sides are worth one, since those of a session are
    alike.
    """

    __tablename__ = "presents"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "deployment_id"], ["deployments.project_id", "deployments.id"]),
    )

    project_id: Mapped[ProjectId]
    deployment_id: Mapped[int] = mapped_column(primary_key=True)
    policy_id: Mapped[int]
    since: Mapped[Time | None]
    version_since: Mapped[Time | None]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    computed_at: Mapped[CreatedAt]
    lead: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    lead_version: Mapped[Word | None]
    led_at: Mapped[Time | None]
    sim_effect: Mapped[float | None]
    real_effect: Mapped[float | None]
