"""The names this service answers to, and the addresses from which its forms may come.

A page of another site can make its own name lead here (DNS rebinding), and then reads and sends as if it were
ours. So a name has to be known before anything else is looked at.
"""

from __future__ import annotations

import json
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from gapwatch.errors import BadHost
from gapwatch.settings import Settings

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
# Probes ask by whatever address they know; the answers say nothing that a name would open.
FOR_PROBES = {"/healthz", "/readyz", "/metrics"}
DEFAULT_PORTS = {"http": 80, "https": 443}


class KnownHosts:
    """The host of `GAPWATCH_BASE_URL`, those of `GAPWATCH_ALLOWED_HOSTS`, and this machine by its own names.

    Without a base URL the service has no name of its own, and is reached by whatever address its machine has: an
    address cannot be made to lead elsewhere.
    """

    def __init__(self, settings: Settings) -> None:
        self._public = urlsplit(settings.public_url)
        self._port = settings.port
        self._has_name = settings.base_url is not None
        self._names = {
            *LOOPBACK,
            settings.host.lower(),
            (self._public.hostname or "").lower(),
            *settings.allowed_host_names,
        }

    def knows(self, host: str) -> bool:
        """Whether a Host header names this service."""
        name = _name_of(host)
        return name is not None and (name in self._names or (not self._has_name and _is_address(name)))

    def is_home(self, origin: str) -> bool:
        """Whether a form of this origin is one of ours. What the request calls its host has no say in it."""
        try:
            parts = urlsplit(origin)
            port = parts.port or DEFAULT_PORTS[parts.scheme]
        except (ValueError, KeyError):
            return False
        if parts.hostname == self._public.hostname and self._has_name:
            return (parts.scheme, port) == (
                self._public.scheme,
                self._public.port or DEFAULT_PORTS[self._public.scheme],
            )
        return self.knows(parts.netloc) and port in {self._port, *DEFAULT_PORTS.values()}


class HostGate:
    """Answers 400 to a request for a name that is not ours."""

    def __init__(self, app: ASGIApp, hosts: KnownHosts) -> None:
        self._app = app
        self._knows = lru_cache(maxsize=1000)(hosts.knows)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in FOR_PROBES:
            await self._app(scope, receive, send)
            return
        names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        # None at all comes from no browser.
        if len(names) > 1 or (names and not self._knows(names[0])):
            body = json.dumps(BadHost().problem("about:blank")).encode()
            headers = [
                (b"content-type", b"application/problem+json"),
                (b"content-length", b"%d" % len(body)),
                (b"cache-control", b"no-store"),
            ]
            await send({"type": "http.response.start", "status": BadHost.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, send)


def _name_of(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        name = parts.hostname
        _ = parts.port
    except ValueError:
        return None
    return None if not name or parts.path or "@" in host else name.lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
