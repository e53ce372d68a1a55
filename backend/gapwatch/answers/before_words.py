"""Sentences about sim as sentences about what was before, for answers that hold the present against it.

The statistics know two sides and call them sim and real; what they say of them is told anew here, in one place,
so that no sentence has to be written twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from gapwatch.answers.answer import Caution

_RETOLD = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"was never simulated, is met in (\d+) % of real episodes",
         r"was never met before, is met in \1 % since then"),
        (r", which sim does not log", ", which was not logged before"),
        (r"real's failures show more of it than sim's in the same phase",
         "failures since show more of it than those before in the same phase"),
        (r"where real fails more than its causes explain", "which fails more since than its causes explain"),
        (r"and what only being real does", "and what only the time since does"),
        (r"costs (\d+) points in real and is not in the sim episodes: it is judged by real episodes alone\. .*",
         r"costs \1 points and was not met before: it is judged by the episodes since alone."),
        (r"the failures that real has above sim", "the failures that there are more of since"),
        (r"Failures in sim are (labelled|given a phase) far more often than in real",
         r"Failures before are \1 far more often than those since"),
        (r"Failures in real are (labelled|given a phase) far more often than in sim",
         r"Failures since are \1 far more often than those before"),
        (r"(\d+) % of sim successes", r"\1 % of the successes before"),
        (r"(\d+) % of real successes", r"\1 % of the successes since"),
        (r"more here than in sim\b", "more since than before"),
        (r"as frequent here as in sim\b", "as frequent as before"),
        (r"times as (frequent|rare) here", r"times as \1 as before"),
        (r"\((\S+) here, (\S+) in sim\)", r"(\1 since, \2 before)"),
        (r"\((\S+) here\)", r"(\1 since)"),
        (r"\bin sim\b", "before"),
        (r"\bthan sim's\b", "than before"),
        (r"\bin real\b", "since"),
    )
)  # fmt: skip


def told_of_before(text: str) -> str:
    for pattern, words in _RETOLD:
        text = pattern.sub(words, text)
    return text


def all_told_of_before(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(told_of_before, texts))


def cautions_of_before(cautions: Iterable[Caution]) -> tuple[Caution, ...]:
    return tuple(replace(one, message=told_of_before(one.message)) for one in cautions)
