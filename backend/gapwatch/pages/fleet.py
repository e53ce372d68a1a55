"""`/`: every deployment of the project, worst first, and whether anything is on fire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.answers.answer import Interval
from gapwatch.answers.drop import DropValue, smallest_success
from gapwatch.answers.fleet import ORDERS, FleetRow, fleet_rows, fleet_window_words, worst_now_first
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
from gapwatch.pages.sentences.present import odd_robot, was
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.pages.sparklines import Spark, sparkline
from gapwatch.store.read import directory, fleet
from gapwatch.store.read.fleet import NO_NAMES, PlaceNames

MOST_DEPLOYMENTS = 5000
PAGE = 100
SPARK_DAYS = 30
# In a list to choose from; the search field finds the others.
MOST_NAMES = 500
VERDICTS = ("large", "small", "none", "too few episodes")
Sort = Literal["now", "worst", "name", "real", "newest"]


class FleetFilter(BaseModel):
    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)
    site: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)
    robot: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)
    policy: Annotated[str, StringConstraints(max_length=128)] | None = Field(None)
    stage: Literal["offline", "shadow", "supervised", "full"] | None = Field(None)
    verdict: Literal["large", "small", "none", "too few episodes"] | None = Field(None)
    category: Annotated[str, StringConstraints(max_length=64)] | None = Field(None)
    window: WindowName | None = Field(None)
    since: TimeText | None = Field(None)
    until: TimeText | None = Field(None)
    sort: Sort | None = Field(None)


@dataclass(frozen=True)
class ShownRate:
    n: int
    value: float | None
    interval: Interval | None
    drop: DropValue
    verdict: str


@dataclass(frozen=True)
class FleetEntry:
    """`shown` is what its row leads with: the newest episodes, or those of another window or of one site."""

    row: FleetRow
    shown: ShownRate
    names: PlaceNames
    was: str | None
    robot: str | None
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
    # Whether all deployments of the project were looked at, or the busiest only.
    is_whole: bool
    verdicts: dict[str, int]
    worst: FleetEntry | None
    burning: list[sentences.Burning]
    last_day: dict[str, int]
    newest: datetime | None
    # Whether the rows lead with the newest episodes of each deployment.
    is_now: bool
    sites: list[str]
    robots: list[str]
    policies: list[str]
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
        return sentences.fire(self.burning, open_incidents, alerts_href, about_worst)

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
        question = question_of(_asked_episodes(wanted, window_or_now(asked.given)), now)
        known = directory.busiest_deployments(visit.transaction, visit.project_id, MOST_DEPLOYMENTS)
        smallest = smallest_success(visit.options)
        whole = len(known) < MOST_DEPLOYMENTS
        rows = fleet_rows(visit.transaction, visit.project_id, known, question, smallest, whole=whole)
        found = leading_categories(visit.transaction, visit.project_id)
        leads = {one.slug: found[one.id] for one in known if one.id in found}
        named = fleet.place_names(
            visit.transaction, visit.project_id, question.asked_window, question.window.since
        )
        ids = {deployment.slug: deployment.id for deployment in known}
        names = {slug: named.get(number, NO_NAMES) for slug, number in ids.items()}
        # The most urgent alert of each deployment: in reverse order it is set last, and stays.
        alerts = {alert.deployment: alert for alert in reversed(open_alerts(visit))}
        is_now = question.asked_window == "now" and question.wanted.is_open
        sort = wanted.sort or ("now" if is_now else "worst")
        shown = {row.slug: _shown(row, is_now=is_now) for row in rows}
        matching = sorted(
            (row for row in rows if _matches(row, shown[row.slug], names[row.slug], leads, wanted)),
            key=_ORDER[sort],
        )
        number = _page(visit.request.query_params.get("page", "1"), len(matching))
        last = max(1, -(-len(matching) // PAGE))
        listed = matching[PAGE * (number - 1) : PAGE * number]
        worst = min(rows, key=worst_now_first, default=None)
        since = (now - timedelta(days=SPARK_DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
        glance = fleet.glance(
            visit.transaction,
            visit.project_id,
            [ids[row.slug] for row in (*listed, worst) if row is not None],
            since,
            now - timedelta(hours=24),
        )
        kept = {name: values for name, values in asked.given.items() if name in (*TIMES, "site", "robot")}

        def entry(row: FleetRow) -> FleetEntry:
            return FleetEntry(
                row,
                shown[row.slug],
                names[row.slug],
                was(row.now, now),
                odd_robot(row.now),
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
            entries=[entry(row) for row in listed],
            matching=len(matching),
            is_whole=whole,
            verdicts={word: sum(rate.verdict == word for rate in shown.values()) for word in VERDICTS},
            worst=None if worst is None else entry(worst),
            burning=_burning(rows, alerts),
            last_day=glance.last_day,
            newest=max((row.last_episode_at for row in rows), default=None),
            is_now=is_now,
            sites=_all(names, "sites"),
            robots=_all(names, "robots"),
            policies=_all(names, "policies"),
            given=asked.given,
            applied=applied(links, (), {name: values for name, values in asked.given.items() if name != "sort"}),
            window=window_picker(links, (), asked.given, fleet_window_words(question)),
            problems=asked.problems,
            sort=sort,
            sorts={sort: links.to(**{**asked.given, "sort": sort}) for sort in _ORDER},
            pages=last,
            page=number,
            earlier=at(number - 1),
            later=at(number + 1),
        )
        return View("fleet.html", page, 422 if asked.problems else 200)


def _asked_episodes(wanted: FleetFilter, window: dict[str, str]) -> StatisticsFilter:
    places = {"site": [wanted.site] if wanted.site else [], "robot": [wanted.robot] if wanted.robot else []}
    return StatisticsFilter.model_validate(window | places)


def _shown(row: FleetRow, *, is_now: bool) -> ShownRate:
    if is_now:
        rate = row.now.estimate
        return ShownRate(rate.n, rate.value, rate.interval, row.now.drop, row.now.verdict)
    return ShownRate(row.real.n, row.real.value, row.real.interval, row.drop, row.verdict)


def _burning(rows: list[FleetRow], alerts: Mapping[str, AlertEntry]) -> list[sentences.Burning]:
    """What nobody has taken on yet, most urgent first."""
    alight = [sentences.Burning(alerts[row.slug], row) for row in rows if row.slug in alerts]
    return sentences.most_urgent_first([one for one in alight if one.alert.state in ("firing", "no_data")])


_ORDER: dict[Sort, Callable[[FleetRow], Any]] = {
    "now": ORDERS["now"],
    "worst": ORDERS["worst"],
    "name": ORDERS["name"],
    "real": lambda row: (row.real.value is None, row.real.value or 0.0, row.slug),
    "newest": ORDERS["newest"],
}


def _all(names: Mapping[str, PlaceNames], kind: Literal["sites", "robots", "policies"]) -> list[str]:
    return sorted({name for one in names.values() for name in getattr(one, kind)})[:MOST_NAMES]


def _matches(
    row: FleetRow,
    shown: ShownRate,
    names: PlaceNames,
    leads: Mapping[str, LeadingCategory],
    wanted: FleetFilter,
) -> bool:
    lead = leads.get(row.slug)
    return (
        (not wanted.q or _has_words(row, names, wanted.q))
        and (wanted.site is None or wanted.site in names.sites)
        and (wanted.robot is None or wanted.robot in names.robots)
        and (wanted.policy is None or wanted.policy in names.policies)
        and wanted.stage in (None, row.stage)
        and wanted.verdict in (None, shown.verdict)
        and (wanted.category is None or (lead is not None and wanted.category in lead.category.split("+")))
    )


def _has_words(row: FleetRow, names: PlaceNames, asked: str) -> bool:
    places = " ".join((*names.sites, *names.robots, *names.policies))
    words = f"{row.slug} {row.policy} {row.version} {row.task} {row.site or ''} {places}".casefold()
    return all(word in words for word in asked.casefold().split())


def _page(text: str, matching: int) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 1  # noqa: PLR2004
    return min(max(1, number), max(1, -(-matching // PAGE)))
