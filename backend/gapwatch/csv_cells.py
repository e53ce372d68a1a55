"""Text as a cell of a CSV file: what a spreadsheet would run as a formula starts with an apostrophe."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# What a spreadsheet takes for the start of a formula (OWASP, CSV injection), wide letters of East Asia included.
_FORMULA = re.compile(r"^[=+\-@\t\r\n＝＋－＠]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def safe_cell(value: Any) -> Any:
    """The value without control characters. It is judged as a spreadsheet reads it: after they are gone, and
    without the spaces and invisible letters that it may skip at the start.
    """
    if not isinstance(value, str):
        return value
    clean = _CONTROL.sub("", value)
    is_formula = _FORMULA.match(clean) or _FORMULA.match(_first_seen(clean))
    return f"'{clean}" if is_formula else clean


def _first_seen(text: str) -> str:
    """The text from its first visible letter on."""
    for place, letter in enumerate(text):
        if not letter.isspace() and unicodedata.category(letter) != "Cf":
            return text[place:]
    return ""
