"""Read a request body within bounds: type, encoding, size and time are checked before memory is spent."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import lru_cache

import zstandard
from starlette.types import Receive, Scope

from gapwatch.doors.bounded_body import BoundedBody, too_large
from gapwatch.errors import MalformedBody, UnsupportedMediaType
from gapwatch.fast_answers import WHOLE_BODY

LARGEST_SINGLE = 1024 * 1024
LARGEST_BATCH = 20 * 1024 * 1024

JSON = "application/json"
NDJSON = "application/x-ndjson"


class Call:
    """The headers of a request, and where its body comes from."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.receive = receive
        self.client: str | None = scope["client"][0] if scope.get("client") else None
        self._take: Callable[[], bytes | None] | None = scope.get("extensions", {}).get(WHOLE_BODY)

    def body_at_hand(self) -> bytes | None:
        """Return the whole body if it has already arrived. Most have, and need neither a time-out nor a wait."""
        return None if self._take is None else self._take()

    def all(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for header, value in self._headers if header == name]

    def first(self, name: bytes) -> str | None:
        for header, value in self._headers:
            if header == name:
                return value.decode("latin-1")
        return None


@lru_cache(maxsize=100)
def media_type(declared: str | None, allowed: tuple[str, ...]) -> str:
    """Return the declared type, or answer 415. Refuse charsets other than UTF-8 too."""
    kind, _, parameters = (declared or "").partition(";")
    kind = kind.strip().lower()
    charset = re.search(r'charset\s*=\s*"?([\w-]+)', parameters, re.IGNORECASE)
    if kind not in allowed or (charset and charset[1].lower() not in {"utf-8", "utf8"}):
        raise UnsupportedMediaType(
            f"Send Content-Type: {' or '.join(allowed)}.", headers={"Accept": ", ".join(allowed)}
        )
    return kind


async def read_body(call: Call, limit: int) -> bytes:
    """Return the whole body, decompressed. Refuse more than `limit` bytes or 15 seconds."""
    encoding = (call.first(b"content-encoding") or "identity").strip().lower()
    if encoding not in {"identity", "gzip", "zstd", ""}:
        raise UnsupportedMediaType(
            "Send Content-Encoding: gzip or zstd, or none.", headers={"Accept-Encoding": "gzip, zstd"}
        )
    body = BoundedBody(call.receive, limit)
    body.refuse_declared(call.first(b"content-length") or "")
    packed = call.body_at_hand()
    if packed is None:
        packed = await body.read()
    elif len(packed) > limit:
        raise too_large(limit)
    if encoding == "gzip":
        return _gunzip(packed, limit)
    if encoding == "zstd":
        return _unzstd(packed, limit)
    return packed


def _gunzip(packed: bytes, limit: int) -> bytes:
    """Unpack one complete gzip member with nothing behind it, no further than the limit."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        body = unpacker.decompress(packed, limit + 1)
    except zlib.error:
        raise MalformedBody("The body is not gzip, although Content-Encoding says so.") from None
    if len(body) > limit:
        raise too_large(limit)
    if not unpacker.eof:
        raise MalformedBody("The gzip body ends too early.")
    if unpacker.unused_data:
        raise MalformedBody("Something follows the gzip body; send one gzip member.")
    return body


def _unzstd(packed: bytes, limit: int) -> bytes:
    """Unpack one complete zstd frame with nothing behind it. One that would exceed the limit is never unpacked."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=2**23)
    try:
        size = zstandard.frame_content_size(packed)
        if size < 0:  # the frame does not say: unpack a little at a time to find out
            size = _unpacked_size(unpacker, packed, limit)
        if size > limit:
            raise too_large(limit)
        frame = unpacker.decompressobj()
        body = frame.decompress(packed)
    except zstandard.ZstdError:
        raise MalformedBody("The body is not zstd, although Content-Encoding says so.") from None
    if not frame.eof:
        raise MalformedBody("The zstd body ends too early.")
    if frame.unused_data:
        raise MalformedBody("Something follows the zstd body; send one zstd frame.")
    return body


def _unpacked_size(unpacker: zstandard.ZstdDecompressor, packed: bytes, limit: int) -> int:
    size = 0
    with unpacker.stream_reader(packed) as reader:
        while size <= limit and (chunk := reader.read(256 * 1024)):
            size += len(chunk)
    return size
