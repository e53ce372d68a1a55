"""Alerts in words for lists and other pages, whatever their rows hold; and those that are open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.frame import Visit
from gapwatch.pages.sentences.incident import reason_name
from gapwatch.pages.words import SEVERITIES
from gapwatch.store.alerting import alert_list
from gapwatch.watching.notification import phrase, sentence
from gapwatch.watching.phrases import AlertReason
from gapwatch.watching.reason_kinds import reason_kind

OPEN = ["pending", "firing", "acknowledged", "no_data"]
# What needs somebody comes first.
URGENCY = ("firing", "no_data", "acknowledged", "pending", "resolved")
# What evidence of another release, or of a hand in the database, may lack.
ODD = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def alert_entry(visit: Visit, row: Mapping[str, Any]) -> AlertEntry:
    incident = row["incident"]["id"] if isinstance(row["incident"], dict) else row["incident"]
    return AlertEntry(
        id=row["id"],
        headline=phrase_of(row),
        rule=row["rule"],
        deployment=row["deployment"],
        site=row["site"],
        severity=row["severity"],
        reason=reason_kind(row["kind"], row["series"]),
        state=row["state"],
        since=row["state_since"],
        opened_at=row["opened_at"],
        acknowledged_by=row["acknowledged_by"],
        dry_run=row["dry_run"],
        incident=incident,
        href=visit.frame.links.to(
            *(("alerts", str(row["id"])) if incident is None else ("incidents", str(incident)))
        ),
    )


def phrase_of(row: Mapping[str, Any]) -> str:
    """What an alert says in a few words; its name where its evidence cannot be read."""
    try:
        return phrase(_reason_of(row))
    except ODD:
        return reason_name(row)


def sentence_of(row: Mapping[str, Any]) -> str:
    """What an alert says as it is sent to people."""
    try:
        return sentence(_reason_of(row))
    except ODD:
        return f"{reason_name(row)} ({row['rule']})."


def _reason_of(row: Mapping[str, Any]) -> AlertReason:
    return AlertReason(
        row["rule"],
        row["kind"],
        row["severity"],
        row["series"],
        row["evidence"] if isinstance(row["evidence"], dict) else {},
        row["opened_at"],
        row["regressed"],
        row["escalating"],
    )


def open_alerts(visit: Visit, deployment: str | None = None) -> list[AlertEntry]:
    """The open alerts of the project or of one deployment, most urgent first; rules on trial are left out."""
    rows = alert_list.alerts_page(
        visit.transaction,
        visit.project_id,
        states=OPEN,
        deployment=deployment,
        severity=None,
        incident=None,
        before_id=None,
        limit=1000,
    )
    entries = [alert_entry(visit, row) for row in rows if not row["dry_run"]]
    return sorted(
        entries, key=lambda entry: (URGENCY.index(entry.state), SEVERITIES.index(entry.severity), entry.id)
    )
