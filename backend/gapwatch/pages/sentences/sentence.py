"""A sentence with emphasis: parts in a row, as plain text for tests and as escaped HTML for templates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from markupsafe import Markup, escape

from gapwatch.answers.answer import Interval
from gapwatch.pages.words import percent, points, utc_day

TAGS = {
    "plain": "{}",
    "strong": "<strong>{}</strong>",
    "hot": '<strong class="hot">{}</strong>',
    "real": '<strong class="real">{}</strong>',
    "sim": '<strong class="sim">{}</strong>',
    "bold": "<b>{}</b>",
    "small": '<span class="ci">{}</span>',
    "muted": '<span class="muted">{}</span>',
    "aside": '<span class="muted nowrap">{}</span>',
    "code": "<code>{}</code>",
}


@dataclass(frozen=True)
class Part:
    """Words in one emphasis; with `href` they are a link."""

    text: str | Markup
    emphasis: str = "plain"
    href: str | None = None

    def __html__(self) -> Markup:
        inside = Markup(TAGS[self.emphasis]).format(self.text)  # noqa: S704 - our own tags
        return inside if self.href is None else Markup('<a href="{}">{}</a>').format(self.href, inside)

    def __str__(self) -> str:
        return self.text.striptags() if isinstance(self.text, Markup) else self.text


@dataclass(frozen=True)
class Sentence:
    parts: tuple[Part, ...]

    def __html__(self) -> Markup:
        return Markup("").join(escape(part) for part in self.parts)

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)

    def emphasised(self, emphasis: str) -> list[str]:
        return [str(part) for part in self.parts if part.emphasis == emphasis]


Words = str | Part | Sentence


def say(*words: Words) -> Sentence:
    """The words in a row, nothing between them."""
    parts: list[Part] = []
    for word in words:
        if isinstance(word, Sentence):
            parts += word.parts
        elif word:
            parts.append(Part(word) if isinstance(word, str) else word)
    return Sentence(tuple(parts))


def together(*sentences: Sentence | None) -> Sentence:
    """The sentences that say something, with spaces between them."""
    spoken = [sentence for sentence in sentences if sentence is not None and sentence.parts]
    return say(
        *(word for place, sentence in enumerate(spoken) for word in ((" ", sentence) if place else (sentence,)))
    )


def strong(text: str) -> Part:
    return Part(text, "strong")


def small(text: str) -> Part:
    """What stands behind a number: its interval, its n."""
    return Part(text, "small")


def point_range(bounds: Interval) -> Part:
    return small(f"({points(bounds[0])} to {points(bounds[1])})")


def percent_range(bounds: Interval) -> str:
    return f"{percent(bounds[0])} to {percent(bounds[1])}"


def day(at: date) -> Part:
    """2 Nov, a day by which episodes are counted."""
    return Part(utc_day(at))
