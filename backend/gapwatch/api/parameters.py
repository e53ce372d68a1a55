"""What FastAPI leaves lax in a query string: repeated parameters, and opaque page marks."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta

from starlette.requests import Request

from gapwatch.errors import Fault, Invalid
from gapwatch.store.read.episodes import PageCursor

# The filters that may stand several times in one query.
REPEATABLE = {"robot", "site", "simulator", "stage", "condition", "signal"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def refuse_repeated(request: Request) -> None:
    """The framework would silently take the last of two values; a sender must learn of it instead."""
    names = [name for name, _ in request.query_params.multi_items()]
    twice = sorted({name for name in names if names.count(name) > 1} - REPEATABLE)
    if twice:
        message = "This parameter may be given only once."
        faults = [Fault(pointer=f"/query/{name[:64]}", code="repeated", message=message) for name in twice]
        raise Invalid("A parameter is given twice.", errors=faults)


def write_mark(cursor: PageCursor | None) -> str | None:
    if cursor is None:
        return None
    micros = (cursor.started_at - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(f"{micros} {cursor.id}".encode()).decode().rstrip("=")


def read_mark(mark: str | None) -> PageCursor | None:
    if mark is None:
        return None
    try:
        micros, _, id_ = base64.urlsafe_b64decode(mark + "=" * (-len(mark) % 4)).decode().partition(" ")
        return PageCursor(_EPOCH + timedelta(microseconds=int(micros)), id_.replace("\0", ""))
    except (binascii.Error, ValueError, OverflowError):
        message = "Give `after` exactly as `next` said it."
        raise Invalid(message, errors=[Fault(pointer="/query/after", code="bad-mark", message=message)]) from None
