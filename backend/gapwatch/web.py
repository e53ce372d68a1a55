"""`gapwatch web`: uvicorn with the settings we rely on."""

from __future__ import annotations

import socket
from collections.abc import Callable

import structlog
import uvicorn

from gapwatch.accounts import setup_link
from gapwatch.app import make_app
from gapwatch.errors import GapwatchError
from gapwatch.garbage_collection import collect_seldom
from gapwatch.http_protocol import BoundedProtocol
from gapwatch.server_secret import check_secret
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database

log = structlog.get_logger()

DRAIN_WITHIN_S = 30


def run_web(settings: Settings, fd: int | None = None) -> None:
    refuse_wrong_secret(settings)
    if fd is None:
        # Under a supervisor, the supervisor prints it.
        say_setup_link(settings)
    at_stop: list[Callable[[], None]] = []
    config = uvicorn.Config(
        make_app(settings, at_stop=at_stop),
        host=settings.host,
        port=settings.port,
        # Without uvloop, processes that share a socket stall for tens of milliseconds per request.
        loop="uvloop",
        http=BoundedProtocol,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Forwarded headers are trusted only from the configured proxies. They only identify the client:
        # the public address is a setting.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN_WITHIN_S,
    )
    sockets = None if fd is None else [socket.socket(fileno=fd)]
    collect_seldom()
    _Server(config, at_stop).run(sockets=sockets)


class _Server(uvicorn.Server):
    """Lets those go who wait for news before it waits for them: a robot would hold up the end for 30 s."""

    def __init__(self, config: uvicorn.Config, at_stop: list[Callable[[], None]]) -> None:
        super().__init__(config)
        self._at_stop = at_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for call in self._at_stop:
            call()
        await super().shutdown(sockets)


def refuse_wrong_secret(settings: Settings) -> None:
    """Raise WrongSecret, unless the database does not answer yet: then `/readyz` will tell."""
    assert settings.database_url is not None  # noqa: S101 - the command line refuses to start without
    database = Database(settings.database_url, pool_size=1)
    try:
        check_secret(database, settings)
    except GapwatchError:
        log.warning("the database is not answering yet")
    finally:
        database.close()


def say_setup_link(settings: Settings) -> None:
    """Log the link to create the first admin, while there are no users."""
    assert settings.database_url is not None  # noqa: S101 - the command line refuses to start without
    database = Database(settings.database_url, pool_size=1)
    try:
        link = setup_link(database, settings)
        if link is not None:
            log.warning("nobody can sign in yet; make the first admin within a day", open=link)
    except GapwatchError:
        # The database is not up yet. Restarting web later, or creating a user by command, still works.
        log.warning("the database is not answering yet")
    finally:
        database.close()
