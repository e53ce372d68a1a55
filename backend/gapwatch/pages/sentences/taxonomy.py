"""How many words of the episodes point nowhere."""

from __future__ import annotations

from gapwatch.pages.sentences.sentence import Sentence, say, strong
from gapwatch.pages.words import plural


def headline(unmapped: int) -> Sentence:
    if not unmapped:
        return say("Every word of your episodes that could be evidence points to a gap category.")
    verb = "points" if unmapped == 1 else "point"
    return say(
        strong(plural(unmapped, "word")),
        f" of your episodes {verb} to no gap category. What only they say stays unattributed.",
    )
