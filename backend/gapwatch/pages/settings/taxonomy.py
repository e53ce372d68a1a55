"""`/settings/taxonomy`: what the project's own phases, labels, conditions and signals point to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import RedirectResponse, Response

from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.pages.sentences.taxonomy import headline
from gapwatch.store.people import project_options
from gapwatch.store.read import vocabulary
from gapwatch.taxonomy import CATEGORIES, KINDS, Kind, Taxonomy

LONGEST_WORD = 128
MOST_WORDS = 500
# In the form: no category at all, and back to what comes by default.
NOTHING, DEFAULT = "nothing", "default"


@dataclass(frozen=True)
class WordEntry:
    """A word the episodes use, or a pattern of the project, and where it points."""

    word: str
    used: int | None
    points_to: tuple[str, ...]
    is_own: bool
    # Where a word points nowhere: the category of the known word it is most like, to be mapped with one click.
    suggested: str | None = None


@dataclass(frozen=True)
class KindEntry:
    kind: Kind
    words: list[WordEntry]


@dataclass(frozen=True)
class TaxonomyPage:
    kinds: list[KindEntry]
    unmapped: int
    problem: str

    @property
    def headline(self) -> Sentence:
        return headline(self.unmapped)


def show_taxonomy(visit: Visit) -> View:
    return View("settings_taxonomy.html", _page(visit, ""))


def change_taxonomy(visit: Visit) -> View | Response:
    """One word of one kind: its category, nothing, or the default again."""
    kind, word, to = visit.form.one("kind"), visit.form.line("word", LONGEST_WORD), visit.form.one("to")
    if kind not in KINDS or not word or to not in {*CATEGORIES, NOTHING, DEFAULT}:
        return View("settings_taxonomy.html", _page(visit, "Give a word and a category."), 422)
    own = _own(visit)
    words = dict(own.get(kind, {}))
    if to == DEFAULT:
        words.pop(word, None)
    else:
        words[word] = None if to == NOTHING else to
    if len(words) > MOST_WORDS:
        return View("settings_taxonomy.html", _page(visit, f"At most {MOST_WORDS} words of a kind."), 422)
    project_options.set_option(visit.transaction, visit.project_id, "taxonomy", {**own, kind: words}, visit.actor)
    return RedirectResponse(visit.frame.links.to("settings", "taxonomy"), 303)


def _own(visit: Visit) -> dict[str, dict[str, Any]]:
    return visit.options.get("taxonomy") or {}


def _page(visit: Visit, problem: str) -> TaxonomyPage:
    own = _own(visit)
    taxonomy = Taxonomy(own)
    used = vocabulary.words_used(visit.transaction, visit.project_id)
    kinds = [KindEntry(kind, _entries(kind, used.get(kind, {}), own.get(kind, {}), taxonomy)) for kind in KINDS]
    unmapped = sum(not entry.points_to and not entry.is_own for kind in kinds for entry in kind.words)
    return TaxonomyPage(kinds, unmapped, problem)


def _entries(kind: Kind, used: dict[str, int | None], own: dict[str, Any], taxonomy: Taxonomy) -> list[WordEntry]:
    """Words without a category first: they are what is left to do."""
    entries = [
        WordEntry(word, used.get(word), points_to, word in own, _suggested(kind, word, points_to, own, taxonomy))
        for word in dict.fromkeys([*own, *used])
        for points_to in (taxonomy.categories_of(kind, word),)
    ]
    return sorted(
        entries, key=lambda entry: (bool(entry.points_to) or entry.is_own, -(entry.used or 0), entry.word)
    )


def _suggested(
    kind: Kind, word: str, points_to: tuple[str, ...], own: dict[str, Any], taxonomy: Taxonomy
) -> str | None:
    return None if points_to or word in own else taxonomy.suggest(kind, word)
