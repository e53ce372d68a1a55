"""Rows of the outbox: deliveries, and every attempt at one.

That a sender begins is committed first (`begun_at`); then it holds a row lock while it sends. A killed sender's
lock vanishes with its connection; the delivery is due again and keeps its id and its key, so that the other side
can tell that it is the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.channels.message import Attempt, ToldReason, told_reasons
from gapwatch.watching.delivery_policy import (
    BEGINS_WITHIN,
    GIVE_UP_AFTER,
    Action,
    DeliveryVerdict,
    TriggerTry,
    dedup_key,
)

# Whether the channel `c` has anybody to tell: mail needs an address that has confirmed.
REACHABLE = """
(c.kind <> 'email' OR EXISTS (
    SELECT 1 FROM mail_addresses a
    WHERE a.project_id = c.project_id AND a.confirmed_at IS NOT NULL AND c.config -> 'to' ? a.address))
"""

# The key of the line about an import, of the project `p`.
LINE_KEY = "'gapwatch/' || p.slug || '/import-' || {}"


@dataclass(frozen=True)
class ClaimedDelivery:
    """One message to one channel, with all that sending it needs."""

    project_id: int
    id: int
    incident_id: int | None
    channel_id: int
    action: Action
    dedup_key: str
    content: dict[str, Any]
    attempts: int
    created_at: datetime
    give_up_at: datetime
    reason: str
    kind: str
    config: dict[str, Any]
    sealed: bytes | None
    enabled: bool


def enqueue(
    connection: Connection,
    project_id: int,
    channel_id: int,
    action: Action,
    content: Mapping[str, Any],
    *,
    incident_id: int | None = None,
    due_at: datetime | None = None,
    reason: str = "change",
    key: str | None = None,
) -> int:
    """Put a delivery into the outbox, due now unless a time is given; returns its id.

    `key` is for what belongs together without an incident.
    """
    project = connection.execute(
        text("SELECT slug, now() AS now FROM projects WHERE id = :p"), {"p": project_id}
    ).one()
    due_at = due_at or project.now
    return int(
        connection.execute(
            text("""
            INSERT INTO deliveries
                (project_id, incident_id, channel_id, action, dedup_key, content, due_at, reason, give_up_at)
            VALUES (:p, :incident_id, :channel_id, :action, :dedup_key, CAST(:content AS jsonb), :due_at, :reason,
                    :give_up_at)
            RETURNING id
            """),
            {
                "p": project_id,
                "incident_id": incident_id,
                "channel_id": channel_id,
                "action": action,
                "dedup_key": key or dedup_key(project.slug, incident_id, action),
                "content": json.dumps(content),
                "due_at": due_at,
                "reason": reason,
                "give_up_at": due_at + GIVE_UP_AFTER,
            },
        ).scalar_one()
    )


def is_enqueued(connection: Connection, project_id: int, channel_id: int, key: str) -> bool:
    """Whether a channel was given a digest with this key.

    The channel stays locked until the transaction ends, so that of two who ask only one finds nothing.
    """
    connection.execute(
        text("SELECT 1 FROM channels WHERE project_id = :p AND id = :c FOR UPDATE"),
        {"p": project_id, "c": channel_id},
    )
    statement = text("""
        SELECT EXISTS (SELECT 1 FROM deliveries
                       WHERE project_id = :p AND channel_id = :c AND dedup_key = :key AND action = 'digest')
    """)
    return bool(connection.execute(statement, {"p": project_id, "c": channel_id, "key": key}).scalar_one())


def projects_with_digests(connection: Connection) -> list[int]:
    """Projects of which a channel in use asks for the digest."""
    statement = (
        "SELECT DISTINCT project_id FROM channels WHERE disabled_at IS NULL AND routing ? 'digest' ORDER BY 1"
    )
    return list(connection.scalars(text(statement)))


def enqueue_confirmation(connection: Connection, project_id: int, channel_id: int, address: str) -> int:
    """Ask an address whether it wants alerts. The link is made when it is sent, and is nowhere stored."""
    content = {"address": address, "headline": f"May alerts be sent to {address}?"}
    return enqueue(connection, project_id, channel_id, "confirm", content, reason="confirmation")


def line_key(connection: Connection, project_id: int, backfill_id: int) -> str:
    statement = text(f"SELECT {LINE_KEY.format('CAST(:id AS text)')} FROM projects p WHERE p.id = :p")  # noqa: S608
    return str(connection.execute(statement, {"p": project_id, "id": backfill_id}).scalar_one())


def end_line(connection: Connection, project_id: int, key: str) -> None:
    """Resolve the line of an import where it arrived; where it did not, it need not go out any more."""
    rows = connection.execute(
        text("""
        SELECT DISTINCT ON (channel_id) channel_id, id, state, content FROM deliveries
        WHERE project_id = :p AND dedup_key = :key AND action = 'trigger' ORDER BY channel_id, id DESC
        """),
        {"p": project_id, "key": key},
    ).all()
    for row in rows:
        if row.state == "sent":
            enqueue(connection, project_id, row.channel_id, "resolve", row.content, reason="import", key=key)
        elif row.state == "due":
            supersede(connection, project_id, [row.id])


def informed_channels(connection: Connection, project_id: int, incident_id: int) -> list[int]:
    """The channels that were, or are about to be, told of an incident."""
    return list(
        connection.scalars(
            text("""
            SELECT DISTINCT channel_id FROM deliveries
            WHERE project_id = :p AND incident_id = :i AND action = 'trigger' AND state <> 'superseded' ORDER BY 1
            """),
            {"p": project_id, "i": incident_id},
        )
    )


# The first of its incident and channel, or a resolve, which decides on all before it. A trigger does not wait for
# one that is held back, for quiet hours say: it may be more urgent.
_NEXT_DUE = text("""
SELECT d.project_id, d.id, d.incident_id, d.channel_id, d.action, d.dedup_key, d.content, d.attempts, d.created_at,
       d.give_up_at, d.reason, c.kind, c.config, c.secret AS sealed, c.disabled_at IS NULL AS enabled
