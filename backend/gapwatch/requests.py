"""What surrounds every request: an id, one log line, security headers, and an answer to every failure.

Pure ASGI: Starlette's BaseHTTPMiddleware hides disconnects and cancels background work.
"""

from __future__ import annotations

import re
import time
import uuid

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger()

USABLE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
INGEST_PATHS = {"/api/v1/episodes", "/api/v1/episodes/batch"}
BAD_REQUEST = 400
QUIET_PATHS = {"/healthz", "/readyz", "/metrics"}

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        # Plotly's toolbar and legends place themselves with inline styles.
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
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
    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._headers = dict(SECURITY_HEADERS)
        if https:
            self._headers["Strict-Transport-Security"] = "max-age=31536000; includeSubDomains"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or uuid.uuid4().hex
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
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_headers)
            finally:
                # A fleet sends thousands of episodes a second; one that was stored is no news.
                is_news = status >= BAD_REQUEST or not (
                    scope["method"] == "POST" and scope["path"] in INGEST_PATHS
                )
                if is_news and scope["path"] not in QUIET_PATHS:
                    # The path only: a query may hold what a person typed by mistake, a key among it.
                    log.info(
                        "request",
                        method=scope["method"],
                        path=scope["path"],
                        status=status,
                        ms=round(1000 * (time.perf_counter() - started), 1),
                    )


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text = value.decode("latin-1")
            return text if USABLE_ID.fullmatch(text) else None
    return None
