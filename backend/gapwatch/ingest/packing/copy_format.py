"""Postgres' binary COPY format for the columns of an episode.

Written by hand so that words and numbers that come again and again are packed once; docs/decisions/0007 has
the measurement. The format is stable and documented ("COPY: Binary Format").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct, pack

import numpy as np

NULL = b"\xff\xff\xff\xff"

_int4 = Struct(">ii").pack
_int8 = Struct(">iq").pack
_float8 = Struct(">id").pack
_length = Struct(">i").pack
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_FLOAT8_OID = 701
_TEXT_OID = 25
_PAIR = np.dtype([("length", ">i4"), ("value", ">f8")])
# Up to this length arrays are packed by a cached format; longer ones (embeddings) by numpy.
LONGEST_KEPT = 256


@lru_cache(maxsize=65536)
def int4(value: int | None) -> bytes:
    return NULL if value is None else _int4(4, value)


def float8(value: float | None) -> bytes:
    """−0.0 is written as 0.0."""
    return NULL if value is None else _float8(8, value + 0.0)


def microseconds(value: datetime) -> int:
    """Return a time as Postgres counts it."""
    return (value - EPOCH) // MICROSECOND


def timestamptz(value: datetime) -> bytes:
    return _int8(8, microseconds(value))


def text(value: str | None) -> bytes:
    if value is None:
        return NULL
    encoded = value.encode()
    return _length(len(encoded)) + encoded


def bytea(value: bytes) -> bytes:
    return _length(len(value)) + value


def jsonb(encoded: bytes | None) -> bytes:
    return NULL if encoded is None else _length(len(encoded) + 1) + b"\x01" + encoded


def float8_array_head(count: int) -> tuple[int, ...]:
    """Return what stands before the elements: length, dimensions, no nulls, type, count, lower bound."""
    return (20 + 12 * count, 1, 0, _FLOAT8_OID, count, 1)


def float8_array(values: Sequence[float] | None) -> bytes:
    """−0.0 is written as 0.0."""
    if values is None:
        return NULL
    count = len(values)
    if count == 0:
        return pack(">iiii", 12, 0, 0, _FLOAT8_OID)
    head = float8_array_head(count)
    if count > LONGEST_KEPT:
        pairs = np.empty(count, _PAIR)
        pairs["length"], pairs["value"] = 8, values
        pairs["value"] += 0.0
        return pack(">6i", *head) + pairs.tobytes()
    interleaved: list[float] = [8] * (2 * count)
    interleaved[1::2] = [value + 0.0 for value in values]
    return _float8_array_format(count).pack(*head, *interleaved)


@lru_cache(maxsize=LONGEST_KEPT)
def _float8_array_format(count: int) -> Struct:
    return Struct(">6i" + "id" * count)


def text_array(values: Iterable[str] | None) -> bytes:
    if values is None:
        return NULL
    packed = list(map(text, values))
    if not packed:
        return pack(">iiii", 12, 0, 0, _TEXT_OID)
    body = b"".join(packed)
    return pack(">6i", 20 + len(body), 1, 0, _TEXT_OID, len(packed), 1) + body
