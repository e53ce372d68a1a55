"""MLflow's tracking server on the same Postgres, in a virtual environment that the benchmark creates.

Started as its documentation says, `mlflow server --backend-store-uri postgresql://…`, with its default number of
processes. A run is a richer object than an episode row (an experiment, tags, artifacts, a life cycle, a user
interface), so the figure is the price of this record in that system, not a verdict on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg

INSTALL_WITHIN_S = 600
START_WITHIN_S = 120
# Loopback only, and no telemetry.
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "GIT_PYTHON_REFRESH": "quiet"}


class Unavailable(Exception):
    """MLflow cannot be measured here; the message says why."""


@dataclass
class MlflowServer:
    environment: Path
    url: str
    database_url: str

    @property
    def version(self) -> str:
        shown = subprocess.run(
            [_bin(self.environment) / "mlflow", "--version"], capture_output=True, text=True, check=True
        )
        return shown.stdout.split()[-1]

    def log(self, mode: str, episodes: Path, *, processes: int, seconds: float) -> float:
        """Episodes a second, all processes together. Raises if the server stored fewer than were logged."""
        before = self._stored(mode)
        done = subprocess.run(
            [
                *(_bin(self.environment) / "python", Path(__file__).with_name("mlflow_client.py"), mode),
                *("--url", self.url, "--episodes", episodes),
                *("--processes", str(processes), "--seconds", str(seconds)),
            ],
            env=os.environ | QUIET,
            capture_output=True,
            text=True,
            timeout=seconds + 240,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"its client failed: {done.stderr[-1000:]}")
        figures = json.loads(done.stdout.splitlines()[-1])
        stored = self._stored(mode) - before
        if stored < figures["episodes"]:
            raise Unavailable(f"it stored {stored} of {figures['episodes']} episodes")
        return float(figures["episodes"] / figures["seconds"])

    def _stored(self, mode: str) -> int:
        query = {
            "runs": "SELECT count(*) FROM runs WHERE status = 'FINISHED'",
            "metrics": "SELECT count(*) FROM metrics WHERE key = 'success'",
        }[mode]
        with psycopg.connect(self.database_url) as connection:
            [count] = connection.execute(query).fetchone() or [0]
            return int(count)


def install(environment: Path) -> None:
    """Create it once; later runs reuse it. It is never a dependency of ours."""
    stamp = environment / "installed"
    if stamp.exists():
        return
    print("Installing MLflow into an environment of its own (minutes, once) …", flush=True)
    for command in (
        [sys.executable, "-m", "venv", environment],
        [_bin(environment) / "python", "-m", "pip", "install", "--quiet", "mlflow", "psycopg2-binary"],
    ):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"it cannot be installed ({type(error).__name__}).") from error
        if done.returncode:
            raise Unavailable(f"it cannot be installed: {done.stderr.strip()[-300:]}")
    stamp.touch()


@contextlib.contextmanager
def mlflow_serving(environment: Path, database_url: str, directory: Path) -> Iterator[MlflowServer]:
    """Run a server with its own database beside ours, until the end of the block."""
    directory.mkdir()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS mlflow WITH (FORCE)")
        connection.execute("CREATE DATABASE mlflow")
    own_url = urlsplit(database_url)._replace(path="/mlflow").geturl()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(_bin(environment) / "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
                *("--artifacts-destination", directory / "artifacts"),
            ],
            # The database URL contains the password, so it is not passed as an argument that others can see.
            env=os.environ | QUIET | {"MLFLOW_BACKEND_STORE_URI": own_url.replace("://", "+psycopg2://", 1)},
            cwd=directory,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = MlflowServer(environment, f"http://127.0.0.1:{port}", own_url)
    try:
        _wait_until_answering(server, process, directory / "server.log")
        yield server
    finally:
        _stop(process)


def _wait_until_answering(server: MlflowServer, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{server.url}/health", trust_env=False).is_success:
                return
        time.sleep(0.2)
    raise Unavailable(f"it did not start; the end of its log: {log.read_text()[-1000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The server and its workers: their process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    process.wait()


def _bin(environment: Path) -> Path:
    return environment / "bin"
