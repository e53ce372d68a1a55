"""Small HTML forms; the size and time of a body are bounded for every request (`doors/bounded_body.py`)."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from starlette.requests import Request

from gapwatch.errors import MalformedBody, UnsupportedMediaType

MOST_FIELDS = 500
_BARE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")


class Form:
    """What a person sent: one value a name, or all of them."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def one(self, name: str, otherwise: str = "") -> str:
        """The last value of a field, as HTML's hidden defaults expect."""
        return next((value for key, value in reversed(self._pairs) if key == name), otherwise)

    def line(self, name: str, longest: int = 256) -> str:
        """A value on one line, without the space around it."""
        return " ".join(self.one(name).split())[:longest]

    def moment(self, name: str) -> str:
        """A date and time as UTC text, empty if it was left out. A browser without our script sends it bare."""
        return as_utc(self.line(name, 64))

    def many(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name]

    def number(self, name: str) -> int:
        """A row's id; 0, which no row has, for anything else."""
        return _number(self.one(name)) or 0

    def numbers(self, name: str) -> list[int]:
        return [number for text in self.many(name) if (number := _number(text))]


def as_utc(text: str) -> str:
    """2026-11-02T09:00 → 2026-11-02T09:00:00Z: the field says that what it holds is UTC. Anything else stays."""
    if _BARE_TIME.fullmatch(text) is None:
        return text
    return f"{text}{':00' if len(text) == len('2026-11-02T09:00') else ''}Z"


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004


async def read_form(request: Request) -> Form:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("Send the form as application/x-www-form-urlencoded.")
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        raise MalformedBody("The form cannot be read.") from None
    if any("\0" in part for pair in pairs for part in pair):
        raise MalformedBody("The form cannot be read.")
    return Form(pairs)
