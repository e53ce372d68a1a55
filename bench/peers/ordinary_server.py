"""Runs the ordinary service (ordinary.py) on a loopback port, on the database of ours."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg

from bench.senders import Target
from gapwatch import embedded

START_WITHIN_S = 30
ROOT = Path(__file__).resolve().parents[2]


class OrdinaryService:
    def __init__(self, database_url: str, port: int) -> None:
        self._database_url = database_url
        self.port = port

    @property
    def target(self) -> Target:
        return Target("127.0.0.1", self.port, "/episodes")

    def empty(self) -> None:
        with psycopg.connect(self._database_url, autocommit=True) as connection:
            connection.execute("TRUNCATE ordinary_episodes")
            connection.execute("CHECKPOINT")

    def stored(self) -> int:
        with psycopg.connect(self._database_url) as connection:
            [count] = connection.execute("SELECT count(*) FROM ordinary_episodes").fetchone() or [0]
            return int(count)


@contextlib.contextmanager
def ordinary_serving(database_url: str, directory: Path) -> Iterator[OrdinaryService]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (directory / "ordinary.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "bench.peers.ordinary:app", "--port", str(port)],
            env=os.environ | {"BENCH_DATABASE_URL": database_url},
            cwd=ROOT,
            stdout=log,
            stderr=log,
            **embedded.spawn_options(None, signal.SIGTERM),
        )
    try:
        _wait_until_answering(port, process, directory / "ordinary.log")
        yield OrdinaryService(database_url, port)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_answering(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"http://127.0.0.1:{port}/openapi.json", trust_env=False).is_success:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the ordinary service did not start; the end of its log: {log.read_text()[-1000:]}")
