"""A server within the test's own process, so that its deadlines can be short."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from gapwatch.http_protocol import BoundedProtocol
from parts import wait_until


@contextlib.contextmanager
def serving(app: ASGIApp, lifespan: str = "off") -> Iterator[tuple[int, uvicorn.Server]]:
    """The port, and the server itself."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, http=BoundedProtocol, loop="uvloop", lifespan=lifespan, log_config=None)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started, what="the server listening")
    try:
        yield server.servers[0].sockets[0].getsockname()[1], server
    finally:
        server.should_exit = True
        thread.join(10)
