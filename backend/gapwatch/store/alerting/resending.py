"""Rows of channels that forget what they are not told again: whose turn it is, what is open there, how it went.

There is one round at a time for a channel. Nothing is written but the channel's own row, however many incidents
are open and however long. What has just ended is part of a round too: one that overtook a resolve is put right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.channels.message import Attempt, ToldReason
from gapwatch.store.alerting.outbox import TRIGGERS, told_in

# So many notifications are kept up at one channel; of more, the newest.
MOST_TRIGGERS = 5000


@dataclass(frozen=True)
class ResendChannel:
    """A channel whose turn it is, with all that sending to it needs."""

    project_id: int
    id: int
    kind: str
    config: dict[str, Any]
    sealed: bytes | None
    failures: int


@dataclass(frozen=True)
class StandingIncident:
    """An incident that a channel was told of, and that is open or was resolved a moment ago."""

    deployment_id: int
    dedup_key: str
    created_at: datetime
    resolved_at: datetime | None
    content: dict[str, Any]
    told: Sequence[ToldReason]


_STANDS = "(i.state <> 'resolved' OR i.resolved_at > now() - CAST(:ended_for AS interval))"
# Channels that were told of what is still open, and not lately.
_DUE = f"""
c.kind = ANY(:kinds) AND c.disabled_at IS NULL
AND (c.resend_tried_at IS NULL
     OR c.resend_tried_at <= now() - CASE WHEN c.resend_failures > 0 THEN CAST(:retry_after AS interval)
                                          ELSE CAST(:every AS interval) END)
AND EXISTS (SELECT 1 FROM incidents i WHERE i.project_id = c.project_id AND {_STANDS} AND EXISTS (
    SELECT 1 FROM deliveries d WHERE d.project_id = c.project_id AND d.incident_id = i.id
    AND d.channel_id = c.id AND d.action = 'trigger' AND d.state = 'sent'))
"""  # noqa: S608


@dataclass(frozen=True)
class ResendRhythm:
    """Which kinds of channels forget, how often they are told, how soon after a failure, how long of an end."""

    kinds: Sequence[str]
    every: timedelta
    retry_after: timedelta
    ended_for: timedelta


def is_due(connection: Connection, rhythm: ResendRhythm) -> bool:
    statement = text(f"SELECT EXISTS (SELECT 1 FROM channels c WHERE {_DUE})")  # noqa: S608
    return bool(connection.execute(statement, asdict(rhythm)).scalar_one())


def claim_channel(connection: Connection, rhythm: ResendRhythm) -> ResendChannel | None:
    """Take the next channel whose turn it is. A sender that is killed leaves it to the next round."""
    row = (
        connection.execute(
            text(f"""
            UPDATE channels SET resend_tried_at = now() WHERE (project_id, id) = (
                SELECT c.project_id, c.id FROM channels c WHERE {_DUE}
                ORDER BY c.resend_tried_at NULLS FIRST LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING project_id, id, kind, config, secret AS sealed, resend_failures AS failures
            """),  # noqa: S608
            asdict(rhythm),
        )
        .mappings()
        .first()
    )
    return None if row is None else ResendChannel(**row)


def standing_incidents(
    connection: Connection, channel: ResendChannel, ended_for: timedelta
) -> list[StandingIncident]:
    """What a channel took a trigger of and that is open, or has just ended."""
    rows = connection.execute(
        text(f"""
        SELECT told.*, i.resolved_at, i.deployment_id FROM ({TRIGGERS} AND d.state = 'sent') told
        JOIN incidents i ON i.project_id = :p AND i.id = told.incident_id AND {_STANDS}
        ORDER BY told.id DESC LIMIT :most
        """),  # noqa: S608
        {"p": channel.project_id, "c": channel.id, "most": MOST_TRIGGERS, "ended_for": ended_for},
    ).mappings()
    by_incident: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_incident.setdefault(row["incident_id"], []).append(dict(row))
    return [
        StandingIncident(
            newest["deployment_id"],
            newest["dedup_key"],
            newest["created_at"],
            newest["resolved_at"],
            newest["content"],
            [told for row in reversed([newest, *earlier]) for told in told_in(row)],
        )
        for newest, *earlier in by_incident.values()
    ]


def record_round(connection: Connection, channel: ResendChannel, attempt: Attempt) -> None:
    connection.execute(
        text("""
        UPDATE channels SET resend_answer = :answer,
            resent_at = CASE WHEN :sent THEN now() ELSE resent_at END,
            resend_failures = CASE WHEN :sent THEN 0 ELSE resend_failures + 1 END
        WHERE project_id = :p AND id = :id
        """),
        {
            "p": channel.project_id,
            "id": channel.id,
            "answer": attempt.answer,
            "sent": attempt.outcome == "sent",
        },
    )


def failing_channels(connection: Connection) -> int:
    """How many channels did not take what is open when it was last sent there again."""
    statement = text("SELECT count(*) FROM channels WHERE resend_failures > 0 AND disabled_at IS NULL")
    return int(connection.execute(statement).scalar_one())
