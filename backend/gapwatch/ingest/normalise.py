"""Bring letters that can be composed in several ways to one form."""

from __future__ import annotations

import unicodedata
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from gapwatch.record import EpisodeRecord


def normalise_text(record: EpisodeRecord) -> bool:
    """Normalise all texts of a record in place (Unicode NFC): é as one character or as two is one name to people.

    Return False when two names of one map become the same.

    Each text is short and normalised by itself: over a whole body the cost of a long run of combining marks grows
    with its square. The contract is compared as it was written.
    """
    for name in record.__struct_fields__:
        if name != "contract":
            value = getattr(record, name)
            composed = _composed(value)
            if isinstance(value, dict) and len(composed) != len(value):
                return False
            setattr(record, name, composed)
    return True


def _composed(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {_composed(key): _composed(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_composed, value))
    if isinstance(value, Struct):
        return type(value)(**{name: _composed(member) for name, member in asdict(value).items()})
    return value
