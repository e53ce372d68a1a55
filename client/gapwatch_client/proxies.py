"""Connections through the proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name, if any."""

from __future__ import annotations

import base64
import ipaddress
import ssl
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass


def connect(
    scheme: str, host: str, port: int | None, timeout_s: float
) -> tuple[HTTPConnection, str, dict[str, str]]:
    """Return an unopened connection, the prefix of a request's path, and headers for the proxy."""
    proxy_url = None if _is_here(host) or proxy_bypass(host) else getproxies().get(scheme)
    if proxy_url is None:
        if scheme == "https":
            context = ssl.create_default_context()
            return HTTPSConnection(host, port, timeout=timeout_s, context=context), "", {}
        return HTTPConnection(host, port, timeout=timeout_s), "", {}
    proxy = urlsplit(proxy_url if "//" in proxy_url else f"http://{proxy_url}")
    headers = {}
    if proxy.username:
        word = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(word).decode()}"
    if scheme == "https":
        tunnel = HTTPSConnection(
            proxy.hostname or "", proxy.port, timeout=timeout_s, context=ssl.create_default_context()
        )
        tunnel.set_tunnel(host, port, headers)
        return tunnel, "", {}
    plain = HTTPConnection(proxy.hostname or "", proxy.port, timeout=timeout_s)
    return plain, f"http://{host}:{port}" if port else f"http://{host}", headers


def _is_here(host: str) -> bool:
    """Whether it is this machine, which is never behind a proxy."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
