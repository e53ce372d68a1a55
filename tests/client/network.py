"""A network that misbehaves on purpose, and a server that answers what it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import random
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST


class Proxy:
    """A TCP proxy in a thread of its own. `trouble` is the share of connections that are harmed."""

    def __init__(self, url: str, trouble: float = 0.0, seed: int = 7) -> None:
        address = urlsplit(url)
        self._target = (address.hostname, address.port)
        self._chance = random.Random(seed)
        self.trouble = trouble
        self.is_down = False
        self.swallows = False
        self.harmed = {"reset": 0, "cut request": 0, "cut answer": 0, "delay": 0}
        self._harms = itertools.cycle(self.harmed)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(5)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(5)

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        try:
            if self.swallows:
                while await near.read(65536):
                    pass
                return
            if self.is_down:
                self._reset(near_out)
                return
            far, far_out = await asyncio.open_connection(*self._target)
            harm = next(self._harms) if self._chance.random() < self.trouble else ""
            # Of a kept connection the first few requests may get through.
            upto = self._chance.randrange(1, 60_000) if harm in {"cut request", "delay"} else None
            if harm:
                self.harmed[harm] += 1
            with contextlib.closing(far_out):
                if harm == "reset":
                    self._reset(near_out)
                    return
                if harm == "delay":
                    await asyncio.sleep(self._chance.uniform(0.05, 0.3))
                back = asyncio.ensure_future(
                    self._pump(far, near_out, self._chance.randrange(1, 1000) if harm == "cut answer" else None)
                )
                await self._pump(near, far_out, upto)
                if upto is None:
                    await back
                back.cancel()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            near_out.close()

    async def _pump(self, source, sink, upto: int | None) -> None:
        with contextlib.suppress(OSError):
            passed = 0
            while chunk := await source.read(4096):
                if upto is not None and passed + len(chunk) > upto:
                    sink.write(chunk[: upto - passed])
                    await sink.drain()
                    self._reset(sink)
                    return
                passed += len(chunk)
                sink.write(chunk)
                await sink.drain()
                if self.is_down:
                    self._reset(sink)
                    return
            sink.close()

    @staticmethod
    def _reset(writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.close()


@dataclass
class Request:
    at: float
    target: str
    headers: dict[str, str]
    records: list[dict]


@dataclass
class ScriptedServer:
    """Answers its script, one entry (status, headers, body) a request, and stores everything after its end."""

    script: list[tuple[int, dict, dict]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    # The same for what robots say of themselves: what came, and (status, body) of the next answers.
    statuses: list[dict] = field(default_factory=list)
    status_script: list[tuple[int, dict]] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    def __enter__(self) -> ScriptedServer:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                records = [json.loads(line) for line in body.splitlines()]
                owner.requests.append(Request(time.monotonic(), self.path, dict(self.headers), records))
                stored = {"sent": len(records), "accepted": len(records)}
                stored |= {"duplicates": 0, "conflicts": 0, "rejected": 0, "errors": []}
                status, headers, answer = owner.script.pop(0) if owner.script else (200, {}, stored)
                content = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def do_PUT(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.statuses.append(said)
                status, answer = owner.status_script.pop(0) if owner.status_script else (200, {"applied": True})
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # a client that ends the handshake is no event
        if self.tls:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._server.server_port}"
