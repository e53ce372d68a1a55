"""Fields that came after the first release: their columns, and what they add to a content hash.

Columns follow those of the first release, NULL where a field is absent. To the hash a field adds its name and its
bytes, and only where it is present. A record that does not use it keeps the hash it always had, so the retry of an
episode that an earlier release stored is a duplicate and not a conflict.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from gapwatch.ingest.packing import copy_format as pg
from gapwatch.ingest.packing.episode_context import encode_json
from gapwatch.record import LATER_FIELDS, EpisodeRecord

ALL_ABSENT = pg.NULL * len(LATER_FIELDS)


class PackedLaterFields(NamedTuple):
    columns: bytes
    """In COPY format, in the order of LATER_FIELDS."""
    hashed: bytes
    """What is added to the hashed content."""


def pack_later_fields(record: EpisodeRecord) -> PackedLaterFields:
    columns: list[bytes] = []
    hashed: list[bytes] = []
    for name, value_of, pack in _PACKERS:
        value = value_of(record)
        packed = pg.NULL if value is None or value is UNSET else pack(value)
        columns.append(packed)
        if packed != pg.NULL:
            hashed += (name, packed)
    return PackedLaterFields(b"".join(columns), b"".join(hashed))


def _pack_json(value: Any) -> bytes:
    """Empty means absent, like in the fields of the first release."""
    plain = _plain(msgspec.to_builtins(value))
    return pg.jsonb(encode_json(plain)) if plain else pg.NULL


def _plain(value: Any) -> Any:
    """Drop null members, and write −0.0 as 0.0: one value to people, two to a hash."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return list(map(_plain, value))
    return value + 0.0 if isinstance(value, float) else value


_PACK_TYPE: dict[str, Callable[[Any], bytes]] = {
    "text": pg.text,
    "int4": pg.int4,
    "float8": pg.float8,
    "text[]": pg.text_array,
    "float8[]": pg.float8_array,
    "jsonb": _pack_json,
}
# Of each field: its name as it is hashed, how to find its value, how to pack it.
_PACKERS = tuple(
    (pg.text(field.column), field.value or attrgetter(field.column), _PACK_TYPE[field.type])
    for field in LATER_FIELDS
)
