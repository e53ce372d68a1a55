"""A process of low priority that answers the costly requests of its web process.

A preview computes for seconds. In a thread of the web process it would hold the interpreter that all pages and the
ingest share; here it holds a core that nobody else wants. The process is started with the first costly request.
"""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, NamedTuple

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message

from gapwatch.errors import ServiceUnavailable

log = structlog.get_logger()

NICENESS = 10
ANSWER_WITHIN_S = 60.0
# What the side process needs of a request; the rest of the scope belongs to the server.
_KEPT = ("type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path",
         "headers", "client", "server")  # fmt: skip


class WholeAnswer(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class SideProcess:
    """`make_app` is called in the process; it has to be a function of a module."""

    def __init__(self, make_app: Callable[..., ASGIApp], *arguments: Any) -> None:
        self._make_app = make_app
        self._arguments = arguments
        self._pool: ProcessPoolExecutor | None = None

    async def answer(self, request: Request, **state: Any) -> Response:
        """Have the request answered by the application of the side process, whose `state` says who is asking."""
        scope = {name: request.scope[name] for name in _KEPT if name in request.scope}
        scope["state"] = {"request_id": request.state.request_id, **state}
        pool = self._running()
        loop = asyncio.get_running_loop()
        body = await request.body()
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                answer = await loop.run_in_executor(pool, _answer, scope, body)
        except TimeoutError:
            log.warning("a costly request took too long", path=request.url.path)
            self.close()
            raise ServiceUnavailable(
                f"This took longer than {ANSWER_WITHIN_S:.0f} s; ask for less at a time.", retry_after_s=10
            ) from None
        except BrokenProcessPool:
            self.close()
            raise ServiceUnavailable("The computation was interrupted; try again.") from None
        response = Response(answer.body, answer.status)
        response.raw_headers = answer.headers
        return response

    def close(self) -> None:
        """End the process, whatever it is doing: it only reads."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                with suppress(ProcessLookupError):
                    process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

    def _running(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1,
                # A fork would inherit threads and database connections.
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start,
                initargs=(os.getpid(), self._make_app, self._arguments),
            )
        return self._pool


_loop: asyncio.AbstractEventLoop
_app: ASGIApp


def _start(parent: int, make_app: Callable[..., ASGIApp], arguments: tuple[Any, ...]) -> None:
    global _loop, _app  # noqa: PLW0603 - the process serves one application
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        # A killed web process takes this one along.
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)
    os.nice(NICENESS)
    _loop = asyncio.new_event_loop()
    _app = make_app(*arguments)


def _answer(scope: dict[str, Any], body: bytes) -> WholeAnswer:
    return _loop.run_until_complete(_ask_app(scope, body))


async def _ask_app(scope: dict[str, Any], body: bytes) -> WholeAnswer:
    requests = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if requests:
            return requests.pop()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        await _app(scope, receive, send)
    except Exception:
        # Answered and logged by the application, which raises it again for a server to close the connection.
        if not sent:
            raise
    start, *rest = sent
    return WholeAnswer(
        start["status"], list(start.get("headers", [])), b"".join(part.get("body", b"") for part in rest)
    )
