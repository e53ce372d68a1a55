"""`/episodes`: the stored episodes, newest first, with every filter in the address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field
from starlette.responses import RedirectResponse, Response

from gapwatch.answers import ledger
from gapwatch.answers.episode_evidence import decided_categories, heaviest_episodes
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import question_of
from gapwatch.answers.subjects import deployment_subject
from gapwatch.filters import EpisodeFilter, StatisticsFilter
from gapwatch.pages.filtering import Applied, Asked, applied, read_filter
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.labelling import SavedLabels, save_several, saved_labels, take_back
from gapwatch.pages.links import Links
from gapwatch.pages.page_cursor import read_mark, write_mark
from gapwatch.store.core.audit import audit
from gapwatch.store.read import episodes, fleet
from gapwatch.store.read.labelling_progress import LabellingProgress, labelling_progress
from gapwatch.taxonomy import CATEGORIES, UNATTRIBUTED, Taxonomy

PAGE = 50
MOST_BEHIND = 200
# The filters of a list that statistics know too.
SHARED = ("condition", "robot", "site", "stage", "since", "until")

# Every matching episode as a file: wired in by the application.
Export = Callable[[int, EpisodeFilter], Response]


class ListFilter(EpisodeFilter):
    """Every filter of episodes, and the category whose bar was clicked."""

    evidence: Literal[*CATEGORIES, UNATTRIBUTED] | None = Field(  # type: ignore[valid-type]
        None, description="Real failures of one deployment that carry weight of this category."
    )


@dataclass(frozen=True)
class EpisodeEntry:
    id: str
    started_at: str
    domain: str
    outcome: str
    deployment: str | None
    policy: str
    task: str
    robot: str | None
    # Where and how it failed, in the sender's words.
    failed: str
    note: str | None
    # What a person or labels decided, heaviest first; what else is known is weighed on the episode's own page.
    categories: list[str]
    by_person: bool
    # How much of the failure the asked category has, and the evidence for it.
    weight: float | None
    why: list[str]
    href: str


@dataclass(frozen=True)
class EpisodesPage:
    entries: list[EpisodeEntry]
    applied: list[Applied]
    given: dict[str, list[str]]
    problems: list[str]
    newer: str | None
    older: str | None
    csv: str | None
    deployments: list[str]
    # Where the form for several episodes is sent: this list, with its filters and its place.
    here: str
    saved: SavedLabels | None
    # Of the deployment that is asked for, or of each.
    progress: list[LabellingProgress]
    # The category whose bar this list explains.
    behind: str | None = None
    most: int = MOST_BEHIND


class EpisodesHandlers:
    def __init__(self, export: Export, nudge: Callable[[str], None]) -> None:
        self._export = export
        self._nudge = nudge

    def show(self, visit: Visit) -> View | Response:
        asked = read_filter(visit.request, ListFilter)
        if asked.filter.evidence is not None and asked.filter.deployment is not None:
            return _behind(visit, asked)
        if visit.request.query_params.get("format") == "csv":
            wanted = asked.filter.model_dump(mode="json", exclude_defaults=True)
            audit(
                visit.transaction,
                visit.project_id,
                visit.actor,
                "episodes.exported",
                "episodes",
                format="csv",
                filter=wanted,
            )
            return self._export(visit.project_id, asked.filter)
        links = visit.frame.links
        after = read_mark(visit.request.query_params.get("after"))
        records, place = episodes.episodes_page(visit.transaction, visit.project_id, asked.filter, after, PAGE)
        taxonomy = Taxonomy(visit.options.get("taxonomy"))
        page = EpisodesPage(
            entries=_entries(records, taxonomy, links, asked.given),
            applied=applied(links, ("episodes",), asked.given),
            given=asked.given,
            problems=asked.problems,
            newer=links.to("episodes", **asked.given) if after else None,
            older=links.to("episodes", **asked.given, after=write_mark(place)) if place else None,
            csv=links.to("episodes", **asked.given, format="csv"),
            **_shared(visit, asked),
        )
        return View("episodes.html", page, 422 if asked.problems else 200)

    def label(self, visit: Visit) -> Response:
        """Give the ticked episodes one category, or take such a save back."""
        asked = read_filter(visit.request, ListFilter)
        saved = take_back(visit) if visit.form.one("undo") else save_several(visit)
        self._nudge("fold")
        return RedirectResponse(_here(visit, asked.given, saved=str(saved)), 303)


def _behind(visit: Visit, asked: Asked[ListFilter]) -> View:
    """The episodes behind one bar of a deployment's ledger, heaviest first."""
    wanted, links = asked.filter, visit.frame.links
    about = StatisticsFilter.model_validate({name: getattr(wanted, name) for name in SHARED})
    question = question_of(about, datetime.now(UTC))
    subject = deployment_subject(visit.transaction, visit.project_id, wanted.deployment or "")
    sides = load_sides(visit.transaction, visit.project_id, subject, question, ledger.NEEDS)
    heaviest = heaviest_episodes(sides, wanted.evidence or "", MOST_BEHIND)
    behind = {episode.id: episode for episode in heaviest}
    records = episodes.find_episodes(visit.transaction, visit.project_id, list(behind))
    entries = _entries(records, sides.taxonomy, links, asked.given)
    page = EpisodesPage(
        entries=[
            replace(entry, weight=behind[entry.id].weight, why=list(behind[entry.id].evidence))
            for entry in entries
        ],
        applied=applied(links, ("episodes",), asked.given),
        given=asked.given,
        problems=asked.problems,
        newer=None,
        older=None,
        csv=None,
        **_shared(visit, asked),
        behind=wanted.evidence,
        most=MOST_BEHIND,
    )
    return View("episodes.html", page, 422 if asked.problems else 200)


