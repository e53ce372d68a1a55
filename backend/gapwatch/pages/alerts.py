"""`/alerts`: the inbox, worst and newest first, with everything in the address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.filtering import Applied, applied, read_filter
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences.inbox import inbox
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.store.alerting import alert_list
from gapwatch.store.read import fleet
from gapwatch.watching.notification import phrase
from gapwatch.watching.phrases import AlertReason

PAGE = 50
OPEN = ["pending", "firing", "acknowledged", "no_data"]
# What needs somebody comes first.
URGENCY = ("firing", "no_data", "acknowledged", "pending", "resolved")
SEVERITIES = ("critical", "warning", "info")


class AlertFilter(BaseModel):
    model_config = ConfigDict(extra="forbid")

    state: Literal["pending", "firing", "acknowledged", "no_data", "resolved", "all"] | None = Field(None)
    severity: Literal["critical", "warning", "info"] | None = Field(None)
    deployment: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)


@dataclass(frozen=True)
class AlertsPage:
    entries: list[AlertEntry]
    counts: dict[str, int]
    deployments: list[str]
    given: dict[str, list[str]]
    applied: list[Applied]
    problems: list[str]
    older: str | None

    @property
    def headline(self) -> Sentence:
        return inbox(len(self.entries), self.counts, filtered=bool(self.given), more=self.older is not None)


def show_alerts(visit: Visit) -> View:
    asked = read_filter(visit.request, AlertFilter)
    wanted, links = asked.filter, visit.frame.links
    states: list[str] = OPEN if wanted.state is None else [] if wanted.state == "all" else [wanted.state]
    before = visit.request.query_params.get("after", "")
    before_id = int(before) if before.isascii() and before.isdecimal() and len(before) < 10 else None  # noqa: PLR2004
    rows = alert_list.alerts_page(
        visit.transaction,
        visit.project_id,
        states=states,
        deployment=wanted.deployment,
        severity=wanted.severity,
        incident=None,
        before_id=before_id,
        limit=PAGE + 1,
    )
    entries = [alert_entry(visit, row) for row in rows[:PAGE]]
    entries.sort(
        key=lambda entry: (URGENCY.index(entry.state), SEVERITIES.index(entry.severity), -entry.since.timestamp())
    )
    older = None
    if len(rows) > PAGE:
        older = links.to("alerts", **asked.given, after=rows[PAGE - 1]["id"])
    page = AlertsPage(
        entries=entries,
        counts={state: sum(entry.state == state for entry in entries) for state in URGENCY},
        deployments=fleet.deployment_slugs(visit.transaction, visit.project_id),
        given=asked.given,
        applied=applied(links, ("alerts",), asked.given),
        problems=asked.problems,
        older=older,
    )
    return View("alerts.html", page, 422 if asked.problems else 200)


def alert_entry(visit: Visit, row: dict[str, Any]) -> AlertEntry:
    return AlertEntry(
        id=row["id"],
        headline=phrase(reason_of(row)),
        rule=row["rule"],
        deployment=row["deployment"],
        site=row["site"],
        severity=row["severity"],
        state=row["state"],
        since=row["state_since"],
        opened_at=row["opened_at"],
        acknowledged_by=row["acknowledged_by"],
        dry_run=row["dry_run"],
        incident=row["incident"] if isinstance(row["incident"], int) else None,
        href=visit.frame.links.to("alerts", str(row["id"])),
    )


def reason_of(row: dict[str, Any]) -> AlertReason:
    return AlertReason(
        row["rule"],
        row["kind"],
        row["severity"],
        row["series"],
        row["evidence"],
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
