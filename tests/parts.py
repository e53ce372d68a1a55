"""Real parts for tests: a service of its own process, projects of their own, and episodes to send."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from sqlalchemy import text

from gapwatch.accounts import make_key
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database

COUNTER = itertools.count(1)


def wait_until(condition, seconds: float = 10.0, pause_s: float = 0.05, what: str = "the condition"):
    """The first truthy value of `condition`, or a failure that says what was waited for."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(httpx.HTTPError, psycopg.OperationalError):
            value = condition()
            if value:
                return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {seconds} s")
        time.sleep(pause_s)


def clean_environment(**settings: str) -> dict[str, str]:
    """This process's environment without any GAPWATCH_* of the person who runs the tests."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GAPWATCH_")}
    return inherited | settings


@dataclass
class Service:
    """A `gapwatch serve` of its own, in a process of its own."""

    process: subprocess.Popen
    data_dir: Path
    log_path: Path

    @property
    def running(self) -> dict[str, str]:
        return json.loads((self.data_dir / "running.json").read_text())

    @property
    def url(self) -> str:
        return self.running["url"]

    @property
    def database_url(self) -> str:
        return self.running["database_url"]

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def children(self, words: str) -> list[int]:
        """Process ids of direct children whose command line contains the words."""
        found = []
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if words in " ".join(child.cmdline()):
                    found.append(child.pid)
        return found

    def stop(self, number: int = signal.SIGTERM, within_s: float = 40) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(within_s)


def start_service(data_dir: Path, *arguments: str, ready_within_s: float = 90, **settings: str) -> Service:
    data_dir.mkdir(parents=True, exist_ok=True)
    log_path = data_dir.with_name(f"{data_dir.name}.{next(COUNTER)}.log")
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gapwatch", "serve", "--port", "0", "--data-dir", data_dir, *arguments],
            env=clean_environment(**settings),
            stdout=log,
            stderr=log,
        )
    service = Service(process, data_dir, log_path)

    def answers() -> bool:
        assert process.poll() is None, service.log
        running = data_dir / "running.json"
        return running.exists() and "url" in running.read_text() and httpx.get(f"{service.url}/healthz").is_success

    try:
        wait_until(answers, ready_within_s, what="the service answering")
    except AssertionError:
        process.kill()
        raise
    return service


def reachable(path: Path) -> Path:
    """pytest's directories are closed to others; the account Postgres runs as must get through."""
    if os.geteuid() == 0:
        for directory in [path, *path.parents][:5]:
            directory.chmod(directory.stat().st_mode | 0o011)
    return path


@dataclass
class Project:
    """A fresh project of the running service, with keys of each scope."""

    slug: str
    id: int
    url: str
    keys: dict[str, str]
    database: Database

    def client(self, scope: str = "ingest", **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.keys[scope]}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30, **options)

    def rows(self, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
        with self.database.transaction() as connection:
            found = connection.execute(text(statement), {"p": self.id, **parameters})
            return [tuple(row) for row in found]

    def value(self, statement: str, **parameters: Any) -> Any:
        [[value]] = self.rows(statement, **parameters)
        return value

    def stored(self) -> int:
        return self.value("SELECT count(*) FROM episodes WHERE project_id = :p")


def make_project(service: Service, database: Database) -> Project:
    slug = f"project-{uuid.uuid4().hex[:12]}"
    secret = Settings(data_dir=service.data_dir).server_secret()
    keys = {
        scope: make_key(database, secret, project=slug, scope=scope, name="test")
        for scope in ("ingest", "read", "admin")
    }
    with database.transaction() as connection:
        project_id = connection.execute(
            text("SELECT id FROM projects WHERE slug = :slug"), {"slug": slug}
        ).scalar_one()
    return Project(slug, project_id, service.url, keys, database)


def episode(**fields: Any) -> dict[str, Any]:
    """A valid real episode; keyword arguments replace fields, None removes one."""
    record = {
        "id": str(uuid.uuid4()),
        "domain": "real",
        "policy": {"name": "bin-pick", "version": "1.4.0"},
        "task": "pick-mug",
        "deployment": "berlin-line-3",
        "started_at": datetime.now(UTC).isoformat(),
        "outcome": "success",
    } | fields
    return {name: value for name, value in record.items() if value is not None}


def minutes_ago(minutes: float) -> str:
    """A time of today's: what is older is history, and opens nothing that is still so."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()


@contextlib.contextmanager
def signed_in(service: Service, person: dict[str, str]) -> Iterator[httpx.Client]:
    """A browser without a screen, signed in."""
    with httpx.Client(base_url=service.url, follow_redirects=True) as browser:
        assert browser.post("/sign-in", data=person).is_success
        yield browser