def _shared(visit: Visit, asked: Asked[ListFilter]) -> dict[str, Any]:
    """What both kinds of list have around their rows."""
    slug = asked.filter.deployment
    return {
        "deployments": fleet.deployment_slugs(visit.transaction, visit.project_id),
        "here": _here(visit, asked.given),
        "saved": saved_labels(visit, asked.given),
        "progress": labelling_progress(visit.transaction, visit.project_id, None if slug is None else [slug]),
    }


def _here(visit: Visit, given: dict[str, list[str]], **more: str) -> str:
    after = visit.request.query_params.get("after")
    return visit.frame.links.to("episodes", **given, after=after, **more)


def failed_in_words(failure: dict[str, Any]) -> str:
    """lift: slip, lost_grip"""
    labels = ", ".join(failure.get("labels") or [])
    return ": ".join(part for part in (failure.get("phase"), labels) if part)


def _entries(
    records: Sequence[dict[str, Any]], taxonomy: Taxonomy, links: Links, filters: dict[str, list[str]]
) -> list[EpisodeEntry]:
    failures = [record.get("failure", {}) if record["outcome"] == "failure" else {} for record in records]
    decided = decided_categories(failures, taxonomy)
    return [
        _entry(record, categories, links, filters) for record, categories in zip(records, decided, strict=True)
    ]


def _entry(
    record: dict[str, Any], categories: list[str], links: Links, filters: dict[str, list[str]]
) -> EpisodeEntry:
    failure = record.get("failure", {})
    return EpisodeEntry(
        id=record["id"],
        started_at=record["started_at"],
        domain=record["domain"],
        outcome=record["outcome"],
        deployment=record.get("deployment"),
        policy=f"{record['policy']['name']} {record['policy']['version']}",
        task=record["task"],
        robot=record.get("robot"),
        failed=failed_in_words(failure),
        note=failure.get("note"),
        categories=categories,
        by_person=failure.get("category") is not None,
        weight=None,
        why=[],
        href=links.to("episodes", record["id"], **filters),
    )
