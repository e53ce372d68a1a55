"""Sends what is open again to channels that forget it otherwise: all of a channel at once, every few minutes.

Not through the outbox: nothing is lost when a round is, and a row for every round would bury the log. What people
silenced, or is in maintenance, is left out of the rounds and ends there by itself; afterwards it is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from gapwatch.access.sealing import Sealer
from gapwatch.alerts.deployment_labels import labels_of
from gapwatch.channels.cleaning import cleaned
from gapwatch.channels.egress import Egress
from gapwatch.channels.kinds import CHANNEL_KINDS, read_config
from gapwatch.channels.kinds.alertmanager import ENDED_FOR, RESEND_EVERY
from gapwatch.channels.message import Attempt, Message
from gapwatch.errors import ServiceUnavailable
from gapwatch.store.alerting import alert_transitions, resending
from gapwatch.store.alerting.resending import ResendChannel, ResendRhythm, StandingIncident
from gapwatch.store.alerting.silence_windows import HoldingSilence, holding_silences
from gapwatch.store.core.database import Connection, Database
from gapwatch.watching.reason_kinds import reason_kind

log = structlog.get_logger()

RHYTHM = ResendRhythm(
    kinds=[name for name, kind in CHANNEL_KINDS.items() if kind.resend is not None],
    every=RESEND_EVERY,
    # One that was away gets what is open sooner than one that has it.
    retry_after=timedelta(seconds=30),
    ended_for=ENDED_FOR,
)


def is_resend_due(connection: Connection) -> bool:
    return resending.is_due(connection, RHYTHM)


def resend_open(database: Database, sealer: Sealer, egress: Egress) -> int:
    """Make the round of every channel whose turn it is; return how many there were."""
    done = 0
    while (channel := database.run(_claim)) is not None:
        _resend(database, channel, sealer, egress)
        done += 1
    return done


def _claim(connection: Connection) -> ResendChannel | None:
    return resending.claim_channel(connection, RHYTHM)


def _resend(database: Database, channel: ResendChannel, sealer: Sealer, egress: Egress) -> None:
    def standing(connection: Connection) -> list[StandingIncident]:
        found = resending.standing_incidents(connection, channel, RHYTHM.ended_for)
        return _without_silenced(connection, channel.project_id, found)

    incidents = database.run(standing)
    if not incidents:
        return
    attempt = _try(channel, incidents, sealer, egress)
    if attempt.outcome != "sent" and not channel.failures:
        log.warning("what is open was not taken again", channel_id=channel.id, status=attempt.status)
    elif attempt.outcome == "sent" and channel.failures:
        log.info("what is open is taken again", channel_id=channel.id, after_failures=channel.failures)

    def record(connection: Connection) -> None:
        resending.record_round(connection, channel, attempt)

    database.run(record)


def _without_silenced(
    connection: Connection, project_id: int, incidents: list[StandingIncident]
) -> list[StandingIncident]:
    """Leave out the kinds of reasons of which every open alert is silenced. What is over is told all the same."""
    holding = holding_silences(connection, project_id)
    if not holding:
        return incidents
    kept = []
    for incident in incidents:
        if incident.resolved_at is None:
            silenced = _silenced_kinds(connection, project_id, incident.deployment_id, holding)
            told = [one for one in incident.told if one.over_at is not None or one.kind not in silenced]
            incident = replace(incident, told=told)  # noqa: PLW2901
        if incident.told:
            kept.append(incident)
    return kept


def _silenced_kinds(
    connection: Connection, project_id: int, deployment_id: int, holding: Sequence[HoldingSilence]
) -> set[str]:
    """Kinds of reasons, and "" for what was told without one, of which nothing is to be heard now."""
    labels = labels_of(connection, project_id, deployment_id)
    heard: dict[str, bool] = {}
    for alert in alert_transitions.open_alerts(connection, project_id, deployment_id):
        words = {**labels.words, "rule": alert.rule, "severity": alert.severity}
        is_audible = not any(silence.match.fits(words) for silence in holding)
        for kind in (reason_kind(alert.kind, alert.series), ""):
            heard[kind] = heard.get(kind, False) or is_audible
    return {kind for kind, is_heard in heard.items() if not is_heard}


def _try(channel: ResendChannel, incidents: list[StandingIncident], sealer: Sealer, egress: Egress) -> Attempt:
    send = CHANNEL_KINDS[channel.kind].resend
    assert send is not None  # noqa: S101 - narrows the type
    secrets = sealer.open(channel.sealed)
    if secrets is None:
        return Attempt("unready", None, "the channel's secrets are of another server secret; set them again", 0)
    now = datetime.now(UTC)
    messages = [
        Message(
            id="",
            project=incident.dedup_key.split("/")[1],
            action="trigger" if incident.resolved_at is None else "resolve",
            dedup_key=incident.dedup_key,
            content=incident.content,
            created_at=incident.created_at,
            now=now,
            told=[replace(told, over_at=told.over_at or incident.resolved_at) for told in incident.told],
        )
        for incident in incidents
    ]
    try:
        attempt = send(read_config(channel.kind, channel.config, secrets), messages, egress)
        return cleaned(attempt, secrets, channel.config)
    except ServiceUnavailable:
        raise
    except Exception as error:
        log.exception("channel failed", channel_id=channel.id, kind=channel.kind)
        return Attempt("refused", None, f"the channel failed: {type(error).__name__}", 0)
