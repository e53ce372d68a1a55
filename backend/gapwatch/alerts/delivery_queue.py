"""The outbox as senders see it: what is next, what came of it, what is told again."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from gapwatch.alerts.deployment_labels import labels_of
from gapwatch.channels.message import Attempt
from gapwatch.store.alerting import alert_settings, incidents, outbox, silence_windows
from gapwatch.store.alerting.outbox import ClaimedDelivery
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Connection
from gapwatch.watching import delivery_policy
from gapwatch.watching.delivery_policy import DeliveryVerdict

MAINTENANCE_LOOK = timedelta(minutes=1)


def claim(connection: Connection) -> ClaimedDelivery | None:
    """Choose the next delivery to go out and note that it is begun; None if there is none, or another sender is at
    its forerunner. It is sent in a transaction of its own, so that what was begun is known after a kill.
    """
    while True:
        delivery = outbox.lock_next_due(connection)
        if delivery is None:
            return None
        if delivery.action == "resolve" and delivery.incident_id is not None:
            earlier = outbox.lock_due_before(connection, delivery)
            if earlier is None:
                outbox.postpone(connection, delivery, delivery_policy.WAIT_FOR_OTHERS)
                return None
            outbox.supersede(connection, delivery.project_id, earlier)
            is_needless = delivery_policy.is_needless_resolve(channel_may_know=_may_know(connection, delivery))
        else:
            is_needless = _is_needless(connection, delivery)
        if not is_needless:
            if delivery.action == "trigger" and _waits_for_maintenance(connection, delivery):
                continue
            outbox.begin(connection, delivery)
            return delivery
        outbox.supersede(connection, delivery.project_id, [delivery.id])


def _waits_for_maintenance(connection: Connection, delivery: ClaimedDelivery) -> bool:
    """Hold a trigger back while its deployment is in maintenance, a minute at a time: that may be ended early."""
    if delivery.incident_id is None:
        return False
    deployment_id = incidents.deployment_of(connection, delivery.project_id, delivery.incident_id)
    words = labels_of(connection, delivery.project_id, deployment_id).words
    ends_at = silence_windows.maintenance_until(connection, delivery.project_id, words)
    if ends_at is None:
        return False
    outbox.postpone(connection, delivery, min(MAINTENANCE_LOOK, ends_at - now(connection)))
    return True


def _is_needless(connection: Connection, delivery: ClaimedDelivery) -> bool:
    if delivery.incident_id is None:
        return False
    if delivery.action == "acknowledge":
        return delivery_policy.is_needless_acknowledge(
            delivery.reason, channel_may_know=_may_know(connection, delivery)
        )
    incident = incidents.incident_state(connection, delivery.project_id, delivery.incident_id)
    return delivery_policy.is_needless_trigger(
        delivery.reason, incident.state, is_acknowledged=incident.is_acknowledged
    )


def _may_know(connection: Connection, delivery: ClaimedDelivery) -> bool:
    return delivery_policy.may_know(outbox.trigger_tries(connection, delivery))


def record_attempt(connection: Connection, delivery: ClaimedDelivery, attempt: Attempt) -> DeliveryVerdict:
    """Write down an attempt, and tell another channel if this one is given up or cannot be used for now."""
    verdict = delivery_policy.after_attempt(
        delivery.action,
        attempt.outcome,
        attempts=delivery.attempts + 1,
        retry_after_s=attempt.retry_after_s,
        jitter=random.uniform(0.75, 1.25),  # noqa: S311 - no secret
        now=datetime.now(UTC),
        give_up_at=delivery.give_up_at,
    )
    is_newly_unready = False
    if attempt.outcome == "unready" and verdict.retry_in is not None:
        is_newly_unready = outbox.record_unready(connection, delivery, attempt, verdict.retry_in)
    else:
        outbox.record_attempt(connection, delivery, attempt, verdict)
    if delivery_policy.needs_another_channel(
        delivery.action, delivery.incident_id, verdict, is_newly_unready=is_newly_unready
    ):
        _tell_another_channel(connection, delivery)
    return verdict


def _tell_another_channel(connection: Connection, delivery: ClaimedDelivery) -> None:
    assert delivery.incident_id is not None  # noqa: S101 - narrows the type
    [failed] = alert_settings.channels(connection, delivery.project_id, delivery.channel_id)
    other = delivery_policy.choose_other_channel(
        failed.routing.fallback, outbox.untold_channels(connection, delivery.project_id, delivery.incident_id)
    )
    if other is not None:
        content = {**delivery.content, "instead_of_channel": delivery.channel_id}
        outbox.enqueue(
            connection,
            delivery.project_id,
            other,
            delivery.action,
            content,
            incident_id=delivery.incident_id,
            reason="fallback",
        )


def enqueue_repeats(connection: Connection) -> None:
    """Tell again of incidents that nobody took on, to the channels that ask for it."""
    for last in outbox.triggers_to_repeat(connection):
        if delivery_policy.is_repeat_due(last.state, last.sent_at, last.repeat_minutes, last.now):
            outbox.enqueue(
                connection,
                last.project_id,
                last.channel_id,
                "trigger",
                last.content,
                incident_id=last.incident_id,
                reason="repeat",
            )
