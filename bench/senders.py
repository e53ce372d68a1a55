"""The senders: separate processes that spend as little as possible on a request.

Bodies are encoded beforehand and connections are kept open. Just enough HTTP to know that an answer is complete.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil

from bench.records import read_bodies, renew

ANSWER_WITHIN_S = 60.0
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """Where to send. `web` lists the processes behind the address, to distribute connections evenly."""

    host: str
    port: int
    path: str
    key: str = ""
    web: tuple[int, ...] = ()

    def request(self, body: bytes, extra: str = "") -> bytes:
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass
class Sent:
    """What one sender did. Times are from the machine's monotonic clock, the same in every process."""

    accepted: int
    started: float
    ended: float
    answers: dict[int, int] = field(default_factory=dict)
    waited_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    """CPU time of the sender itself, to check that it is not the bottleneck."""

    @property
    def rate(self) -> float:
        return self.accepted / (self.ended - self.started)

    def waited_ms(self, share: float) -> float:
        return 1000 * quantile(self.waited_s, share)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the times does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Line:
    """One connection."""

    def __init__(self, target: Target) -> None:
        self._socket = socket.create_connection((target.host, target.port), timeout=ANSWER_WITHIN_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def post(self, request: bytes) -> tuple[int, bytes]:
        self._socket.sendall(request)
        answer = b""
        while (whole := _whole(answer)) is None:
            received = self._socket.recv(65536)
            if not received:
                raise ConnectionError("the server closed the connection")
            answer += received
        return whole

    def close(self) -> None:
        self._socket.close()


def _whole(answer: bytes) -> tuple[int, bytes] | None:
    """Status and body, once the answer is complete."""
    head, separator, body = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head) if separator else None
    if length is None or len(body) < int(length[1]):
        return None
    return int(head[9:12]), body


def open_lines(target: Target, count: int) -> list[Line]:
    """`count` connections, equally many to each web process.

    Processes that share a listening socket accept connections at random. A fleet's thousands even out;
    a handful would not.
    """
    share = count // max(1, len(target.web))
    lines: list[Line] = []
    taken: Counter[int] = Counter()
    for _ in range(count * 20):
        line = Line(target)
        owner = _owner(line, target.web)
        if owner is not None and taken[owner] >= share:
            line.close()
            continue
        taken[owner or 0] += 1
        lines.append(line)
        if len(lines) == count:
            return lines
    raise ConnectionError("one web process took all connections")


def _owner(line: Line, web: tuple[int, ...]) -> int | None:
    if len(web) < 2:
        return None
    for _ in range(100):
        for pid in web:
            connections = psutil.Process(pid).net_connections("tcp")
            if any(connection.raddr and connection.raddr.port == line.port for connection in connections):
                return pid
        time.sleep(0.005)
    return None


def send_batches(target: Target, bodies: Path, *, connections: int, number: int = 0, packed: bool = False) -> Sent:
    """Send everything as fast as the server accepts it, over a few connections."""
    extra = "Content-Encoding: gzip\r\n" if packed else ""
    requests = [target.request(body, extra) for _, body in read_bodies(bodies, number, packed)]
    lines = open_lines(target, connections)
    left = iter(requests)
    lock = threading.Lock()
    sent = Sent(0, 0.0, 0.0)
    answers: Counter[int] = Counter()

    def work(line: Line) -> None:
        while True:
            with lock:
                request = next(left, None)
            if request is None:
                return
            at = time.monotonic()
            status, body = line.post(request)
            waited = time.monotonic() - at
            with lock:
                answers[status] += 1
                sent.waited_s.append(waited)
                sent.accepted += msgspec.json.decode(body).get("accepted", 0)

    threads = [threading.Thread(target=work, args=[line], daemon=True) for line in lines]
    cpu = time.process_time()
    sent.started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent.ended = time.monotonic()
    sent.cpu_s = time.process_time() - cpu
    sent.answers = dict(answers)
    for line in lines:
        line.close()
    return sent


def send_paced(
    target: Target, bodies: Path, *, count: int, per_second: float, connections: int, marker: bytes
) -> tuple[Sent, list[float]]:
    """Send `count` bodies at a fixed rate; also return the wall-clock time of each acknowledgement.

    The bodies repeat with new ids each time, and body n has its number in place of the marker's zeros.
    """
    patterns = [body for _, body in read_bodies(bodies)]
    lines = open_lines(target, connections)
    acknowledged = [0.0] * count
    sent = Sent(0, 0.0, 0.0)
    lock = threading.Lock()
    begin = time.monotonic() + 0.2

    def work(first: int, line: Line) -> None:
        for number in range(first, count, connections):
            body = renew(patterns[number % len(patterns)], number // len(patterns))
            request = target.request(body.replace(marker % 0, marker % number))
            time.sleep(max(0.0, begin + number / per_second - time.monotonic()))
            at = time.monotonic()
            status, answer = line.post(request)
            acknowledged[number] = time.time()
            with lock:
                sent.answers[status] = sent.answers.get(status, 0) + 1
                sent.waited_s.append(time.monotonic() - at)
                sent.accepted += msgspec.json.decode(answer).get("accepted", 0)

    threads = [threading.Thread(target=work, args=[i, line], daemon=True) for i, line in enumerate(lines)]
    sent.started = begin
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent.ended = time.monotonic()
    for line in lines:
        line.close()
    return sent, acknowledged


def send_singles(target: Target, bodies: Path, *, connections: int, seconds: float) -> Sent:
    """Send one record per request; each connection sends its next when the last was answered."""
    import uvloop

    requests = [target.request(body) for _, body in read_bodies(bodies)]
    return uvloop.run(_send_singles(target, requests, connections, seconds))


async def _send_singles(target: Target, requests: list[bytes], connections: int, seconds: float) -> Sent:
    loop = asyncio.get_running_loop()
    left = iter(requests)
    sent = Sent(0, 0.0, 0.0)
    finished: list[asyncio.Future[None]] = []

    class Single(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self.transport = transport
            self.received = b""
            self.done: asyncio.Future[None] = loop.create_future()
            finished.append(self.done)

        def send(self) -> None:
            now = time.monotonic()
            request = next(left, None) if now - sent.started < seconds else None
            if request is None:
                self.done.set_result(None)
                return
            self.at = now
            self.transport.write(request)

        def data_received(self, data: bytes) -> None:
            self.received += data
            whole = _whole(self.received)
            if whole is None:
                return
            self.received = b""
            status = whole[0]
            sent.answers[status] = sent.answers.get(status, 0) + 1
            sent.accepted += status == 201
            sent.waited_s.append(time.monotonic() - self.at)
            self.send()

        def connection_lost(self, exc: Exception | None) -> None:
            if not self.done.done():
                self.done.set_exception(exc or ConnectionError("the server closed the connection"))

    opened = [await loop.create_connection(Single, target.host, target.port) for _ in range(connections)]
    cpu = time.process_time()
    sent.started = time.monotonic()
    for _, single in opened:
        single.send()
    async with asyncio.timeout(seconds + ANSWER_WITHIN_S):
        await asyncio.gather(*finished)
    sent.ended = time.monotonic()
    sent.cpu_s = time.process_time() - cpu
    for transport, _ in opened:
        transport.close()
    return sent
