"""The outbox: what has to be told to whom, claimed in the order of each incident and channel, sent, marked sent.

A claim is a row lock held while it is sent. A killed sender's lock vanishes with its connection; the delivery is
due again and keeps its id and its key, so that the other side can tell that it is the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, text

from gapwatch.channels.message import Attempt
from gapwatch.watching.routing import PlannedDelivery

GIVE_UP_AFTER = timedelta(hours=24)
# Whether the channel `c` has anybody to tell: mail needs an address that has confirmed.
REACHABLE = """
(c.kind <> 'email' OR EXISTS (
    SELECT 1 FROM mail_addresses a
    WHERE a.project_id = c.project_id AND a.confirmed_at IS NOT NULL AND c.config -> 'to' ? a.address))
"""
Action = Literal["trigger", "acknowledge", "resolve", "test", "confirm"]


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


def enqueue_notification(
    connection: Connection,
    project_id: int,
    incident_id: int,
    planned: Sequence[PlannedDelivery],
    content: Mapping[str, Any],
) -> int:
    """Tell these channels of an incident; how many there are."""
    for one in planned:
        _enqueue(connection, project_id, incident_id, one.channel_id, "trigger", content, one.due_at, one.reason)
    return len(planned)


def enqueue_to_informed(
    connection: Connection, project_id: int, incident_id: int, action: Action, told: Mapping[str, Any]
) -> None:
    """Tell what became of an incident to every channel that was, or is about to be, told of it."""
    row = connection.execute(
        text("SELECT content FROM incidents WHERE project_id = :p AND id = :i"),
        {"p": project_id, "i": incident_id},
    ).one()
    content = {**row.content, **{name: value for name, value in told.items() if value is not None}}
    channels = connection.scalars(
        text("""
        SELECT DISTINCT channel_id FROM deliveries
        WHERE project_id = :p AND incident_id = :i AND action = 'trigger' AND state <> 'superseded' ORDER BY 1
        """),
        {"p": project_id, "i": incident_id},
    ).all()
    for channel_id in channels:
        _enqueue(connection, project_id, incident_id, channel_id, action, content, None, "change")


def enqueue_test(connection: Connection, project_id: int, channel_id: int, content: Mapping[str, Any]) -> int:
    return _enqueue(connection, project_id, None, channel_id, "test", content, None, "test")


def enqueue_confirmation(connection: Connection, project_id: int, channel_id: int, address: str) -> int:
    """Ask an address whether it wants alerts. The link is made when it is sent, and is nowhere stored."""
    content = {"address": address, "headline": f"May alerts be sent to {address}?"}
    return _enqueue(connection, project_id, None, channel_id, "confirm", content, None, "confirmation")


def _enqueue(
    connection: Connection,
    project_id: int,
    incident_id: int | None,
    channel_id: int,
    action: Action,
    content: Mapping[str, Any],
    due_at: datetime | None,
    reason: str,
) -> int:
    return int(
        connection.execute(
            text("""
            INSERT INTO deliveries
                (project_id, incident_id, channel_id, action, dedup_key, content, due_at, reason, give_up_at)
            SELECT :p, :i, :channel, :action,
                   CASE WHEN CAST(:i AS int) IS NULL THEN 'gapwatch/' || slug || '/' || :action
                        ELSE 'gapwatch/' || slug || '/' || CAST(:i AS int) END,
                   CAST(:content AS jsonb), coalesce(CAST(:due AS timestamptz), now()), :reason,
                   coalesce(CAST(:due AS timestamptz), now()) + CAST(:give_up AS interval)
            FROM projects WHERE id = :p RETURNING id
            """),
            {
                "p": project_id,
                "i": incident_id,
                "channel": channel_id,
                "action": action,
                "content": json.dumps(content),
                "due": due_at,
                "reason": reason,
                "give_up": GIVE_UP_AFTER,
            },
        ).scalar_one()
    )


# The first of its incident and channel, or a resolve, which decides on all before it: a killed sender may have
# told of what is marked as never tried.
_CLAIM = text("""
SELECT d.project_id, d.id, d.incident_id, d.channel_id, d.action, d.dedup_key, d.content, d.attempts, d.created_at,
       d.give_up_at, d.reason, c.kind, c.config, c.secret, c.disabled_at IS NULL
