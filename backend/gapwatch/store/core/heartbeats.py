"""When each part was last alive: written by its rounds, read by `/readyz`."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from gapwatch.store.tables.work import HeartbeatTable


def beat(connection: Connection, part: str) -> None:
    statement = insert(HeartbeatTable).values(part=part, beat_at=func.now())
    connection.execute(statement.on_conflict_do_update(index_elements=["part"], set_={"beat_at": func.now()}))


def seconds_since(connection: Connection, part: str) -> float | None:
    """Return None for a part that never reported."""
    age = func.extract("epoch", func.now() - HeartbeatTable.beat_at)
    value = connection.execute(select(age).where(HeartbeatTable.part == part)).scalar()
    return None if value is None else float(value)


def claim_round(connection: Connection, part: str, every_s: float) -> bool:
    """Claim a round that only one process shall make. Return False while it is not due."""
    statement = insert(HeartbeatTable).values(part=part, beat_at=func.now())
    statement = statement.on_conflict_do_update(
        index_elements=["part"],
        set_={"beat_at": func.now()},
        where=HeartbeatTable.beat_at < func.now() - timedelta(seconds=every_s),
    )
    return connection.execute(statement.returning(HeartbeatTable.part)).first() is not None