FROM deliveries d JOIN channels c ON c.project_id = d.project_id AND c.id = d.channel_id
WHERE d.state = 'due' AND d.due_at <= now() AND (d.incident_id IS NULL OR d.action = 'resolve' OR NOT EXISTS (
    SELECT 1 FROM deliveries e WHERE e.project_id = d.project_id AND e.incident_id = d.incident_id
    AND e.channel_id = d.channel_id AND e.state = 'due' AND (e.action = 'resolve' OR (e.id < d.id
        AND (d.action <> 'trigger' OR e.due_at <= now() OR e.attempts > 0)))))
ORDER BY d.due_at, d.id LIMIT 1 FOR UPDATE OF d SKIP LOCKED
""")
_DUE_BEFORE = """
FROM deliveries WHERE project_id = :p AND incident_id = :i AND channel_id = :c AND state = 'due' AND id < :id
"""


def lock_next_due(connection: Connection) -> ClaimedDelivery | None:
    """Lock the next delivery whose turn it is; None if there is none, or another sender has its forerunner."""
    row = connection.execute(_NEXT_DUE).mappings().first()
    return None if row is None else ClaimedDelivery(**row)


def begin(connection: Connection, delivery: ClaimedDelivery) -> None:
    """Note that a sender begins: if it is killed, nobody knows whether this arrived."""
    connection.execute(
        text("UPDATE deliveries SET begun_at = now() WHERE project_id = :p AND id = :id"), _key(delivery)
    )


def lock_begun(connection: Connection, delivery: ClaimedDelivery) -> bool:
    """Lock a delivery to send it; False if another sender has it, or it is needless by now."""
    return (
        connection.execute(
            text("""
            SELECT 1 FROM deliveries WHERE project_id = :p AND id = :id AND state = 'due'
            FOR UPDATE SKIP LOCKED
            """),
            _key(delivery),
        ).first()
        is not None
    )


def lock_due_before(connection: Connection, delivery: ClaimedDelivery) -> list[int] | None:
    """Lock what is due before a delivery to the same channel; None while another sender has some of it."""
    key = _key(delivery) | {"within": BEGINS_WITHIN}
    waiting = connection.execute(text(f"SELECT count(*) {_DUE_BEFORE}"), key).scalar_one()
    free = "AND (begun_at IS NULL OR begun_at < now() - CAST(:within AS interval)) FOR UPDATE SKIP LOCKED"
    locked = list(connection.scalars(text(f"SELECT id {_DUE_BEFORE} {free}"), key))
    return None if len(locked) < waiting else locked


def trigger_tries(connection: Connection, delivery: ClaimedDelivery) -> list[TriggerTry]:
    """What happened to the triggers of a delivery's incident at its channel."""
    rows = connection.execute(
        text("""
        SELECT DISTINCT d.state, d.begun_at IS NOT NULL OR EXISTS (
            SELECT 1 FROM delivery_attempts a
            WHERE a.project_id = d.project_id AND a.delivery_id = d.id AND a.outcome NOT IN ('refused', 'unready')
        ) AS may_have_arrived
        FROM deliveries d
        WHERE d.project_id = :p AND d.incident_id = :i AND d.channel_id = :c AND d.action = 'trigger'
        """),
        _key(delivery),
    ).mappings()
    return [TriggerTry(**row) for row in rows]