FROM deliveries d JOIN channels c ON c.project_id = d.project_id AND c.id = d.channel_id
WHERE d.state = 'due' AND d.due_at <= now() AND (d.incident_id IS NULL OR d.action = 'resolve' OR NOT EXISTS (
    SELECT 1 FROM deliveries e WHERE e.project_id = d.project_id AND e.incident_id = d.incident_id
    AND e.channel_id = d.channel_id AND e.state = 'due' AND (e.id < d.id OR e.action = 'resolve')))
ORDER BY d.due_at, d.id LIMIT 1 FOR UPDATE OF d SKIP LOCKED
""")
_BEFORE = """
FROM deliveries WHERE project_id = :p AND incident_id = :i AND channel_id = :c AND state = 'due' AND id < :id
"""


def claim(connection: Connection) -> ClaimedDelivery | None:
    """The next delivery that may go out, locked. None if there is none, or another sender has its forerunner.

    A resolve makes what is still due before it needless: a trigger after its resolve would open an incident that
    nobody ever closes. What was never due before it was over is not told at all.
    """
    row = connection.execute(_CLAIM).first()
    if row is None:
        return None
    delivery = ClaimedDelivery(*row)
    if delivery.incident_id is None:
        return delivery
    place = {"p": delivery.project_id, "i": delivery.incident_id, "c": delivery.channel_id, "id": delivery.id}
    if delivery.action == "resolve":
        waiting = connection.execute(text(f"SELECT count(*) {_BEFORE}"), place).scalar_one()
        free = connection.execute(
            text(f"SELECT id, action, attempts, due_at, created_at {_BEFORE} FOR UPDATE SKIP LOCKED"), place
        ).all()
        if len(free) < waiting:
            _wait_a_moment(connection, delivery)
            return None
        _supersede(connection, delivery.project_id, [one.id for one in free])
        held = [one for one in free if one.action == "trigger" and not one.attempts]
        needless = not _was_told(connection, place) and all(_never_due(one, delivery) for one in held)
    elif delivery.action == "acknowledge":
        needless = not _was_told(connection, place)
    else:
        state, acknowledged = connection.execute(_INCIDENT, place).one()
        needless = state == "resolved" or (acknowledged and delivery.reason in {"escalation", "repeat"})
    if needless and delivery.reason != "fallback":
        _supersede(connection, delivery.project_id, [delivery.id])
        return claim(connection)
    return delivery


_WAS_TOLD = text("""
SELECT EXISTS (SELECT 1 FROM deliveries WHERE project_id = :p AND incident_id = :i AND channel_id = :c
               AND action = 'trigger' AND (state = 'sent' OR attempts > 0))
