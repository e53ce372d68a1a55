"""When people are told: one notification an incident, more only when it gets more severe, none for flapping."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

SEVERITIES = ("info", "warning", "critical")


def rank(severity: str) -> int:
    return SEVERITIES.index(severity)


def worst(severities: list[str]) -> str:
    return max(severities, key=rank)


@dataclass(frozen=True)
class Notification:
    """Whether to tell people now, later or not at all, and why."""

    at: datetime | None
    reason: str


def notification_for(
    severity: str,
    *,
    notified_severity: str | None,
    last_notified_at: datetime | None,
    now: datetime,
    flap_minutes: float,
) -> Notification:
    """When to tell of an incident that is now of this severity.

    `notified_severity` is what people were told of this incident, None if nothing; `last_notified_at` is when they
    were last told of the deployment, in whatever incident. What joins an incident is told only if it is more
    severe. A new incident within `flap_minutes` of the last notification waits until they are over, and is told
    then if it is still open.
    """
    if notified_severity is not None:
        if rank(severity) <= rank(notified_severity):
            return Notification(None, "joins an incident that people know of")
        return Notification(now, "more severe than what people know of")
    if last_notified_at is not None:
        quiet_until = last_notified_at + timedelta(minutes=flap_minutes)
        if now < quiet_until:
            return Notification(quiet_until, "held back: the last notification is too recent")
    return Notification(now, "new")


def is_over(severities: list[str], notified_severity: str | None) -> bool:
    """Whether an incident is over, by the severities of its alerts that are still open.

    Something that is merely worth knowing does not keep open what people were told of as a warning.
    """
    return all(severity == "info" and notified_severity not in {None, "info"} for severity in severities)
