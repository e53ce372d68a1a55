"""A server that unpacks, counts and discards: how fast the client could send if storing cost nothing."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Forgetful(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        packed = self.rfile.read(int(self.headers["Content-Length"]))
        count = zlib.decompress(packed, 31).count(b"\n") + 1
        answer = {"sent": count, "accepted": count, "duplicates": 0, "conflicts": 0, "rejected": 0, "errors": []}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def forgetting() -> Iterator[str]:
    """Run it in a separate process and yield its address."""
    process = subprocess.Popen([sys.executable, "-m", "bench.sink"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def swallowing() -> Iterator[str]:
    """The address of a network that takes everything and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Forgetful)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