""")
_INCIDENT = text("SELECT state, acknowledged_at IS NOT NULL FROM incidents WHERE project_id = :p AND id = :i")


def _was_told(connection: Connection, place: Mapping[str, Any]) -> bool:
    """Whether the channel knows of the incident, or may know."""
    return bool(connection.execute(_WAS_TOLD, place).scalar_one())


def _never_due(trigger: Any, resolve: ClaimedDelivery) -> bool:
    """Held back until after the end, or opened and ended by one step of the watch."""
    return bool(trigger.due_at > resolve.created_at or trigger.created_at == resolve.created_at)


def _wait_a_moment(connection: Connection, delivery: ClaimedDelivery) -> None:
    connection.execute(
        text("UPDATE deliveries SET due_at = now() + interval '1 second' WHERE project_id = :p AND id = :id"),
        {"p": delivery.project_id, "id": delivery.id},
    )


def _supersede(connection: Connection, project_id: int, ids: list[int]) -> None:
    connection.execute(
        text("UPDATE deliveries SET state = 'superseded' WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": ids},
    )


def record_attempt(
    connection: Connection, delivery: ClaimedDelivery, attempt: Attempt, retry_in: timedelta | None
) -> None:
    """Write down what came of it. Without `retry_in` a delivery that was not sent is given up, for people to
    see.
    """
    place = {"p": delivery.project_id, "id": delivery.id}
    state = "sent" if attempt.outcome == "sent" else "dead" if retry_in is None else "due"
    connection.execute(
        text("""
        UPDATE deliveries SET state = :state, attempts = attempts + 1,
            sent_at = CASE WHEN :state = 'sent' THEN now() END,
            due_at = now() + coalesce(CAST(:retry AS interval), interval '0')
        WHERE project_id = :p AND id = :id
        """),
        {**place, "state": state, "retry": retry_in},
    )
    connection.execute(
        text("""
        INSERT INTO delivery_attempts (project_id, delivery_id, status, answer, outcome, took_ms)
        VALUES (:p, :id, :status, :answer, :outcome, :took)
        """),
        {
            **place,
            "status": attempt.status,
            "answer": attempt.answer,
            "outcome": attempt.outcome,
            "took": attempt.took_ms,
        },
    )
    if state == "dead" and delivery.action in {"trigger", "resolve"} and delivery.incident_id is not None:
        _tell_another_channel(connection, delivery)


def _tell_another_channel(connection: Connection, delivery: ClaimedDelivery) -> None:
    """Tell the channel's fallback what could not be delivered, or another channel that has not got it."""
    place = {"p": delivery.project_id, "i": delivery.incident_id, "c": delivery.channel_id}
    other = connection.execute(
        text(f"""
        SELECT c.id FROM channels failed JOIN channels c ON c.project_id = failed.project_id AND c.id <> failed.id
        WHERE failed.project_id = :p AND failed.id = :c AND c.disabled_at IS NULL AND {REACHABLE} AND NOT EXISTS (
            SELECT 1 FROM deliveries d WHERE d.project_id = :p AND d.incident_id = :i AND d.channel_id = c.id)
        ORDER BY (c.id = CAST(failed.routing ->> 'fallback' AS int)) DESC NULLS LAST, c.id LIMIT 1
        """),  # noqa: S608
        place,
    ).scalar()
    if other is not None and delivery.incident_id is not None:
        _enqueue(
            connection,
            delivery.project_id,
            delivery.incident_id,
            other,
            delivery.action,
            {**delivery.content, "instead_of_channel": delivery.channel_id},
            None,
            "fallback",
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


def outbox_state(connection: Connection) -> OutboxBacklog:
    row = connection.execute(
        text("""
        SELECT coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE state = 'due' AND attempts = 0)), 0),
               count(*) FILTER (WHERE state = 'due' AND attempts > 0),
               count(*) FILTER (WHERE state = 'dead')
        FROM deliveries WHERE state = 'due' OR (state = 'dead' AND created_at > now() - interval '1 day')
        """)
    ).one()
    return OutboxBacklog(max(0.0, float(row[0])), int(row[1]), int(row[2]))


def repeats_due(connection: Connection) -> int:
    """Tell again of incidents that nobody took on, to the channels that ask for it; how many."""
    done = connection.execute(
        text("""
        INSERT INTO deliveries
            (project_id, incident_id, channel_id, action, dedup_key, content, reason, give_up_at)
        SELECT last.project_id, last.incident_id, last.channel_id, 'trigger', last.dedup_key, i.content, 'repeat',
               now() + CAST(:give_up AS interval)
        FROM (SELECT DISTINCT ON (project_id, incident_id, channel_id) * FROM deliveries
              WHERE action = 'trigger' AND state <> 'superseded' AND incident_id IS NOT NULL
              ORDER BY project_id, incident_id, channel_id, id DESC) last
        JOIN incidents i ON i.project_id = last.project_id AND i.id = last.incident_id AND i.state = 'firing'
        JOIN channels c ON c.project_id = last.project_id AND c.id = last.channel_id AND c.disabled_at IS NULL
        WHERE last.state = 'sent' AND c.routing ? 'repeat_minutes'
          AND last.sent_at < now() - CAST(c.routing ->> 'repeat_minutes' AS float) * interval '1 minute'
        """),
        {"give_up": GIVE_UP_AFTER},
    )
    return int(done.rowcount)
