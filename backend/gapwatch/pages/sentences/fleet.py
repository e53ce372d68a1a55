"""Whether anything in the fleet is on fire, and which deployment is worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gapwatch.answers.fleet import FleetRow
from gapwatch.answers.leading_categories import LeadingCategory
from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.sentences.deployment import share_word
from gapwatch.pages.sentences.sentence import Part, Sentence, percent_range, say, small, strong, together
from gapwatch.pages.words import category_name, count, percent, plural, points


def fire(urgent: Sequence[AlertEntry], open_incidents: int, alerts_href: str, worst: Sentence) -> Sentence:
    """`urgent` is what nobody has taken on, the most urgent first; `worst` is said where there is none."""
    if urgent:
        return _alight(urgent, alerts_href)
    if not open_incidents:
        return together(say(strong("No, nothing is on fire.")), worst)
    taken = say(Part(plural(open_incidents, "incident"), href=alerts_href), f" {_are(open_incidents)} taken on.")
    return together(say(strong("No new fire.")), taken, worst)


def _alight(urgent: Sequence[AlertEntry], alerts_href: str) -> Sentence:
    first, more = urgent[0], len(urgent) - 1
    how_many = f"{len(urgent)} deployments are" if more else "one deployment is"
    others = ("; ", Part(f"and {more} more", href=alerts_href)) if more else ()
    return say(
        Part(f"▼ Yes, {how_many} on fire:", "hot"),
        " ",
        Part(first.deployment, "strong", first.href),
        f", {first.headline}",
        *others,
        f". Nobody has taken {'them' if more else 'it'} on.",
    )


def worst_of(row: FleetRow | None, lead: LeadingCategory | None, href: str) -> Sentence:
    """The deployment that loses most, where a loss is established at all."""
    real, drop = (None, None) if row is None else (row.real, row.drop.value)
    if row is None or row.verdict not in ("large", "small") or real is None or drop is None:
        return say("No deployment has a drop that is established.")
    interval = "" if real.interval is None else f"{percent_range(real.interval)}, "
    to = (
        ""
        if lead is None
        else f", {share_word(lead.contribution, drop)} {category_name(lead.category).lower()} by its labels"
    )
    return say(
        "The worst is ",
        Part(row.slug, "strong", href),
        f": real success {percent(real.value or 0.0)} % ",
        small(f"({interval}n {count(real.n)})"),
        f", {points(drop)} points below simulation{to}.",
    )


def verdict_counts(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in verdicts.items())


def list_title(matching: int, sort: str, page: int, pages: int) -> str:
    order = ", worst first" if sort == "worst" else ""
    return f"{plural(matching, 'deployment')}{order}" + (f", page {page} of {pages}" if pages > 1 else "")


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
