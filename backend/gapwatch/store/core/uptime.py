"""When parts of the service were alive, so that a time in which we were away is no silence of a robot."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, text

# How long a part may leave no mark before it counts as having been away. Marks are at most a minute apart; a
# shorter absence cannot be taken for a silence. Workers hear nobody by themselves: while they are away web still
# takes episodes, which wait for them.
AWAY_AFTER = {"ingest": timedelta(minutes=15), "watch": timedelta(minutes=45)}
KEPT = timedelta(days=100)


def mark_alive(connection: Connection, part: str) -> None:
    """Extend the newest span of a part, or begin another one after an absence."""
    key = {"part": part, "away": AWAY_AFTER[part], "kept": KEPT}
    extended = connection.execute(
        text("""
        UPDATE service_spans SET alive_until = greatest(alive_until, now())
        WHERE part = :part AND alive_until >= now() - CAST(:away AS interval) RETURNING 1
        """),
        key,
    )
    if extended.first() is not None:
        return
    connection.execute(
        text("""
        INSERT INTO service_spans (part, alive_from, alive_until) VALUES (:part, now(), now())
        ON CONFLICT (part, alive_from) DO NOTHING
        """),
        key,
    )
    connection.execute(
        text("DELETE FROM service_spans WHERE part = :part AND alive_until < now() - CAST(:kept AS interval)"), key
    )


def absences(connection: Connection, since: datetime, now: datetime) -> list[tuple[datetime, datetime]]:
    """From when until when any part was away; one that is away now counts until now."""
    rows = connection.execute(
        text("""
        SELECT part, alive_from, alive_until FROM service_spans WHERE alive_until >= :since
        ORDER BY part, alive_from
        """),
        {"since": since - KEPT},
    )
    spans: dict[str, list[tuple[datetime, datetime]]] = {}
    for row in rows:
        spans.setdefault(row.part, []).append((row.alive_from, row.alive_until))
    found = []
    for part, alive in spans.items():
        until = alive[0][1]
        for alive_from, alive_until in [*alive[1:], (now, now)]:
            if alive_from - until > AWAY_AFTER[part] and alive_from >= since:
                found.append((until, alive_from))
            until = max(until, alive_until)
    return sorted(found)
