"""The benchmark's own `gapwatch serve`: started, emptied, checked and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import psycopg
from psycopg import sql

from bench.senders import Target
from gapwatch import embedded

PROJECT = "bench"


class Wrong(Exception):
    """The figures would be worthless: something acknowledged was not stored exactly once."""


@dataclass
class Service:
    process: subprocess.Popen[bytes]
    data_dir: Path
    key: str
    project_id: int

    @property
    def running(self) -> dict[str, str]:
        running: dict[str, str] = json.loads((self.data_dir / "running.json").read_text())
        return running

    @property
    def database_url(self) -> str:
        return self.running["database_url"]

    def children(self, words: str) -> list[psutil.Process]:
        """Processes of one part, `web` or `worker`, and their children."""
        return [
            process
            for child in psutil.Process(self.process.pid).children()
            if f"gapwatch {words}" in " ".join(child.cmdline())
            for process in (child, *child.children(recursive=True))
        ]

    def target(self, path: str) -> Target:
        address = urlsplit(self.running["url"])
        web = tuple(process.pid for process in self.children("web"))
        return Target(str(address.hostname), int(address.port or 0), f"/api/v1{path}", self.key, web)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.database_url, autocommit=True)

    def value(self, query: str, *parameters: Any) -> Any:
        with self.connect() as connection:
            [value] = connection.execute(query, parameters).fetchone() or [None]  # type: ignore[arg-type]
            return value

    def empty(self) -> None:
        """Remove episodes, work and numbers; names stay registered. Dirty pages are written out."""
        with self.connect() as connection:
            connection.execute("SET lock_timeout = '20s'")
            rows = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND"
                " (tablename LIKE 'rollup%%' OR tablename IN ('episodes', 'episode_revisions', 'work'))",
                (),
            )
            tables = sql.SQL(", ").join(sql.Identifier(name) for (name,) in rows)
            for attempt in range(10, 0, -1):
                try:
                    connection.execute(sql.SQL("TRUNCATE {}").format(tables))
                    break
                except psycopg.errors.DeadlockDetected:  # a worker was looking for work
                    if attempt == 1:
                        raise
            connection.execute("CHECKPOINT")

    def forget_work(self) -> None:
        with self.connect() as connection:
            connection.execute("TRUNCATE work")
            connection.execute("CHECKPOINT")

    @contextlib.contextmanager
    def folding_paused(self) -> Iterator[None]:
        """Suspend the workers, so that only accepting is measured. None is suspended while holding a lock."""
        workers: list[psutil.Process] = []
        try:
            while True:
                workers = self.children("worker")
                for worker in workers:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        worker.suspend()
                held = self.value(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE application_name = 'gapwatch-worker' AND state <> 'idle'"
                )
                if not held:
                    break
                for worker in workers:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        worker.resume()
                time.sleep(0.2)
            yield
        finally:
            for worker in workers:
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.resume()

    def wait_until_folded(self, within_s: float = 120) -> None:
        deadline = time.monotonic() + within_s
        while self.value("SELECT count(*) FROM work"):
            if time.monotonic() > deadline:
                raise Wrong(f"work was still due after {within_s:.0f} s")
            time.sleep(0.1)

    def wait_until_watched(self, within_s: float = 300) -> None:
        """Wait until the rules have seen everything too, so that no work carries over to the next round."""
        deadline = time.monotonic() + within_s
        while self.value("SELECT count(*) FROM watch_due"):
            if time.monotonic() > deadline:
                raise Wrong(f"episodes were still to be watched after {within_s:.0f} s")
            time.sleep(0.5)

    def check_stored(self, acknowledged: int, ids: tuple[str, str] = ("", "~")) -> None:
        """Acknowledged = stored; in the numbers or on their way there, each once. `ids` leaves older ones out."""
        bounds = (self.project_id, *ids)
        this_run = "FROM episodes WHERE project_id = %s AND id >= %s AND id < %s"
        stored = self.value(f"SELECT count(*) {this_run}", *bounds)
        doubled = stored - self.value(f"SELECT count(DISTINCT id) {this_run}", *bounds)
        waiting = self.value("SELECT coalesce(sum(cardinality(episode_ids)), 0) FROM work")
        counted = self.value(
            "SELECT coalesce(sum(successes + failures + aborted + abandoned), 0) FROM rollup_counts"
            " WHERE tier = 'hour'"
        )
        if doubled or not stored == acknowledged == waiting + counted:
            raise Wrong(
                f"{acknowledged} acknowledged, {stored} stored, {doubled} of them twice; {counted} are in the"
                f" numbers and {waiting} on their way there"
            )

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@contextlib.contextmanager
def serving(data_dir: Path, **settings: str) -> Iterator[Service]:
    """Run the whole product with its own parts until the end of the block."""
    data_dir.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GAPWATCH_")}
    # One sender stands for a fleet here, so its key may send more than a single robot's.
    environment |= {"GAPWATCH_INGEST_RATE": "10000000"} | settings
    command = [sys.executable, "-m", "gapwatch"]
    with data_dir.with_name(f"{data_dir.name}.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "serve", "--port", "0", "--data-dir", data_dir],
            env=environment,
            stdout=log,
            stderr=log,
            **embedded.spawn_options(None, signal.SIGTERM),
        )
    service = Service(process, data_dir, "", 0)
    try:
        _wait_until_answering(service)
        made = subprocess.run(
            [
                *command,
                "key",
                "create",
                "--project",
                PROJECT,
                "--scope",
                "ingest",
                "--json",
                "--data-dir",
                data_dir,
            ],
            env=environment,
            capture_output=True,
            check=True,
        )
        service.key = json.loads(made.stdout)["key"]
        service.project_id = service.value("SELECT id FROM projects WHERE slug = %s", PROJECT)
        yield service
    finally:
        service.stop()


def _wait_until_answering(service: Service, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError, KeyError, httpx.HTTPError):
            if httpx.get(f"{service.running['url']}/healthz", trust_env=False).is_success:
                return
        if service.process.poll() is not None:
            break
        time.sleep(0.1)
    log = service.data_dir.with_name(f"{service.data_dir.name}.log")
    raise Wrong(f"the service did not start; the end of its log: {log.read_text()[-2000:]}")


@contextlib.contextmanager
def scratch_directory(parent: Path) -> Iterator[Path]:
    """A directory on the same disk as the checkout (a temporary one may be in memory, where fsync is free)."""
    parent.mkdir(parents=True, exist_ok=True)
    directory = parent / f"run-{os.getpid()}"
    directory.mkdir()
    directory.chmod(0o711 if os.geteuid() == 0 else 0o700)
    try:
        yield directory
    finally:
        for cluster in directory.glob("*/postgres"):
            # Under a closed directory, root's clusters live elsewhere and only a link is here.
            if cluster.is_symlink() and cluster.resolve().is_relative_to(embedded.ROOT_STATE):
                shutil.rmtree(cluster.resolve().parent, ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)


class Watch:
    """Memory and CPU time of some processes while a block runs."""

    def __init__(self, processes: list[psutil.Process], every_s: float = 0.05) -> None:
        self._processes = processes
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.peak_mb = 0.0
        self.cpu_s = 0.0

    def __enter__(self) -> Watch:
        self._before = self._cpu()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.cpu_s = self._cpu() - self._before

    def _cpu(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._processes)

    def _run(self) -> None:
        while not self._done.wait(self._every_s):
            self.peak_mb = max(self.peak_mb, *(memory_mb(process) for process in self._processes))


def memory_mb(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        return float(process.memory_info().rss) / 1e6
    return 0.0