def told_before(connection: Connection, delivery: ClaimedDelivery) -> list[ToldReason]:
    """What the channel of a delivery was told of its incident, up to this delivery."""
    rows = connection.execute(
        text(f"{TRIGGERS} AND d.incident_id = :i AND d.id <= :id ORDER BY d.id"), _key(delivery)
    ).mappings()
    return [reason for row in rows for reason in told_in(dict(row))]


# Triggers of a channel, each with what of it is over.
TRIGGERS = """
SELECT d.id, d.incident_id, d.dedup_key, d.created_at, d.content,
       d.state = 'sent' OR d.attempts > 0 AS was_tried, (
    SELECT jsonb_object_agg(n.kind, n.over_at) FROM notified_reasons n
    WHERE n.project_id = d.project_id AND n.incident_id = d.incident_id AND n.over_at IS NOT NULL
      AND n.number = CAST(d.content ->> 'number' AS int)) AS over
FROM deliveries d WHERE d.project_id = :p AND d.channel_id = :c AND d.action = 'trigger'
"""


def told_in(row: Mapping[str, Any]) -> list[ToldReason]:
    """What one row of `TRIGGERS` told of."""
    over = {kind: datetime.fromisoformat(at) for kind, at in (row["over"] or {}).items()}
    return told_reasons(row["content"], over, was_tried=row["was_tried"])


def _key(delivery: ClaimedDelivery) -> dict[str, Any]:
    return {"p": delivery.project_id, "i": delivery.incident_id, "c": delivery.channel_id, "id": delivery.id}


def postpone(connection: Connection, delivery: ClaimedDelivery, by: timedelta) -> None:
    """Let a delivery wait; it is given up so much later too."""
    connection.execute(
        text("""
        UPDATE deliveries SET due_at = now() + CAST(:by AS interval),
            give_up_at = give_up_at + CAST(:by AS interval)
        WHERE project_id = :p AND id = :id
        """),
        {"p": delivery.project_id, "id": delivery.id, "by": by},
    )


def supersede(connection: Connection, project_id: int, ids: list[int]) -> None:
    connection.execute(
        text("UPDATE deliveries SET state = 'superseded' WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": ids},
    )


def supersede_waiting(connection: Connection, project_id: int, incident_id: int) -> None:
    """Take back the escalations and repeats of an incident that were not tried yet."""
    connection.execute(
        text("""
        UPDATE deliveries SET state = 'superseded'
        WHERE project_id = :p AND incident_id = :i AND action = 'trigger' AND state = 'due' AND attempts = 0
          AND reason IN ('escalation', 'repeat')
        """),
        {"p": project_id, "i": incident_id},
    )


def record_attempt(
    connection: Connection, delivery: ClaimedDelivery, attempt: Attempt, verdict: DeliveryVerdict
) -> None:
    connection.execute(
        text("""
        UPDATE deliveries SET state = :state, attempts = attempts + 1, begun_at = NULL,
            sent_at = CASE WHEN :state = 'sent' THEN now() END,
            due_at = now() + coalesce(CAST(:retry_in AS interval), interval '0')
        WHERE project_id = :p AND id = :id
        """),
        {"p": delivery.project_id, "id": delivery.id, "state": verdict.state, "retry_in": verdict.retry_in},
    )
    _log_attempt(connection, delivery, attempt)


def record_unready(
    connection: Connection, delivery: ClaimedDelivery, attempt: Attempt, retry_in: timedelta
) -> bool:
    """Leave a delivery due that this service is not set up to send; return whether that is new.

    It is no attempt, and the time in which to give up begins anew. The log has it once, however long it lasts.
    """
    key = {"p": delivery.project_id, "id": delivery.id}
    connection.execute(
        text("""
        UPDATE deliveries SET due_at = now() + CAST(:retry_in AS interval), begun_at = NULL,
            give_up_at = now() + CAST(:give_up_after AS interval)
        WHERE project_id = :p AND id = :id
        """),
        {**key, "retry_in": retry_in, "give_up_after": GIVE_UP_AFTER},
    )
    last = connection.execute(
        text("""
        SELECT outcome FROM delivery_attempts WHERE project_id = :p AND delivery_id = :id ORDER BY id DESC LIMIT 1
        """),
        key,
    ).scalar()
    if last == attempt.outcome:
        return False
    _log_attempt(connection, delivery, attempt)
    return True


