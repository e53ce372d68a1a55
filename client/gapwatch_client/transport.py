"""One persistent connection to the service: a batch of records out, the server's answer back."""

from __future__ import annotations

import contextlib
import json
import socket
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from gapwatch_client.proxies import connect
from gapwatch_client.version import VERSION

PATH = "/api/v1/episodes/batch"
STATUS_PATH = "/api/v1/robots/status"
EVENT_PATH = "/api/v1/events"
# A server stores a batch and answers within a fraction of this; a network that drops packets never does.
ANSWER_WITHIN_S = 30.0
_LARGEST_ANSWER = 32 * 1024 * 1024


class Unreachable(Exception):
    """No answer came. The batch may have been stored or not; sending it again is safe."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]
    retry_after_s: float | None = None
    tag: str | None = None

    @property
    def is_from_gapwatch(self) -> bool:
        """Whether it is not from a proxy or captive portal, which must not decide what happens to records."""
        is_answer = "sent" in self.body or "applied" in self.body
        return is_answer or str(self.body.get("type", "")).startswith("/problems/")

    @property
    def explanation(self) -> str:
        detail = self.body.get("detail") or self.body.get("title") or "no explanation"
        return f"{self.status}: {detail}"


def pack(payloads: list[bytes]) -> bytes:
    """Pack records into a request body: one line each, gzipped. The fastest level saves three quarters."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(b"\n".join(payloads)) + packer.flush()


class Transport:
    def __init__(self, url: str, key: str, timeout_s: float = ANSWER_WITHIN_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a Gapwatch service, such as https://gapwatch.example.com")
        if not key or not key.isascii() or any(sign.isspace() for sign in key):
            raise ValueError("The key is empty or damaged; `gapwatch key create --scope ingest` makes one.")
        self._scheme = parts.scheme
        self._host, self._port = parts.hostname, parts.port
        self._root = parts.path.rstrip("/")
        self._timeout_s = timeout_s
        self._url, self._key = url, key
        self._connection: HTTPConnection | None = None
        self._before_path = ""
        self._for_proxy: dict[str, str] = {}
        self._headers = {
            "Authorization": f"Bearer {key}",
            "User-Agent": f"gapwatch-client/{VERSION}",
        }
        # How old the oldest record is that waits to be sent; told with every batch once it is known.
        self.spool_age_s: float | None = None

    @property
    def address(self) -> str:
        return self._url

    def another(self, timeout_s: float) -> Transport:
        """The same service over a connection of its own, for calls that wait."""
        return Transport(self._url, self._key, timeout_s)

    def post(self, body: bytes, meanwhile: Callable[[], None] | None = None) -> Answer:
        """Send a packed batch; return the answer or raise Unreachable. `meanwhile` runs as the server works."""
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        if self.spool_age_s is not None:
            headers["Gapwatch-Spool-Age-S"] = f"{self.spool_age_s:.1f}"
        return self._send("POST", PATH, body, headers, meanwhile)

    def put_status(self, status: dict[str, Any]) -> Answer:
        """Say whether a robot works; return the answer or raise Unreachable."""
        headers = {"Content-Type": "application/json"}
        return self._send("PUT", STATUS_PATH, json.dumps(status).encode(), headers, None)

    def put(self, path: str, body: dict[str, Any]) -> Answer:
        """Store something in place of what was there; return the answer or raise Unreachable."""
        headers = {"Content-Type": "application/json"}
        return self._send("PUT", path, json.dumps(body).encode(), headers, None)

    def send_event(self, body: bytes) -> Answer:
        """Tell of an event; return the answer or raise Unreachable."""
        return self._send("POST", EVENT_PATH, body, {"Content-Type": "application/json"}, None)

    def get(self, path: str, headers: dict[str, str]) -> Answer:
        """Ask for something; return the answer or raise Unreachable."""
        return self._send("GET", path, None, headers, None)

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        meanwhile: Callable[[], None] | None,
    ) -> Answer:
        # The server may have closed a kept connection meanwhile. That does not mean it is unreachable.
        for is_last in (self._connection is None, True):
            try:
                return self._exchange(method, path, body, headers, meanwhile)
            except (OSError, HTTPException) as error:
                self.close()
                if is_last or isinstance(error, socket.timeout):
                    raise Unreachable(f"{type(error).__name__}: {error}") from error
        raise AssertionError("the last attempt answers or raises")

    def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        meanwhile: Callable[[], None] | None,
    ) -> Answer:
        if self._connection is None:
            self._connection, self._before_path, self._for_proxy = connect(
                self._scheme, self._host, self._port, self._timeout_s
            )
        sent_at = datetime.now(timezone.utc).isoformat()
        headers = self._headers | self._for_proxy | headers | {"Gapwatch-Sent-At": sent_at}
        self._connection.request(method, self._before_path + self._root + path, body, headers)
        if meanwhile is not None:
            meanwhile()
        response = self._connection.getresponse()
        content = response.read(_LARGEST_ANSWER)
        if response.will_close:
            self.close()
        try:
            answer = json.loads(content)
        except ValueError:
            answer = {}
        wait_s = _seconds(response.headers.get("Retry-After"))
        known = answer if isinstance(answer, dict) else {}
        return Answer(response.status, known, wait_s, response.headers.get("ETag"))

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None


def _seconds(retry_after: str | None) -> float | None:
    """`Retry-After` is a number of seconds or a date."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        try:
            then = parsedate_to_datetime(retry_after)
            return max(0.0, (then - datetime.now(timezone.utc)).total_seconds())
        except (TypeError, ValueError):
            return None
