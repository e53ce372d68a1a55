"""The queue of record, and signs of life."""

from __future__ import annotations

from sqlalchemy import BigInteger, Identity, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import Base, CreatedAt, ProjectId, Time, Word, Words, one_of


class WorkTable(Base):
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


class HeartbeatTable(Base):
    """When each kind of process last did its round; `/readyz` reads it."""

    __tablename__ = "heartbeats"

    part: Mapped[Word] = mapped_column(primary_key=True)
    beat_at: Mapped[CreatedAt]


class ServiceSpanTable(Base):
    """From when until when a part of the service was alive; between two spans it was away."""

    __tablename__ = "service_spans"

    part: Mapped[Word] = mapped_column(primary_key=True)
    alive_from: Mapped[Time] = mapped_column(primary_key=True)
    alive_until: Mapped[Time]
