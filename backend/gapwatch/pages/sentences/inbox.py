"""What the inbox says above its list."""

from __future__ import annotations

from collections.abc import Mapping

from gapwatch.pages.sentences.sentence import Part, Sentence, say
from gapwatch.pages.words import plural


def inbox(shown: int, counts: Mapping[str, int], *, filtered: bool, more: bool) -> Sentence:
    """`more`: there are older ones on the next page, so that the counts are of this page only."""
    if filtered:
        older = ", older ones on the next page" if more else ""
        return say(f"{plural(shown, 'alert')} that match{'es' if shown == 1 else ''}{older}.")
    waiting, taken = counts["firing"] + counts["no_data"], counts["acknowledged"]
    if waiting:
        than = "More than " if more else ""
        others = f", {taken} {'is' if taken == 1 else 'are'} taken on" if taken else ""
        verb = "waits" if waiting == 1 else "wait"
        return say(Part(f"▼ {than}{plural(waiting, 'alert')}", "hot"), f" {verb} for somebody{others}.")
    return say("Nothing waits for anybody." if shown else "Nothing is on fire.")