def _log_attempt(connection: Connection, delivery: ClaimedDelivery, attempt: Attempt) -> None:
    connection.execute(
        text("""
        INSERT INTO delivery_attempts (project_id, delivery_id, status, answer, outcome, took_ms)
        VALUES (:p, :id, :status, :answer, :outcome, :took_ms)
        """),
        {
            "p": delivery.project_id,
            "id": delivery.id,
            "status": attempt.status,
            "answer": attempt.answer,
            "outcome": attempt.outcome,
            "took_ms": attempt.took_ms,
        },
    )


def untold_channels(connection: Connection, project_id: int, incident_id: int) -> list[int]:
    """The channels in use that have somebody to tell and no delivery of an incident."""
    return list(
        connection.scalars(
            text(f"""
            SELECT c.id FROM channels c
            WHERE c.project_id = :p AND c.disabled_at IS NULL AND {REACHABLE} AND NOT EXISTS (
                SELECT 1 FROM deliveries d WHERE d.project_id = :p AND d.incident_id = :i AND d.channel_id = c.id)
            """),  # noqa: S608
            {"p": project_id, "i": incident_id},
        )
    )


def is_due(connection: Connection) -> bool:
    statement = text("SELECT EXISTS (SELECT 1 FROM deliveries WHERE state = 'due' AND due_at <= now())")
    return bool(connection.execute(statement).scalar_one())


@dataclass(frozen=True)
class OutboxBacklog:
    """`oldest_s`: since when something that could go out has not; `retrying` and `dead` of the last day."""

    oldest_s: float
    retrying: int
    dead: int


def outbox_backlog(connection: Connection) -> OutboxBacklog:
    row = connection.execute(
        text("""
        SELECT coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE state = 'due' AND attempts = 0)), 0)
                   AS oldest_s,
               count(*) FILTER (WHERE state = 'due' AND attempts > 0) AS retrying,
               count(*) FILTER (WHERE state = 'dead') AS dead
        FROM deliveries WHERE state = 'due' OR (state = 'dead' AND created_at > now() - interval '1 day')
        """)
    ).one()
    return OutboxBacklog(max(0.0, float(row.oldest_s)), row.retrying, row.dead)


def undelivered(connection: Connection) -> int:
    """Deliveries of incidents that were given up in the last day, at channels that have sent nothing since."""
    statement = text("""
    SELECT count(*) FROM deliveries d
    JOIN channels c ON c.project_id = d.project_id AND c.id = d.channel_id AND c.disabled_at IS NULL
    WHERE d.state = 'dead' AND d.incident_id IS NOT NULL AND d.due_at > now() - interval '1 day' AND NOT EXISTS (
        SELECT 1 FROM deliveries e WHERE e.project_id = d.project_id AND e.channel_id = d.channel_id
        AND e.state = 'sent' AND e.sent_at > d.due_at)
    """)
    return int(connection.execute(statement).scalar_one())


@dataclass(frozen=True)
class LastTrigger:
    """The newest trigger of an open incident at a channel that wants it repeated."""

    project_id: int
    incident_id: int
    channel_id: int
    state: str
    sent_at: datetime | None
    repeat_minutes: float
    content: dict[str, Any]
    now: datetime


def triggers_to_repeat(connection: Connection) -> list[LastTrigger]:
    """Of incidents that nobody has taken on."""
    rows = connection.execute(
        text("""
        SELECT last.project_id, last.incident_id, last.channel_id, last.state, last.sent_at, last.content,
               CAST(c.routing ->> 'repeat_minutes' AS float) AS repeat_minutes, now() AS now
        FROM (SELECT DISTINCT ON (project_id, incident_id, channel_id) * FROM deliveries
              WHERE action = 'trigger' AND state <> 'superseded' AND incident_id IS NOT NULL
              ORDER BY project_id, incident_id, channel_id, id DESC) last
        JOIN incidents i ON i.project_id = last.project_id AND i.id = last.incident_id AND i.state = 'firing'
        JOIN channels c ON c.project_id = last.project_id AND c.id = last.channel_id AND c.disabled_at IS NULL
        WHERE c.routing ? 'repeat_minutes'
        """)
    ).mappings()
    return [LastTrigger(**row) for row in rows]
