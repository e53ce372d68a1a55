"""One limit of size and time for the body of every request, and no body of the API before its key is known.

uvicorn reads for as long and as much as a client sends. FastAPI reads a body before it looks at the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gapwatch.errors import BodyTooLarge, GapwatchError, MalformedBody, RequestTimeout
from gapwatch.fast_answers import WHOLE_BODY

BODY_WITHIN_S = 15.0
MIB = 1024 * 1024
# Batches of episodes have a limit of their own (`ingest/body.py`).
LARGEST_BODY = MIB
LARGEST_FORM = 64 * 1024
API = "/api/"


class BoundedBodies:
    """An ASGI application around another one. `know_key` raises when a request has no valid key."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        know_key: Callable[[Request], Awaitable[object]],
        answer: Callable[[Request, GapwatchError], Response],
    ) -> None:
        self._app = app
        self._know_key = know_key
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        of_api = scope["path"].startswith(API)
        body = BoundedBody(receive, LARGEST_BODY if of_api else LARGEST_FORM)
        try:
            if of_api:
                await self._know_key(request)
            body.refuse_declared(request.headers.get("content-length", ""))
            if of_api:
                await body.read_ahead()
        except GapwatchError as error:
            await self._answer(request, error)(scope, receive, send)
            return
        # From now on there is one way to the body.
        scope.get("extensions", {}).pop(WHOLE_BODY, None)
        # The pages read their forms themselves, once they know who sends them.
        await self._app(scope, body.receive, send)


class BoundedBody:
    """The body of one request as it arrives: no more than `limit` bytes, and all of it within 15 seconds."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self._ends_at: float | None = None
        self._is_complete = False
        self._ahead: bytes | None = None

    def refuse_declared(self, length: str) -> None:
        if length.isdigit() and (len(length) > 18 or int(length) > self._limit):  # noqa: PLR2004 - more than any disk
            raise too_large(self._limit)

    async def read(self) -> bytes:
        chunks: list[bytes] = []
        while not self._is_complete:
            chunks.append((await self._next())["body"])
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def read_ahead(self) -> None:
        """Read all of it now; `receive` gives it to the application later."""
        self._ahead = await self.read()

    async def receive(self) -> Message:
        """What the application calls in the place of the server's own."""
        if self._ahead is not None:
            body, self._ahead = self._ahead, None
            return {"type": "http.request", "body": body, "more_body": False}
        return await (self._receive() if self._is_complete else self._next())

    async def _next(self) -> Message:
        now = asyncio.get_running_loop().time()
        self._ends_at = self._ends_at or now + BODY_WITHIN_S
        try:
            async with asyncio.timeout_at(self._ends_at):
                message = await self._receive()
        except TimeoutError:
            raise RequestTimeout(f"The body did not arrive within {BODY_WITHIN_S:.0f} s.") from None
        if message["type"] == "http.disconnect":
            raise MalformedBody("The connection closed before the body was complete.")
        message.setdefault("body", b"")
        self._size += len(message["body"])
        if self._size > self._limit:
            raise too_large(self._limit)
        self._is_complete = not message.get("more_body", False)
        return message


def too_large(limit: int) -> BodyTooLarge:
    # Without `Connection: close`: the protocol lets the sender finish, and then closes.
    most = f"{limit // MIB} MiB" if limit >= MIB else f"{limit // 1024} KiB"
    return BodyTooLarge(f"A body may have at most {most} here; send less at a time.")


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
