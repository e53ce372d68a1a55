"""Labels that people give, one episode or several at a time: saving, telling what was done, taking it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gapwatch.errors import Invalid, NotFound
from gapwatch.pages.frame import Visit
from gapwatch.pages.sentences.labelling import REASONS, refused_words, saved_words
from gapwatch.record import LONGEST_NOTE
from gapwatch.store.read.labelling_progress import deployments_of, labelling_progress
from gapwatch.store.write import labels
from gapwatch.store.write.labels import Labelling
from gapwatch.taxonomy import CATEGORIES

# The rows of the longest list.
MOST_AT_ONCE = 200
# A key of the keyboard for each category, in their order; the last takes a label off.
CATEGORY_KEYS: Mapping[str, str] = dict(zip((*CATEGORIES, ""), "123456789qwer0", strict=True))


@dataclass(frozen=True)
class EpisodeLink:
    id: str
    href: str
    # Why it was not changed.
    why: str = ""


@dataclass(frozen=True)
class SavedLabels:
    """What the save before this page did; `undo` is its number while it can be taken back."""

    words: str
    refused: str
    episodes: list[EpisodeLink]
    refused_episodes: list[EpisodeLink]
    undo: int | None


def saved_labels(visit: Visit, filters: Mapping[str, Sequence[str]]) -> SavedLabels | None:
    """The save that the address names, to the person who made it."""
    labelling = _labelling(visit, visit.request.query_params.get("saved", ""))
    if labelling is None:
        return None

    def href(episode_id: str) -> str:
        return visit.frame.links.to("episodes", episode_id, **filters)

    touched = deployments_of(visit.transaction, visit.project_id, list(labelling.changed))
    progress = labelling_progress(visit.transaction, visit.project_id, touched) if touched else []
    return SavedLabels(
        words=saved_words(labelling, progress),
        refused=refused_words(labelling.refused.values()),
        episodes=[EpisodeLink(id_, href(id_)) for id_ in sorted(labelling.changed)],
        refused_episodes=[
            EpisodeLink(id_, href(id_), REASONS[why]) for id_, why in sorted(labelling.refused.items())
        ],
        undo=labelling.id if labelling.changed and not labelling.is_undo else None,
    )


def save_one(visit: Visit, record: Mapping[str, object]) -> int:
    """The category and the note of one episode, as its form says; a success keeps what it has."""
    category = _category(visit)
    failure = record.get("failure")
    if record["outcome"] != "failure":
        category = failure.get("category") if isinstance(failure, Mapping) else None
    note = visit.form.one("note").replace("\r\n", "\n").strip()[:LONGEST_NOTE] or None
    return labels.label_episode(
        visit.transaction, visit.project_id, str(record["id"]), category=category, note=note, actor=visit.actor
    )


def save_several(visit: Visit) -> int:
    """One category for every episode that was ticked in a list."""
    asked = visit.form.many("episode")
    if not asked:
        raise Invalid("Tick the episodes to label, then choose the category.")
    if len(asked) > MOST_AT_ONCE:
        raise Invalid(f"Label at most {MOST_AT_ONCE} episodes at once.")
    return labels.label_episodes(
        visit.transaction, visit.project_id, asked, category=_category(visit), actor=visit.actor
    )


def take_back(visit: Visit) -> int:
    """Undo a save of one's own."""
    labelling = _labelling(visit, visit.form.one("undo"))
    if labelling is None or labelling.is_undo:
        raise NotFound("There is no such save of yours to take back.")
    return labels.undo_labelling(visit.transaction, visit.project_id, labelling, actor=visit.actor)


def _labelling(visit: Visit, number: str) -> Labelling | None:
    if not (number.isascii() and number.isdecimal() and len(number) < 10):  # noqa: PLR2004 - fits the column
        return None
    labelling = labels.find_labelling(visit.transaction, visit.project_id, int(number))
    return labelling if labelling is not None and labelling.actor == visit.actor else None


def _category(visit: Visit) -> str | None:
    category = visit.form.one("category") or None
    if category is not None and category not in CATEGORIES:
        raise NotFound("There is no such category.")
    return category
