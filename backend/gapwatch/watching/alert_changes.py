"""What an input does to an alert, and which alerts an input reaches. Decides; the store writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gapwatch.watching.states import Input, State, move

# A series that opens again within this time after it was resolved has regressed.
REGRESSED_WITHIN = timedelta(days=7)


@dataclass(frozen=True)
class OpenAlert:
    """An alert as it is stored. One that a person acts on may be resolved already."""

    id: int
    rule: str
    kind: str
    series: str
    state: State
    severity: str
    evidence: Mapping[str, Any]
    before_no_data: State | None
    incident_id: int | None
    deployment_id: int
    dry_run: bool
    opened_at: datetime
    state_since: datetime
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    regressed: bool
    escalating: bool

    @property
    def is_in_incidents(self) -> bool:
        """A suspect is not yet one of an incident; one of a rule on trial never is."""
        return self.state != "pending" and not self.dry_run


@dataclass(frozen=True)
class AlertChange:
    """The columns of an alert after an input, and whether channels have to be told."""

    state: State
    before_no_data: State | None
    evidence: Mapping[str, Any]
    state_since: datetime
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    is_told: bool


def change_alert(
    alert: OpenAlert,
    alert_input: Input,
    *,
    actor: str,
    comment: str | None,
    now: datetime,
    evidence: Mapping[str, Any] | None = None,
) -> AlertChange | None:
    """What an input changes; None if nothing. A comment alone is a change: it has a line of history.

    New evidence counts while an alert is pending. From then on it keeps that of its alarm.
    """
    moved = move(alert.state, alert_input, alert.before_no_data)
    is_moved = moved.state != alert.state
    if not is_moved and moved.before == alert.before_no_data and comment is None:
        return None
    takes_evidence = alert.state == "pending" and alert_input in {"suspect", "breach"} and evidence is not None
    resolved_at = None
    if moved.state == "resolved":
        resolved_at = now if is_moved else alert.resolved_at
    acknowledged_at, acknowledged_by = alert.acknowledged_at, alert.acknowledged_by
    if alert_input == "acknowledge" and acknowledged_at is None:
        acknowledged_at, acknowledged_by = now, actor
    return AlertChange(
        state=moved.state,
        before_no_data=moved.before,
        evidence=evidence if takes_evidence and evidence is not None else alert.evidence,
        state_since=now if is_moved else alert.state_since,
        resolved_at=resolved_at,
        acknowledged_at=acknowledged_at,
        acknowledged_by=acknowledged_by,
        is_told=moved.notify is not None,
    )


def opening_state(alert_input: Input) -> State | None:
    """The state in which an input opens an alert; None if it opens none."""
    state = move("ok", alert_input).state
    return None if state == "ok" else state


def has_regressed(last_resolved_at: datetime | None, now: datetime) -> bool:
    return last_resolved_at is not None and last_resolved_at > now - REGRESSED_WITHIN


def changed_at(evidence: Mapping[str, Any]) -> datetime | None:
    """When a series changed, by its detector's estimate; of a silent robot, when it was last heard."""
    at = (evidence.get("change_point") or {}).get("at") or evidence.get("heard_at")
    return None if at is None else datetime.fromisoformat(str(at))


def without_data(alerts: Sequence[OpenAlert]) -> list[OpenAlert]:
    """The alerts that wait while a deployment is silent: all but those of the silence itself."""
    return [alert for alert in alerts if alert.kind != "no_data"]


def of_missing_rules(alerts: Sequence[OpenAlert], rules: Collection[str]) -> list[OpenAlert]:
    """A rule that was removed or switched off has no open alert."""
    return [alert for alert in alerts if alert.rule not in rules]


def acknowledged_with(alert: OpenAlert, open_alerts: Sequence[OpenAlert]) -> list[OpenAlert]:
    """Who takes on an alert takes on its incident: every alert of it that nobody has, and this one."""
    if alert.incident_id is None:
        return [alert]
    return [
        other
        for other in open_alerts
        if other.incident_id == alert.incident_id and (other.state != "acknowledged" or other.id == alert.id)
    ]
