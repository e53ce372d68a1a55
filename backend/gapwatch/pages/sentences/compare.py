"""Which of several deployments or policy versions does better, and whether that is settled."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.answers.real_difference import RealDifference
from gapwatch.pages.compared_subject import ComparedSubject
from gapwatch.pages.sentences.sentence import Sentence, Words, say, small, strong, together
from gapwatch.pages.words import points, signed


def headline(subjects: Sequence[ComparedSubject]) -> Sentence:
    """All others against the first."""
    first = subjects[0].name
    if len(subjects) == 1:
        return say("Add another to compare it with ", strong(first), ".")
    return together(
        *(_between(subject.name, subject.against, first) for subject in subjects if subject.against is not None)
    )


def _between(name: str, against: RealDifference, first: str) -> Sentence:
    difference, interval = against.difference, against.interval
    between = "" if interval is None else f"{signed(interval[0])} to {signed(interval[1])}"
    if against.verdict in ("better", "worse") and difference is not None:
        return say(
            strong(name),
            " does ",
            strong(against.verdict),
            f" than {first} in reality, by {points(abs(difference))} points ",
            small(f"({between})"),
            ".",
        )
    open_: tuple[Words, ...] = (" ", small(f"({between} points)")) if between else ()
    return say("Between ", strong(name), f" and {first} it is not settled yet", *open_, ".")
