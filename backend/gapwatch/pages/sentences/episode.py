"""What an episode's page says about it: the note, how many fail like it, and how it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapwatch.answers.episode_evidence import SimilarFailures
from gapwatch.pages.sentences.sentence import Part, Sentence, Words, say, small, together
from gapwatch.pages.words import count


def headline(note: str | None, alike: SimilarFailures | None) -> Sentence:
    """Says nothing where there is neither."""
    opening = None
    if note:
        opening = say(note if note.endswith((".", "!", "?")) else f"{note}.")
    return together(opening, None if alike is None else _alike(alike))


def _alike(alike: SimilarFailures) -> Sentence:
    return say(
        "One of ",
        Part(count(alike.real), "real"),
        " ",
        small(f"of {count(alike.n_real)} real episodes"),
        " that fail like this; ",
        Part(count(alike.sim) if alike.sim else "none", "sim"),
        " ",
        small(f"of {count(alike.n_sim)}"),
        " in simulation.",
    )


def failed_how(failure: Mapping[str, Any], phase_href: str) -> Sentence:
    """Phase, labels, and the category that a person gave."""
    phase, labels, category = failure.get("phase"), failure.get("labels"), failure.get("category")
    words: list[Words] = ["phase ", Part(phase, href=phase_href)] if phase else []
    if labels:
        words.append(f"{', ' if words else ''}labels {', '.join(labels)}")
    if category:
        words.append(f"{'; ' if words else ''}category {category}, given")
    return say(*words)
