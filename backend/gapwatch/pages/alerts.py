"""`/alerts`: the inbox of incidents, one row each: the most severe first, then what loses most now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.answers.incident_standing import IncidentStanding, incident_standings
from gapwatch.pages.alert_words import phrase_of
from gapwatch.pages.filtering import read_filter
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences import incident as sentences
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.pages.sparklines import Spark, sparkline
from gapwatch.pages.words import SEVERITIES
from gapwatch.store.alerting import incident_counts, incident_list, watch_queue
from gapwatch.store.people.members import members

PAGE = 50
# At most one incident of a deployment is open.
MOST_OPEN = 300
SPARK_DAYS = 30
ME = "me"


class InboxFilter(BaseModel):
    """`open` and `resolved` are the two lists; the other states are parts of the first."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["open", "firing", "acknowledged", "resolved", "all"] = Field("open")
    severity: Literal["critical", "warning", "info"] | None = Field(None)
    owner: Annotated[str, StringConstraints(max_length=256)] | None = Field(None)
    deployment: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)


@dataclass(frozen=True)
class IncidentEntry:
    id: int
    deployment: str
    site: str | None
    severity: str
    state: str
    owner: str | None
    alerts: int
    reasons: str
    phrase: str
    standing: IncidentStanding
    changed_at: datetime
    age: str
    opened_at: datetime
    resolved_at: datetime | None
    spark: Spark | None
    # Where the change stands in the sparkline, in per cent; None if it lies before it.
    spark_change: float | None
    href: str

    @property
    def numbers(self) -> Sentence:
        return sentences.now_against_before(self.standing)


@dataclass(frozen=True)
class InboxPage:
    entries: list[IncidentEntry]
    state: str
    owners: list[str]
    given: dict[str, list[str]]
    problems: list[str]
    older: str | None

    @property
    def headline(self) -> Sentence:
        owned = sum(entry.owner is not None for entry in self.entries)
        return sentences.inbox(
            len(self.entries) - owned,
            owned,
            filtered=bool(set(self.given) - {"state"}) or self.state in ("firing", "acknowledged", "all"),
            resolved=self.state == "resolved",
            shown=len(self.entries),
            more=self.older is not None,
        )


def show_alerts(visit: Visit) -> View:
    asked = read_filter(visit.request, InboxFilter)
    wanted, links = asked.filter, visit.frame.links
    is_paged = wanted.state in ("resolved", "all")
    most = PAGE if is_paged else MOST_OPEN
    rows = incident_list.incidents_page(
        visit.transaction,
        visit.project_id,
        states=incident_list.STATES[wanted.state],
        deployment=wanted.deployment,
        severity=wanted.severity,
        owner=visit.actor if wanted.owner == ME else wanted.owner,
        before_id=_number(visit.request.query_params.get("after", "")) if is_paged else None,
        limit=most + 1,
    )
    shown = rows[:most]
    entries = _entries(visit, shown)
    if not is_paged:
        entries.sort(key=_worst_first)
    older = links.to("alerts", **asked.given, after=shown[-1]["id"]) if is_paged and len(rows) > most else None
    page = InboxPage(
        entries=entries,
        state=wanted.state,
        owners=[member.email for member in members(visit.transaction, visit.project_id)],
        given=asked.given,
        problems=asked.problems,
        older=older,
    )
    return View("alerts.html", page, 422 if asked.problems else 200)


def _entries(visit: Visit, rows: Sequence[Mapping[str, Any]]) -> list[IncidentEntry]:
    """Three queries, however many there are."""
    standings = incident_standings(visit.transaction, visit.project_id, rows)
    now = watch_queue.now(visit.transaction)
    since = (now - timedelta(days=SPARK_DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
    deployments = sorted({row["deployment_id"] for row in rows})
    days = incident_counts.recent_days(visit.transaction, visit.project_id, deployments, since)
    span = timedelta(days=SPARK_DAYS + 1)
    return [
        IncidentEntry(
            id=row["id"],
            deployment=row["deployment"],
            site=row["site"],
            severity=row["severity"],
            state=row["state"],
            owner=row["owner"],
            alerts=len(sentences.live(row["alerts"])),
            reasons=sentences.reasons(sentences.live(row["alerts"])),
            phrase=_phrase(sentences.live(row["alerts"])),
            standing=standings[row["id"]],
            changed_at=row["changed_at"],
            age=sentences.age(row["changed_at"], row["resolved_at"] or now),
            opened_at=row["opened_at"],
            resolved_at=row["resolved_at"],
            spark=sparkline(days.get(row["deployment_id"], []), None, since, span.days),
            spark_change=100 * ((row["changed_at"] - since) / span) if row["changed_at"] > since else None,
            href=visit.frame.links.to("incidents", str(row["id"])),
        )
        for row in rows
    ]


def _phrase(alerts: Sequence[Mapping[str, Any]]) -> str:
    """What the first alert said; nothing where it is about success, whose numbers of now stand there already."""
    leading = sentences.leading_alert(alerts) if alerts else None
    return "" if leading is None or str(leading["series"]).startswith("success") else phrase_of(leading)


def _worst_first(entry: IncidentEntry) -> tuple[int, float, float]:
    loss = entry.standing.loss
    return SEVERITIES.index(entry.severity), 1.0 if loss is None else -loss, -entry.changed_at.timestamp()


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004
