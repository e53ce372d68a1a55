"""Deliveries: which are needless, when to try again, when to give up, who is told instead, when to repeat."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

Action = Literal["trigger", "acknowledge", "resolve", "test", "confirm", "rollout", "digest"]

GIVE_UP_AFTER = timedelta(hours=24)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 600.0
UNREADY_PAUSE = timedelta(seconds=30)
# How long a resolve waits for a trigger that another sender is sending. One who has begun and still holds no lock
# after the second time was killed.
WAIT_FOR_OTHERS, BEGINS_WITHIN = timedelta(seconds=1), timedelta(seconds=5)


def dedup_key(project: str, incident_id: int | None, action: Action) -> str:
    """One key an incident, so that the other side can tell what belongs together."""
    return f"gapwatch/{project}/{action if incident_id is None else incident_id}"


@dataclass(frozen=True)
class TriggerTry:
    """What happened to a trigger of an incident at a channel.

    `may_have_arrived`: an attempt was not refused, or a sender began one and nobody knows what came of it.
    """

    state: str
    may_have_arrived: bool


def may_know(triggers: Sequence[TriggerTry]) -> bool:
    """Whether a channel knows of an incident, or may: an attempt without an answer may have arrived."""
    return any(trigger.state == "sent" or trigger.may_have_arrived for trigger in triggers)


def is_needless_resolve(*, channel_may_know: bool) -> bool:
    """Whether a resolve need not be sent: no trigger of it can have arrived, so there is nothing to end.

    It takes the place of everything due before it: a trigger after its resolve would open an incident that nobody
    ever closes.
    """
    return not channel_may_know


def is_needless_acknowledge(reason: str, *, channel_may_know: bool) -> bool:
    return reason != "fallback" and not channel_may_know


def is_needless_trigger(reason: str, incident_state: str, *, is_acknowledged: bool) -> bool:
    """Whether a trigger need not be sent: it is over, or somebody has taken it on before it escalated."""
    if reason == "fallback":
        return False
    return incident_state == "resolved" or (is_acknowledged and reason in {"escalation", "repeat"})


@dataclass(frozen=True)
class DeliveryVerdict:
    """What becomes of a delivery after an attempt."""

    state: Literal["sent", "due", "dead"]
    retry_in: timedelta | None = None


def after_attempt(
    action: Action,
    outcome: Literal["sent", "retry", "refused", "unready"],
    *,
    attempts: int,
    retry_after_s: float | None,
    jitter: float,
    now: datetime,
    give_up_at: datetime,
) -> DeliveryVerdict:
    """`attempts` counts this one. A refusal is final, and so is every answer to a test.

    What this service is not set up to send stays due without end: it is mended here, and nothing is lost by then.
    """
    if outcome == "sent":
        return DeliveryVerdict("sent")
    if outcome == "unready" and action != "test":
        return DeliveryVerdict("due", UNREADY_PAUSE)
    retry_in = timedelta(seconds=pause_s(attempts, retry_after_s, jitter))
    if outcome in {"refused", "unready"} or action == "test" or now + retry_in > give_up_at:
        return DeliveryVerdict("dead")
    return DeliveryVerdict("due", retry_in)


def pause_s(attempts: int, retry_after_s: float | None, jitter: float) -> float:
    """5, 10, 20 … seconds up to ten minutes, times the jitter; never sooner than the other side asks for."""
    planned = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 20))
    return max(planned * jitter, retry_after_s or 0.0)


def needs_another_channel(
    action: Action, incident_id: int | None, verdict: DeliveryVerdict, *, is_newly_unready: bool = False
) -> bool:
    """Whether what could not be delivered, or cannot be for now, must reach people some other way. That something
    is over is only for who knows that it began.
    """
    is_stuck = verdict.state == "dead" or is_newly_unready
    return is_stuck and incident_id is not None and action == "trigger"


def choose_other_channel(fallback: int | None, untold: Collection[int]) -> int | None:
    """The fallback if it has not been told, else the oldest channel that has not."""
    if fallback is not None and fallback in untold:
        return fallback
    return min(untold, default=None)


def is_repeat_due(state: str, sent_at: datetime | None, repeat_minutes: float, now: datetime) -> bool:
    """Whether to tell again of an incident that nobody took on, going by the newest trigger of a channel."""
    if state != "sent" or sent_at is None:
        return False
    return sent_at < now - timedelta(minutes=repeat_minutes)
