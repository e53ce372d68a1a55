"""One form for what can be written in several: nulls, zeros and composed letters.

Each function changes the record in place and runs only for records whose bytes hint that it is needed.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from msgspec import UNSET, Struct

from gapwatch.record import EpisodeRecord


def drop_nulls(record: EpisodeRecord) -> None:
    """A null optional field says the same as an absent one."""
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if value is None:
            setattr(record, name, UNSET)
        elif isinstance(value, Struct):
            for part in value.__struct_fields__:
                if getattr(value, part) is None:
                    setattr(value, part, UNSET)
        elif isinstance(value, dict):
            setattr(record, name, {key: member for key, member in value.items() if member is not None})


def normalise_zeros(record: EpisodeRecord) -> None:
    """−0.0 and 0.0 are one value to people and two to a hash."""
    for name in ("duration_s", "reward"):
        value = getattr(record, name)
        if isinstance(value, float):
            setattr(record, name, value + 0.0)
    for name in ("metrics", "signals", "conditions", "provenance"):
        value = getattr(record, name)
        if isinstance(value, dict):
            for key, member in value.items():
                if isinstance(member, float):
                    value[key] = member + 0.0
    if isinstance(record.embedding, list):
        record.embedding = [member + 0.0 for member in record.embedding]


def normalise_text(record: EpisodeRecord) -> bool:
    """é as one character or as two is one name to people; it is stored as one (Unicode NFC).

    False when two names of one map become the same.

    Text by text, each of bounded length: over a whole body the cost of a long run of combining marks grows with
    its square. The contract is compared as it was written.
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
    if isinstance(value, list):
        return [_composed(member) for member in value]
    if isinstance(value, Struct):
        for part in value.__struct_fields__:
            setattr(value, part, _composed(getattr(value, part)))
    return value
