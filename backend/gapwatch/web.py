"""`gapwatch web`: uvicorn with the settings we rely on."""

from __future__ import annotations

import socket

import uvicorn

from gapwatch.app import make_app
from gapwatch.protocol import BoundedProtocol
from gapwatch.settings import Settings

DRAIN_WITHIN_S = 30


def run_web(settings: Settings, fd: int | None = None) -> None:
    config = uvicorn.Config(
        make_app(settings),
        host=settings.host,
        port=settings.port,
        # Without uvloop, processes that share a socket stall for tens of milliseconds a request.
        loop="uvloop",
        http=BoundedProtocol,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Forwarded headers are trusted from nobody: the public address is a setting.
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN_WITHIN_S,
    )
    sockets = None if fd is None else [socket.socket(fileno=fd)]
    uvicorn.Server(config).run(sockets=sockets)
