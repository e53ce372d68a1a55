"""`/episodes/{id}`: one attempt with everything in its record, why it counts where, and a person's word on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.responses import RedirectResponse, Response

from gapwatch.answers.episode_evidence import (
    CategoryShare,
    EpisodeEvidence,
    RankedAmong,
    SignalRank,
    SimilarFailures,
    read_episode_evidence,
)
from gapwatch.errors import NotFound
from gapwatch.filters import EpisodeFilter
from gapwatch.pages.episodes import ListFilter, failed_in_words
from gapwatch.pages.filtering import read_filter
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.labelling import SavedLabels, save_one, saved_labels, take_back
from gapwatch.pages.sentences import episode as sentences
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.pages.words import count
from gapwatch.store.read import episodes, related_episodes
from gapwatch.store.read.episodes import PageCursor


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
    # What the shares were weighed with, in words; None for an attempt that did not fail.
    weighed_by: str | None
    signals: list[SignalRank]
    # What the signals are ranked against, in words; None without a baseline.
    compared_with: str | None
    alike: SimilarFailures | None
    pairs: list[PairLink]
    history: list[HistoryLine]
    # What the save before this page did.
    saved: SavedLabels | None
    here: str
    next: str | None
    back: str

    @property
    def headline(self) -> Sentence:
        return sentences.headline(self.record.get("failure", {}).get("note"), self.alike)


class EpisodeHandlers:
    def __init__(self, nudge: Callable[[str], None]) -> None:
        self._nudge = nudge

    def show(self, visit: Visit) -> View:
        record = _find(visit)
        asked = read_filter(visit.request, ListFilter)
        links = visit.frame.links
        evidence = read_episode_evidence(visit.transaction, visit.project_id, record, datetime.now(UTC))
        pairs = related_episodes.paired_episodes(visit.transaction, visit.project_id, record)
        changes = related_episodes.changes_of(visit.transaction, visit.project_id, record["id"])
        page = EpisodePage(
            record=record,
            title=_title(record),
            shares=evidence.shares,
            weighed_by=_weighed_by(evidence),
            signals=evidence.signals,
            compared_with=_compared_with(evidence.ranked_among),
            alike=evidence.similar,
            pairs=[PairLink(pair.id, pair.domain, pair.outcome, links.to("episodes", pair.id)) for pair in pairs],
            history=[
                HistoryLine(change.at, change.actor, _in_words(change.action, change.details))
                for change in changes
            ],
            saved=saved_labels(visit, asked.given),
            here=links.to("episodes", record["id"], **asked.given),
            next=self._next(visit, record, asked.filter, asked.given),
            back=links.to("episodes", **asked.given),
        )
        return View("episode.html", page)

    def label(self, visit: Visit) -> Response:
        """Set or clear the category and the note, or take a save back; the ledger follows within seconds."""
        record = _find(visit)
        asked = read_filter(visit.request, ListFilter)
        saved = take_back(visit) if visit.form.one("undo") else save_one(visit, record)
        self._nudge("fold")
        filters = {**asked.given, "saved": [str(saved)]}
        to = visit.frame.links.to("episodes", record["id"], **filters)
        if visit.form.one("then") == "next":
            to = self._next(visit, record, asked.filter, filters) or to
        return RedirectResponse(to, 303)

    def _next(
        self, visit: Visit, record: dict[str, Any], wanted: EpisodeFilter, filters: dict[str, list[str]]
    ) -> str | None:
        """The next older episode under the same filters."""
        cursor = PageCursor(datetime.fromisoformat(record["started_at"]), record["id"])
        older, _ = episodes.episodes_page(visit.transaction, visit.project_id, wanted, cursor, 1)
        return visit.frame.links.to("episodes", older[0]["id"], **filters) if older else None


def _find(visit: Visit) -> dict[str, Any]:
    episode_id = visit.path("episode_id")
    record = None
    if "\0" not in episode_id:
        record = episodes.find_episode(visit.transaction, visit.project_id, episode_id)
    if record is None:
        raise NotFound("There is no episode with this id.")
    return record


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


def _weighed_by(evidence: EpisodeEvidence) -> str | None:
    if not evidence.shares:
        return None
    if evidence.deployment is None:
        return "By labels and phase only: no deployment says what is usual."
    return f"The same weights as in the ledger of {evidence.deployment}."


def _compared_with(among: RankedAmong | None) -> str | None:
    if among is None:
        return None
    simulator = "" if among.simulator is None else f" of {among.simulator}"
    return (
        f"Rank among {count(among.n_sim)} sim episodes{simulator} and {count(among.n_real)} real ones "
        f"of {among.deployment}."
    )


def _in_words(action: str, details: dict[str, Any]) -> str:
    if action == "episode.labelled":
        return f"category {details.get('was') or 'none'} → {details.get('category') or 'none'}"
    return {"episode.correction": "corrected by the sender", "episode.deletion": "deleted"}.get(action, action)
