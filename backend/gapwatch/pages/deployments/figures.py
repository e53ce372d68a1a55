"""The figures of a deployment's page, with their heights and the links of their marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from gapwatch.answers.slices import SliceAnswer
from gapwatch.answers.trend_line import trend_line
from gapwatch.levels import MISSING, number_range
from gapwatch.pages.deployments.view import DeploymentPage
from gapwatch.pages.figures import conditions, failures, ledger, ranges, shadow, signals, trend, units
from gapwatch.pages.figures.conditions import grouped
from gapwatch.pages.figures.failures import FailureTable, failure_table
from gapwatch.pages.links import Links

# The filters of the page that the list of episodes knows too.
SHARED = ("since", "until", "robot", "site", "stage", "condition")


@dataclass(frozen=True)
class Figures:
    drawn: dict[str, Any] = field(default_factory=dict)
    heights: dict[str, int] = field(default_factory=dict)
    # Where the episodes behind the page, and behind a category, are listed.
    episodes: dict[str, str] = field(default_factory=dict)
    filters: dict[str, Any] = field(default_factory=dict)
    table: FailureTable | None = None


def shared_filters(page: DeploymentPage) -> dict[str, Any]:
    """The filters of the page for the list of episodes, which knows no windows by name."""
    filters: dict[str, Any] = {name: page.given[name] for name in SHARED if name in page.given}
    since = page.drop.window.since
    if since is not None and not filters.keys() & {"since", "until"}:
        filters["since"] = [since.astimezone(UTC).isoformat().replace("+00:00", "Z")]
    return filters


class EpisodeLinks:
    """Lists of the episodes that the page counts: the same deployment, version, task and filters."""

    def __init__(self, page: DeploymentPage, links: Links) -> None:
        self._links = links
        self._filters = shared_filters(page)
        self._subject = {
            "deployment": page.slug,
            "policy": page.policy,
            "version": page.version,
            "task": page.task,
        }

    def real(self, **more: str | None) -> str:
        query: dict[str, Any] = {**self._subject, "domain": "real", **self._filters, **more}
        return self._links.to("episodes", **query)

    def behind(self, category: str) -> str:
        query: dict[str, Any] = {"deployment": self._subject["deployment"], **self._filters}
        return self._links.to("episodes", evidence=category, **query)

    def of_unit(self, by: str, name: str) -> str:
        """The episodes of one robot or site."""
        query: dict[str, Any] = {**self._subject, "domain": "real", **self._filters, by: name}
        return self._links.to("episodes", **query)

    def failed_in(self, phase: str) -> str:
        return self.real(outcome="failure", phase=None if phase == failures.NO_PHASE else phase)

    def of_level(self, answer: SliceAnswer) -> str | None:
        """None for a bin of numbers, which the list of episodes cannot ask for."""
        bounds = number_range(answer.level)
        if " × " in answer.condition or (bounds is not None and bounds[0] != bounds[1]):
            return None
        level = "" if answer.level == MISSING else answer.level
        conditions = [*self._filters.get("condition", []), f"{answer.condition}:{level}"]
        query: dict[str, Any] = {**self._subject, "domain": "real", **self._filters, "condition": conditions}
        return self._links.to("episodes", **query)


def _regime(page: DeploymentPage) -> trend.Regime | None:
    """The present is drawn whatever the window; not under a filter, which it does not know."""
    estimate, since = page.now.estimate, page.now.since
    is_filtered = any(name in page.given for name in ("robot", "site", "stage", "condition"))
    if is_filtered or since is None or estimate.value is None or estimate.interval is None:
        return None
    words = page.now.regime.window
    return trend.Regime(since, words, page.newest, estimate.value, estimate.interval, estimate.n)


def draw(page: DeploymentPage, links: Links | None) -> Figures:
    """Without links for a report: a file has no service to ask for episodes."""
    to = None if links is None else EpisodeLinks(page, links)
    drawn: dict[str, Any] = {}
    heights: dict[str, int] = {}
    if page.compared:
        parts = ledger.shown_parts(page.ledger.categories, page.ledger.unattributed)
        drawn["ledger"] = ledger.ledger_figure(page.sim, page.real, parts, to.behind if to else None, page.sides)
        heights["ledger"] = ledger.height(len(parts))
    if any(step.n for step in page.trend.steps):
        marks = [trend.Mark(number, event.at, event.kind) for number, event in enumerate(page.events, start=1)]
        everything = to.real(since=None, until=None) if to else None
        drawn["trend"] = trend.trend_figure(
            page.trend, trend_line(page.trend), marks, everything, regime=_regime(page)
        )
        heights["trend"] = 320
    bound = shadow.bound_figure(page.shadow.bound, page.sim.value)
    if bound is not None:
        drawn["shadow"] = bound
        heights["shadow"] = shadow.HEIGHT
    parameters = ranges.drawn_parameters(page.ranges.parameters)
    if parameters:
        drawn["ranges"] = ranges.ranges_figure(parameters)
        heights["ranges"] = ranges.height(parameters)
    groups = grouped(page.slices.slices)
    if groups:
        drawn["conditions"] = conditions.conditions_figure(groups, to.of_level if to else None, page.sides)
        heights["conditions"] = conditions.height(groups)
    of_units = units.shown_units(page.robots.groups)
    if of_units:
        drawn["robots"] = units.units_figure(of_units, to.of_unit if to else None)
        heights["robots"] = units.height(of_units)
    for number, signal in enumerate([*page.moved_signals, *page.standing_signals]):
        drawn[f"signal-{number}"] = signals.signal_figure(signal, page.sides)
    table = failure_table(page.failures.groups)
    if table.categories:
        drawn["failures"] = failures.failures_figure(
            table, page.real.n, page.sim.n, to.failed_in if to else None, page.sides
        )
        heights["failures"] = failures.height(table)
    episodes = {}
    if to is not None:
        categories = [part.category for part in page.ledger.categories] + ["unattributed"]
        episodes = {category: to.behind(category) for category in categories} | {"all": to.real()}
    return Figures(drawn, heights, episodes, shared_filters(page), table)
