"""Answers to calls that come thousands of times a second, without a framework between them and the socket.

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

# An extension of ASGI that our protocol offers: status, lines of the head and body, written at once.
WHOLE_ANSWER = "gapwatch.whole_answer"
# Another: the body, if all of it has come already. Small ones arrive with their head.
WHOLE_BODY = "gapwatch.whole_body"

_encode = msgspec.json.Encoder().encode


class RawAnswer(NamedTuple):
    status: int
    body: bytes
    media_type: bytes = b"application/json"
    headers: Mapping[str, str] = {}


Handler = Callable[[Scope, Receive], Awaitable[RawAnswer]]


def refusal(error: Exception, request_id: str) -> RawAnswer:
    """problem+json; an error that is not ours is logged, and told by its id alone."""
    if not isinstance(error, GapwatchError):
        log.exception("unexpected error", error=type(error).__name__)
        error = GapwatchError(f"The request failed and was logged under the id {request_id}.")
    body = _encode(error.problem(f"/requests/{request_id}"))
    return RawAnswer(error.status, body, b"application/problem+json", error.headers)
