"""`/episodes/{id}`: one attempt with everything in its record, why it counts where, and a person's word on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.responses import RedirectResponse, Response

from gapwatch.errors import NotFound
from gapwatch.filters import EpisodeFilter
from gapwatch.pages.episodes import ListFilter, failed_in_words
from gapwatch.pages.evidence import Alike, Held, SignalRank, held_against, in_words
from gapwatch.pages.filtering import read_filter
from gapwatch.pages.frame import View, Visit
from gapwatch.record import LONGEST_NOTE
from gapwatch.store.read import episodes, related_episodes
from gapwatch.store.read.episodes import Place
from gapwatch.store.write import labels
from gapwatch.taxonomy import CATEGORIES, UNATTRIBUTED


@dataclass(frozen=True)
class CategoryShare:
    category: str
    weight: float
    why: list[str]


@dataclass(frozen=True)
class PairLink:
    id: str
    domain: str
    outcome: str
    href: str


@dataclass(frozen=True)
class HistoryLine:
    at: datetime
    actor: str
    what: str


@dataclass(frozen=True)
class EpisodePage:
    record: dict[str, Any]
    title: str
    shares: list[CategoryShare]
    signals: list[SignalRank]
    # What the signals are ranked against, in words; None without a baseline.
    compared_with: str | None
    alike: Alike | None
    pairs: list[PairLink]
    history: list[HistoryLine]
    here: str
    next: str | None
    back: str


class EpisodeHandlers:
    def __init__(self, nudge: Callable[[str], None]) -> None:
        self._nudge = nudge

    def show(self, visit: Visit) -> View:
        record = _find(visit)
        asked = read_filter(visit.request, ListFilter)
        links = visit.frame.links
        held = held_against(visit.transaction, visit.project_id, record)
        pairs = related_episodes.paired_episodes(visit.transaction, visit.project_id, record)
        changes = related_episodes.changes_of(visit.transaction, visit.project_id, record["id"])
        page = EpisodePage(
            record=record,
            title=_title(record),
            shares=_shares(held),
            signals=held.signals,
            compared_with=held.compared_with,
            alike=held.alike,
            pairs=[PairLink(one.id, one.domain, one.outcome, links.to("episodes", one.id)) for one in pairs],
            history=[HistoryLine(one.at, one.actor, _in_words(one.action, one.details)) for one in changes],
            here=links.to("episodes", record["id"], **asked.given),
            next=self._next(visit, record, asked.filter, asked.given),
            back=links.to("episodes", **asked.given),
        )
        return View("episode.html", page)

    def label(self, visit: Visit) -> Response:
        """Set or clear the category and the note; the ledger follows within seconds."""
        record = _find(visit)
        asked = read_filter(visit.request, ListFilter)
        category = visit.form.one("category") or None
        if category is not None and category not in CATEGORIES:
            raise NotFound("There is no such category.")
        note = visit.form.one("note").replace("\r\n", "\n").strip()[:LONGEST_NOTE] or None
        if record["outcome"] != "failure":
            category = record.get("failure", {}).get("category")
        labels.label_episode(
            visit.transaction, visit.project_id, record["id"], category=category, note=note, actor=visit.actor
        )
        self._nudge("fold")
        to = visit.frame.links.to("episodes", record["id"], **asked.given)
        if visit.form.one("then") == "next":
            to = self._next(visit, record, asked.filter, asked.given) or to
        return RedirectResponse(to, 303)

    def _next(
        self, visit: Visit, record: dict[str, Any], wanted: EpisodeFilter, given: dict[str, list[str]]
    ) -> str | None:
        """The next older episode under the same filters."""
        place = Place(datetime.fromisoformat(record["started_at"]), record["id"])
        found, _ = episodes.episodes_page(visit.transaction, visit.project_id, wanted, place, 1)
        return visit.frame.links.to("episodes", found[0]["id"], **given) if found else None


def _find(visit: Visit) -> dict[str, Any]:
    episode_id = visit.path("episode_id")
    found = None
    if "\0" not in episode_id:
        found = episodes.find_episode(visit.transaction, visit.project_id, episode_id)
    if found is None:
        raise NotFound("There is no episode with this id.")
    return found


def _title(record: dict[str, Any]) -> str:
    if record["outcome"] != "failure":
        return {"success": "Succeeded", "aborted": "Aborted", "abandoned": "Abandoned"}[record["outcome"]]
    words = failed_in_words(record.get("failure", {}))
    return (
        f"Failed in {words}"
        if record.get("failure", {}).get("phase")
        else f"Failed: {words}"
        if words
        else "Failed"
    )


def _shares(held: Held) -> list[CategoryShare]:
    """Heaviest first, what has no evidence last."""
    found = held.attribution
    if found is None:
        return []
    order = sorted(found.weights, key=lambda name: (name == UNATTRIBUTED, -found.weights[name]))
    return [
        CategoryShare(
            name,
            found.weights[name],
            [in_words(line.sentence, held.differing) for line in found.evidence if name in line.categories]
            or (["no evidence claims it"] if name == UNATTRIBUTED else []),
        )
        for name in order
    ]


def _in_words(action: str, details: dict[str, Any]) -> str:
    if action == "episode.labelled":
        return f"category {details.get('was') or 'none'} → {details.get('category') or 'none'}"
    return {"episode.correction": "corrected by the sender", "episode.deletion": "deleted"}.get(action, action)
