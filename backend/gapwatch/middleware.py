"""What surrounds every request: an id, one log line, security headers, and an answer to every failure.

Pure ASGI: Starlette's BaseHTTPMiddleware hides disconnects and cancels background work.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gapwatch.fast_answers import (
    WHOLE_ANSWER,
    Handler,
    refusal,
)

log = structlog.get_logger()

USABLE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
NOT_MODIFIED = 304
BAD_REQUEST = 400
QUIET_PATHS = {"/healthz", "/readyz", "/metrics"}

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        # Plotly's toolbar and legends place themselves with inline styles.
        "style-src 'self' 'unsafe-inline'",
        # Saving a figure as PNG goes through an image that the page creates.
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
}


class RequestContext:
    """`posts` maps paths to handlers that answer a POST directly, `gets` finds one for a GET; the application
    handles everything else."""

    def __init__(
        self, app: ASGIApp, *, https: bool, posts: Mapping[str, Handler], gets: Callable[[Scope], Handler | None]
    ) -> None:
        self._app = app
        self._posts = posts
        self._gets = gets
        self._headers = _security_headers(https=https)
        self._raw_headers = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
        self._head = b"".join(b"%s: %s\r\n" % header for header in self._raw_headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id_of(scope) or os.urandom(16).hex()
        handler = self._gets(scope) if scope["method"] == "GET" else None
        if scope["method"] == "POST":
            handler = self._posts.get(scope["path"])
        if handler is not None:
            await self._answer_directly(handler, request_id, scope, receive, send)
            return
        scope.setdefault("state", {})["request_id"] = request_id
        status = 500
        started = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_headers)
            finally:
                if scope["path"] not in QUIET_PATHS:
                    _log_request(scope, status, started)

    async def _answer_directly(
        self, handler: Handler, request_id: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        started = time.perf_counter()
        try:
            answer = await handler(scope, receive)
        except Exception as error:
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                answer = refusal(error, request_id)
        headers = [
            (b"content-type", answer.media_type),
            (b"x-request-id", request_id.encode()),
            *[(name.lower().encode(), value.encode()) for name, value in answer.headers.items()],
        ]
        write = scope.get("extensions", {}).get(WHOLE_ANSWER)
        if write is not None:
            head = b"".join([b"%s: %s\r\n" % header for header in headers]) + self._head
            await write(answer.status, head, answer.body)
        else:
            headers += self._raw_headers
            if answer.status != NOT_MODIFIED:
                headers.append((b"content-length", b"%d" % len(answer.body)))
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            await send({"type": "http.response.body", "body": answer.body})
        # A fleet sends thousands of episodes a second; do not log the ones that were stored.
        if answer.status >= BAD_REQUEST:
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                _log_request(scope, answer.status, started)


def _security_headers(*, https: bool) -> dict[str, str]:
    strict = {"Strict-Transport-Security": "max-age=31536000; includeSubDomains"} if https else {}
    return SECURITY_HEADERS | strict | {"Cache-Control": "no-store"}


def _log_request(scope: Scope, status: int, started: float) -> None:
    # Only the path: a query may contain what a person typed by mistake, such as a key.
    log.info(
        "request",
        method=scope["method"],
        path=scope["path"],
        status=status,
        ms=round(1000 * (time.perf_counter() - started), 1),
    )


def _request_id_of(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text = value.decode("latin-1")
            return text if USABLE_ID.fullmatch(text) else None
    return None
