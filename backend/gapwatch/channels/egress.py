"""Requests to addresses that people typed: resolved once, every address checked, connected to what was checked.

Without this anybody who may set a channel could read what only this machine can reach: cloud metadata, Redis,
routers.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from gapwatch.channels.message import Attempt

CONNECT_WITHIN_S, ANSWER_WITHIN_S = 5.0, 10.0
LARGEST_ANSWER = 64 * 1024
SHOWN_ANSWER = 2000
PUBLIC_PORTS, PUBLIC_MAIL_PORTS = {80, 443}, {25, 465, 587, 2525}
# Tried again: too many, too slow, or their fault. Everything else that is no success will not get better.
PASSING = {408, 425, 429}
SERVER_FAULT, OK_FROM, OK_TO = 500, 200, 300
LONGEST_RETRY_AFTER_S = 3600.0

# Addresses that reach IPv4 ones through another spelling: NAT64, 6to4, Teredo, IPv4-compatible.
_WRAPPED = [
    ipaddress.ip_network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96")
]


class EgressRefused(Exception):
    """The address must not be reached; the message is for people."""


@dataclass(frozen=True)
class Egress:
    """Who may be talked to. `allow_private` is for a service inside a network of its own."""

    allow_private: bool = False

    def resolve(self, host: str, port: int) -> str:
        """One address of the host, after all of them were found harmless."""
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            raise OSError(f"the name {host[:100]} cannot be resolved") from error
        addresses = [str(entry[4][0]) for entry in entries]
        if not self.allow_private:
            for address in addresses:
                if not is_public(address):
                    raise EgressRefused("the target is not a public address; see GAPWATCH_ALLOW_PRIVATE_TARGETS")
        return addresses[0]

    def check_url(self, url: str) -> SplitResult:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if self.allow_private:
            return parts
        if parts.scheme != "https":
            raise EgressRefused("the target must be https; see GAPWATCH_ALLOW_PRIVATE_TARGETS")
        if port not in PUBLIC_PORTS:
            raise EgressRefused("the target must be on port 443 or 80; see GAPWATCH_ALLOW_PRIVATE_TARGETS")
        return parts

    def resolve_mail_server(self, host: str, port: int, *, is_encrypted: bool, has_password: bool) -> str:
        """The same for a mail server: on its ports alone, and with a password only if nobody can listen."""
        if not self.allow_private:
            if port not in PUBLIC_MAIL_PORTS:
                raise EgressRefused(
                    "a mail server must be on port 25, 465, 587 or 2525; see GAPWATCH_ALLOW_PRIVATE_TARGETS"
                )
            if has_password and not is_encrypted:
                raise EgressRefused(
                    "a password is sent over starttls or tls only; see GAPWATCH_ALLOW_PRIVATE_TARGETS"
                )
        return self.resolve(host, port)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """Send one request: no redirects, no proxy of the environment, bounded in time and size."""
        # A quarter of a second to import, which web need not pay: it reads the kinds and never sends.
        import httpx

        started = time.monotonic()

        def attempt(outcome: str, status: int | None, answer: str, retry_after_s: float | None = None) -> Attempt:
            took_ms = round(1000 * (time.monotonic() - started))
            return Attempt(outcome, status, answer, took_ms, retry_after_s)  # type: ignore[arg-type]

        try:
            parts = self.check_url(url)
            host = parts.hostname or ""
            port = parts.port or (443 if parts.scheme == "https" else 80)
            address = self.resolve(host, port)
            literal = f"[{address}]" if ":" in address else address
            pinned = urlunsplit((parts.scheme, f"{literal}:{port}", parts.path or "/", parts.query, ""))
            status, retry_after, answer = _exchange(pinned, host, parts.netloc, body, headers, started)
        except EgressRefused as error:
            return attempt("refused", None, str(error))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
            return attempt("retry", None, f"{type(error).__name__}: {error}"[:SHOWN_ANSWER])
        if OK_FROM <= status < OK_TO:
            return attempt("sent", status, answer)
        if status in PASSING or status >= SERVER_FAULT:
            return attempt("retry", status, answer, retry_after)
        return attempt("refused", status, answer)


def is_public(address: str) -> bool:
    """Whether an address is on the open internet, in whatever spelling."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        if ip.is_site_local or any(ip in net for net in _WRAPPED):
            return False
    return bool(ip.is_global and not ip.is_multicast and not ip.is_reserved and not ip.is_unspecified)


def _exchange(
    url: str, host: str, netloc: str, body: bytes, headers: Mapping[str, str], started: float
) -> tuple[int, float | None, str]:
    import httpx

    limits = httpx.Timeout(ANSWER_WITHIN_S, connect=CONNECT_WITHIN_S)
    all_headers = {**headers, "Host": netloc.rpartition("@")[2], "User-Agent": "gapwatch"}
    sockets: list[socket.socket] = []

    def note_socket(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            sockets.append(info["return_value"].get_extra_info("socket"))

    extensions = {"sni_hostname": host, "trace": note_socket}
    with (
        cut_off(CONNECT_WITHIN_S + ANSWER_WITHIN_S, lambda: sockets),
        httpx.Client(timeout=limits, trust_env=False, follow_redirects=False) as client,
        client.stream("POST", url, content=body, headers=all_headers, extensions=extensions) as answer,
    ):
        text = b""
        for piece in answer.iter_raw():
            text += piece
            if len(text) > LARGEST_ANSWER or time.monotonic() - started > ANSWER_WITHIN_S:
                break
        return answer.status_code, retry_after_s(answer.headers.get("retry-after")), _readable(text)


@contextmanager
def cut_off(within_s: float, sockets: Callable[[], list[socket.socket]]) -> Iterator[None]:
    """End a conversation that takes longer. A time-out is of one piece: whoever sends a letter every few seconds
    would keep a sender, of which all tenants have a few together, for days.
    """

    def cut() -> None:
        for one in sockets():
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(within_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def retry_after_s(header: str | None) -> float | None:
    """Seconds of a Retry-After header; dates are taken for a minute."""
    if header is None:
        return None
    try:
        return min(LONGEST_RETRY_AFTER_S, max(0.0, float(header)))
    except ValueError:
        return 60.0


def _readable(text: bytes) -> str:
    words = text[:SHOWN_ANSWER].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in words)
