"""Whether anything in the fleet is on fire, and which deployment is worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gapwatch.answers.fleet import FleetRow, worst_now_first
from gapwatch.answers.leading_categories import LeadingCategory
from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.sentences.deployment import share_word
from gapwatch.pages.sentences.present import ARROWS, odd_robot, standing
from gapwatch.pages.sentences.sentence import Part, Sentence, percent_range, say, small, strong, together
from gapwatch.pages.words import SEVERITIES, category_name, count, percent, plural, points

# Stages in which the policy moves no robot.
DRIVES_NOTHING = ("shadow", "offline")


@dataclass(frozen=True)
class Burning:
    """A deployment with an alert that nobody has taken on."""

    alert: AlertEntry
    row: FleetRow


def most_urgent_first(burning: Sequence[Burning]) -> list[Burning]:
    """What fails on its own leads; then what fell silent, then what drives nothing."""
    return sorted(
        burning,
        key=lambda one: (
            one.row.stage in DRIVES_NOTHING,
            one.alert.reason == "silence",
            SEVERITIES.index(one.alert.severity),
            worst_now_first(one.row),
        ),
    )


def fire(burning: Sequence[Burning], open_incidents: int, alerts_href: str, worst: Sentence) -> Sentence:
    """`burning` is what nobody has taken on, the most urgent first; `worst` is said where there is none."""
    if burning:
        return _alight(burning, alerts_href)
    if not open_incidents:
        return together(say(strong("No deployment needs attention.")), worst)
    taken = say(Part(plural(open_incidents, "incident"), href=alerts_href), f" {_are(open_incidents)} taken on.")
    return together(say(strong("Nothing new needs attention.")), taken, worst)


def _alight(burning: Sequence[Burning], alerts_href: str) -> Sentence:
    first = burning[0]
    need = "deployment needs" if len(burning) == 1 else "deployments need"
    return say(
        Part(f"▼ {len(burning)} {need} attention.", "hot", alerts_href),
        " ",
        Part(first.row.slug, "strong", first.alert.href),
        f": {_news(first)}. Unacknowledged.",
    )


def _news(burning: Burning) -> str:
    """Where it stands now if that is the news, else what its alert says."""
    if burning.alert.reason == "performance" and burning.row.now.moved.verdict in ARROWS:
        return standing(burning.row.now, burning.row.now.computed_at)
    if burning.alert.reason == "performance" and (robot := odd_robot(burning.row.now)) is not None:
        return robot.removesuffix(".")
    rate, sim = burning.row.now.estimate.value, burning.row.now.sim.value
    if burning.alert.reason == "performance" and rate is not None and sim is not None and rate < sim:
        return f"{percent(rate, 0)} % now, {percent(sim, 0)} % in simulation"
    return burning.alert.headline


def worst_of(row: FleetRow | None, lead: LeadingCategory | None, href: str) -> Sentence:
    """The deployment that loses most now, where a loss is established at all."""
    value, drop = (None, None) if row is None else (row.now.estimate, row.now.drop.value)
    if row is None or row.now.verdict not in ("large", "small") or value is None or drop is None:
        return say("No deployment has a drop now that is established.")
    interval = "" if value.interval is None else f"{percent_range(value.interval)}, "
    to = (
        ""
        if lead is None
        else f", {share_word(lead.contribution, lead.drop)} {category_name(lead.category).lower()}"
    )
    return say(
        "The worst is ",
        Part(row.slug, "strong", href),
        f": {standing(row.now, row.now.computed_at)} ",
        small(f"({interval}n {count(value.n)})"),
        f", {points(drop)} points below simulation{to}.",
    )


def verdict_counts(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in verdicts.items())


def list_title(matching: int, sort: str, page: int, pages: int) -> str:
    order = {"now": ", worst now first", "worst": ", worst in this window first"}.get(sort, "")
    return f"{plural(matching, 'deployment')}{order}" + (f", page {page} of {pages}" if pages > 1 else "")


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
