"""One alert as lists and other pages show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gapwatch.watching.reason_kinds import ReasonKind


@dataclass(frozen=True)
class AlertEntry:
    """`href` opens its incident, or itself while it is in none."""

    id: int
    headline: str
    rule: str
    deployment: str
    site: str | None
    severity: str
    reason: ReasonKind
    state: str
    since: datetime
    opened_at: datetime
    acknowledged_by: str | None
    dry_run: bool
    incident: int | None
    href: str
