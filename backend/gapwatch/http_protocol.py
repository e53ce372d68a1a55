"""Uvicorn's HTTP protocol with limits that it lacks: on the time and size of a request's head, on how long a
client may keep sending after it was answered, and on how long it may leave an answer unread. It also writes whole
answers in one piece."""

from __future__ import annotations

import asyncio
import json
import uuid
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from gapwatch.errors import problem
from gapwatch.fast_answers import ABORT, WHOLE_ANSWER, WHOLE_BODY

HEAD_WITHIN_S = 15.0
LARGEST_HEAD = 64 * 1024
LARGEST_URL = 16 * 1024
# A client that was refused early may finish sending, so that it gets the answer instead of a reset.
LINGER_S = 2.0
# A client that reads nothing of an answer for this long is cut off: closing would wait for it without end.
STALLED_S = 30.0
NOT_MODIFIED = 304

_WORDS = {
    400: ("malformed-request", "Bad Request", "This is not a valid HTTP request."),
    408: ("request-timeout", "Request Timeout", "The request did not arrive in time."),
    414: ("url-too-long", "URI Too Long", "The address is too long."),
    431: ("headers-too-large", "Request Header Fields Too Large", "The headers are too large."),
}


class _RefusedHead(Exception):
    """Raised inside the parser to stop it."""


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = True
        self._head_begun = False
        self._head_bytes = 0
        self._heads = 0
        self._body_pending = False
        self._refusal = 400
        self._write_timer: asyncio.TimerHandle | None = None
        self._unwritten = 0
        self.url = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start(HEAD_WITHIN_S, self._head_too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was_in_head, heads = self._in_head, self._heads
        super().data_received(data)
        # An idle keep-alive connection has no timer; a head that has begun and not ended starts one.
        if self._head_begun and self._timer is None and not self.transport.is_closing():
            self._start(HEAD_WITHIN_S, self._head_too_slow)
        # Count only data within one head: what ended a head or a body is not part of the next.
        still_the_same = was_in_head and self._in_head and self._heads == heads
        if still_the_same and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > LARGEST_HEAD:
                self._refusal = 414 if len(self.url) > LARGEST_URL else 431
                self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_begun = True

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LARGEST_URL:
            self._refusal = 414
            raise _RefusedHead

    def on_headers_complete(self) -> None:
        if sum(len(name) + len(value) for name, value in self.headers) > LARGEST_HEAD:
            self._refusal = 431
            raise _RefusedHead
        self._stop()
        self._in_head = self._head_begun = False
        self._head_bytes = 0
        self._heads += 1
        self._body_pending = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._body_pending = False
        self._in_head = True
        super().on_message_complete()
        if self.cycle.response_complete:
            self._stop()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.scope["extensions"] = {
            WHOLE_ANSWER: partial(_write_answer, cycle),  # type: ignore[dict-item]
            WHOLE_BODY: partial(_take_body, cycle),  # type: ignore[dict-item]
            ABORT: self.transport.abort,  # type: ignore[dict-item]
        }
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._body_pending and not self.transport.is_closing():
            self._start(LINGER_S, self.transport.close)
        if self._write_timer is None:
            self._watch_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_watching()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching()
        self._watch_reader()

    def _watch_reader(self) -> None:
        """While something waits to be written, look from time to time whether it gets less."""
        self._unwritten = self.transport.get_write_buffer_size()
        if self._unwritten:
            self._write_timer = self.loop.call_later(STALLED_S, self._look_at_reader)

    def _look_at_reader(self) -> None:
        self._write_timer = None
        if self.transport.get_write_buffer_size() >= self._unwritten:
            self.transport.abort()
        else:
            self._watch_reader()

    def _stop_watching(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer errors that never become a request in the service's error format too."""
        code, reason, detail = _WORDS[self._refusal]
        body = json.dumps(problem(self._refusal, code, reason, detail, f"/requests/{uuid.uuid4().hex}"))
        self.transport.write(
            f"HTTP/1.1 {self._refusal} {reason}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
        )
        self._stop()
        self.transport.close()

    def _head_too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refusal = 408
            self.send_400_response("")

    def _start(self, seconds: float, then: Any) -> None:
        self._stop()
        self._timer = self.loop.call_later(seconds, then)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _take_body(cycle: RequestResponseCycle) -> bytes | None:
    """What the cycle's `receive` returns, without waiting: the body, or None if it is incomplete."""
    if cycle.more_body or cycle.disconnected:
        return None
    cycle.flow.resume_reading()
    body, cycle.body = bytes(cycle.body), bytearray()
    cycle.message_event.clear()
    return body


async def _write_answer(cycle: RequestResponseCycle, status: int, head: bytes, body: bytes) -> None:
    """Write a whole answer in one piece; the cycle's `send` does it in two, header by header."""
    if cycle.flow.write_paused and not cycle.disconnected:
        await cycle.flow.drain()
    if cycle.disconnected:
        return
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    ending = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
    # That nothing changed has no body, and a length would be that of another answer.
    length = b"" if status == NOT_MODIFIED else b"content-length: %d\r\n" % len(body)
    cycle.transport.write(b"".join((STATUS_LINE[status], length, head, ending, body)))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
