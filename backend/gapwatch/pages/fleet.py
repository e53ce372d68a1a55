"""`/`: every deployment of the project, worst first, and whether anything is on fire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.answers.drop import smallest_success
from gapwatch.answers.fleet import FleetRow, fleet_rows, fleet_window_words
from gapwatch.answers.leading_categories import LeadingCategory, leading_categories
from gapwatch.answers.question import question_of
from gapwatch.filters import StatisticsFilter, TimeText, WindowName
from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.alert_words import open_alerts
from gapwatch.pages.filtering import (
    TIMES,
    Applied,
    WindowPicker,
    applied,
    read_filter,
    window_or_now,
    window_picker,
)
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences import fleet as sentences
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.pages.sparklines import Spark, sparkline
from gapwatch.pages.words import SEVERITIES
from gapwatch.store.read import directory, fleet
from gapwatch.taxonomy import Taxonomy

MOST_DEPLOYMENTS = 5000
PAGE = 100
SPARK_DAYS = 30
VERDICTS = ("large", "small", "none", "too few episodes")
Sort = Literal["worst", "name", "drop", "real", "newest"]
# Rows without a value go last; then the value decides, then the slug.
Ranked = tuple[int, float, str]
SortKey = Ranked | tuple[str] | tuple[float, str]


class FleetFilter(BaseModel):
    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)
    site: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)
    stage: Literal["offline", "shadow", "supervised", "full"] | None = Field(None)
    verdict: Literal["large", "small", "none", "too few episodes"] | None = Field(None)
    category: Annotated[str, StringConstraints(max_length=64)] | None = Field(None)
    window: WindowName | None = Field(None)
    since: TimeText | None = Field(None)
    sort: Sort = Field("worst")


@dataclass(frozen=True)
class FleetEntry:
    row: FleetRow
    lead: LeadingCategory | None
    spark: Spark | None
    newest: datetime
    alert: AlertEntry | None
    href: str


@dataclass(frozen=True)
class FleetPage:
    public_url: str
    total: int
    entries: list[FleetEntry]
    matching: int
    verdicts: dict[str, int]
    worst: FleetEntry | None
    urgent: list[AlertEntry]
    last_day: dict[str, int]
    newest: datetime | None
    sites: list[str]
    given: dict[str, list[str]]
    applied: list[Applied]
    window: WindowPicker
    problems: list[str]
    sort: str
    sorts: dict[str, str]
    pages: int
    page: int
    earlier: str | None
    later: str | None

    def fire(self, open_incidents: int, alerts_href: str) -> Sentence:
        worst = self.worst
        if worst is None:
            about_worst = sentences.worst_of(None, None, "")
        else:
            about_worst = sentences.worst_of(worst.row, worst.lead, worst.href)
        return sentences.fire(self.urgent, open_incidents, alerts_href, about_worst)

    @property
    def title(self) -> str:
        return sentences.list_title(self.matching, self.sort, self.page, self.pages)

    @property
    def drops(self) -> str:
        return sentences.verdict_counts(self.verdicts)


class FleetHandlers:
    def __init__(self, public_url: str) -> None:
        self._public_url = public_url

    def show(self, visit: Visit) -> View:
        asked = read_filter(visit.request, FleetFilter)
        wanted, links = asked.filter, visit.frame.links
        now = datetime.now(UTC)
        window = window_or_now(asked.given)
        question = question_of(StatisticsFilter.model_validate(window), now)
        known = directory.deployments(visit.transaction, visit.project_id, None, MOST_DEPLOYMENTS)
        smallest = smallest_success(visit.options)
        whole = len(known) < MOST_DEPLOYMENTS
        rows = fleet_rows(visit.transaction, visit.project_id, known, question, smallest, whole=whole)
        taxonomy = Taxonomy(visit.options.get("taxonomy"))
        since_of = {deployment.id: row.now.since for deployment, row in zip(known, rows, strict=True)}
        leads = leading_categories(
            visit.transaction,
            visit.project_id,
            known,
            rows,
            taxonomy,
            since_of if question.asked_window == "now" else question.window.since,
        )
        # The most urgent alert of each deployment: in reverse order it is set last, and stays.
        alerts = {alert.deployment: alert for alert in reversed(open_alerts(visit))}
        matching = sorted((row for row in rows if _matches(row, leads, wanted)), key=_ORDER[wanted.sort])
        number = _page(visit.request.query_params.get("page", "1"), len(matching))
        last = max(1, -(-len(matching) // PAGE))
        shown = matching[PAGE * (number - 1) : PAGE * number]
        worst = min(rows, key=_worst_first, default=None)
        ids = {deployment.slug: deployment.id for deployment in known}
        since = (now - timedelta(days=SPARK_DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
        glance = fleet.glance(
            visit.transaction,
            visit.project_id,
            [ids[row.slug] for row in (*shown, worst) if row is not None],
            since,
            now - timedelta(hours=24),
        )

        kept = {name: values for name, values in asked.given.items() if name in TIMES}

        def entry(row: FleetRow) -> FleetEntry:
            return FleetEntry(
                row,
                leads.get(row.slug),
                sparkline(glance.recent.get(ids[row.slug], []), row.sim.value, since, SPARK_DAYS),
                row.last_episode_at,
                alerts.get(row.slug),
                links.to("deployments", row.slug, **kept),
            )

        def at(place: int) -> str | None:
            return links.to(page=place, **asked.given) if 1 <= place <= last else None

        page = FleetPage(
            public_url=self._public_url,
            total=len(rows),
            entries=[entry(row) for row in shown],
            matching=len(matching),
            verdicts={word: sum(row.verdict == word for row in rows) for word in VERDICTS},
            worst=None if worst is None else entry(worst),
            urgent=_urgent(rows, alerts),
            last_day=glance.last_day,
            newest=max((row.last_episode_at for row in rows), default=None),
            sites=sorted({row.site for row in rows if row.site}),
            given=asked.given,
            applied=applied(
                links, (), {name: values for name, values in asked.given.items() if name not in ("sort", *TIMES)}
            ),
            window=window_picker(links, (), asked.given, fleet_window_words(question)),
            problems=asked.problems,
            sort=wanted.sort,
            sorts={sort: links.to(**{**asked.given, "sort": sort}) for sort in _ORDER},
            pages=last,
            page=number,
            earlier=at(number - 1),
            later=at(number + 1),
        )
        return View("fleet.html", page, 422 if asked.problems else 200)


def _urgent(rows: list[FleetRow], alerts: dict[str, AlertEntry]) -> list[AlertEntry]:
    """What nobody has taken on yet: the most severe first, then the deployment that loses most."""
    alight = [(alerts[row.slug], row) for row in rows if row.slug in alerts]
    alight = [(alert, row) for alert, row in alight if alert.state in ("firing", "no_data")]
    alight.sort(key=lambda pair: (SEVERITIES.index(pair[0].severity), *_worst_first(pair[1])))
    return [alert for alert, _ in alight]


def _worst_first(row: FleetRow) -> Ranked:
    """By the lower end of the drop's interval, so that a few unlucky episodes cannot take first place.

    Deployments with too few episodes follow the rest; those without a comparison come last.
    """
    drop = row.drop
    if drop.interval is None:
        return 2, 0.0, row.slug
    return int(row.verdict == "too few episodes"), -drop.interval[0], row.slug


_ORDER: dict[str, Callable[[FleetRow], SortKey]] = {
    "worst": _worst_first,
    "name": lambda row: (row.slug,),
    "drop": lambda row: (row.drop.value is None, -(row.drop.value or 0.0), row.slug),
    "real": lambda row: (row.real.value is None, row.real.value or 0.0, row.slug),
    "newest": lambda row: (-row.last_episode_at.timestamp(), row.slug),
}


def _matches(row: FleetRow, leads: Mapping[str, LeadingCategory], wanted: FleetFilter) -> bool:
    lead = leads.get(row.slug)
    return (
        (not wanted.q or _has_words(row, wanted.q))
        and wanted.site in (None, row.site)
        and wanted.stage in (None, row.stage)
        and wanted.verdict in (None, row.verdict)
        and (wanted.category is None or (lead is not None and lead.category == wanted.category))
    )


def _has_words(row: FleetRow, asked: str) -> bool:
    words = f"{row.slug} {row.policy} {row.version} {row.task} {row.site or ''}".casefold()
    return all(word in words for word in asked.casefold().split())


def _page(text: str, matching: int) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 1  # noqa: PLR2004
    return min(max(1, number), max(1, -(-matching // PAGE)))
