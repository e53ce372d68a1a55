"""The queue of record, the numbers that work produces, and signs of life."""

from __future__ import annotations

from sqlalchemy import BigInteger, Identity, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import DOMAINS, Base, CreatedAt, ProjectId, Time, Word, Words, one_of


class Work(Base):
    """One accepted batch still to be folded. Deleted by the transaction that does the work.

    `sign` is +1 for episodes that came and −1 for a revision that no longer stands.
    """

    __tablename__ = "work"
    __table_args__ = (
        one_of("kind", "fold"),
        Index(None, "due_at"),
    )

    project_id: Mapped[ProjectId]
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    kind: Mapped[Word]
    episode_ids: Mapped[Words]
    revision: Mapped[int] = mapped_column(server_default=text("1"))
    sign: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"))
    created_at: Mapped[CreatedAt]
    due_at: Mapped[CreatedAt]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    last_error: Mapped[str | None]


class RollupCount(Base):
    """Exact counts of outcomes per source and hour, day or month.

    `source_id` is the deployment of real episodes and the simulator of sim ones.
    """

    __tablename__ = "rollup_counts"
    __table_args__ = (one_of("domain", *DOMAINS), one_of("tier", "hour", "day", "month"))

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


class Heartbeat(Base):
    """When each kind of process last did its round; `/readyz` reads it."""

    __tablename__ = "heartbeats"

    part: Mapped[Word] = mapped_column(primary_key=True)
    beat_at: Mapped[CreatedAt]
