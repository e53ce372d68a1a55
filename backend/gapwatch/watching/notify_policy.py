"""When people are told: one page an incident, more only when it gets more severe, none for flapping."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

SEVERITIES = ("info", "warning", "critical")


def rank(severity: str) -> int:
    return SEVERITIES.index(severity)


def worst(severities: list[str]) -> str:
    return max(severities, key=rank)


@dataclass(frozen=True)
class Page:
    """Whether to tell people now, later or not at all, and why."""

    at: datetime | None
    reason: str


def page_for(
    severity: str,
    *,
    paged_severity: str | None,
    last_page: datetime | None,
    now: datetime,
    flap_minutes: float,
) -> Page:
    """When to tell of an incident that is now of this severity.

    `paged_severity` is that of this incident's own page, if there was one; `last_page` is the last page of the
    deployment in whatever incident. What joins an incident is told only if it is more severe. A new incident
    within `flap_minutes` of the last page waits until they are over, and is told then if it is still open.
    """
    if paged_severity is not None:
        if rank(severity) <= rank(paged_severity):
            return Page(None, "joins an incident that people know of")
        return Page(now, "more severe than what people know of")
    if last_page is not None:
        quiet_until = last_page + timedelta(minutes=flap_minutes)
        if now < quiet_until:
            return Page(quiet_until, "held back: the last page is too recent")
    return Page(now, "new")
