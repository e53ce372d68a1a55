"""Answers to calls that come thousands of times a second, without a framework in between.

`middleware.py` sends them, with the id and the headers that every other answer has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec
import structlog
from starlette.types import Receive, Scope

from gapwatch.errors import GapwatchError

log = structlog.get_logger()

# An ASGI extension of our protocol: write status, header lines and body at once.
WHOLE_ANSWER = "gapwatch.whole_answer"
# Another: get the body if it has arrived completely. Small ones arrive with their head.
WHOLE_BODY = "gapwatch.whole_body"
# And another: break the connection at once, whatever is still to be sent.
ABORT = "gapwatch.abort"

_encode = msgspec.json.Encoder().encode


class RawAnswer(NamedTuple):
    status: int
    body: bytes
    media_type: bytes = b"application/json"
    headers: Mapping[str, str] = {}


Handler = Callable[[Scope, Receive], Awaitable[RawAnswer]]


def refusal(error: Exception, request_id: str) -> RawAnswer:
    """An answer as problem+json. An unexpected error is logged, and the answer has only its id."""
    if not isinstance(error, GapwatchError):
        log.exception("unexpected error", error=type(error).__name__)
        error = GapwatchError(f"The request failed and was logged under the id {request_id}.")
    body = _encode(error.problem(f"/requests/{request_id}"))
    return RawAnswer(error.status, body, b"application/problem+json", error.headers)
