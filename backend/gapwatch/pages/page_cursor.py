"""Opaque marks in addresses: where a page of a list starts."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta

from gapwatch.errors import NotFound
from gapwatch.store.read.episodes import PageCursor

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_mark(cursor: PageCursor) -> str:
    micros = (cursor.started_at - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(f"{micros} {cursor.id}".encode()).decode().rstrip("=")


def read_mark(mark: str | None) -> PageCursor | None:
    if not mark:
        return None
    try:
        micros, _, id_ = base64.urlsafe_b64decode(mark + "=" * (-len(mark) % 4)).decode().partition(" ")
        return PageCursor(_EPOCH + timedelta(microseconds=int(micros)), id_.replace("\0", ""))
    except (binascii.Error, ValueError, OverflowError):
        raise NotFound("This part of the list does not exist; start again from its first page.") from None
