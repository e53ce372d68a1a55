"""One Postgres, one Redis and one running service a session; databases and projects a test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from gapwatch import embedded
from gapwatch.accounts import put_person
from gapwatch.store.core.database import Database
from gapwatch.store.core.migrate import migrate
from parts import COUNTER, Project, Service, make_project, reachable, start_service

# A root of our own: pytest closes its usual one to others whenever any run starts, and the account that
# Postgres runs as must get through.
TEMPORARY = Path(tempfile.mkdtemp(prefix="gapwatch-tests-"))
os.environ["PYTEST_DEBUG_TEMPROOT"] = str(TEMPORARY)


def pytest_unconfigure() -> None:
    shutil.rmtree(TEMPORARY, ignore_errors=True)


def pytest_terminal_summary(terminalreporter) -> None:
    """One line: which tests were left out, and for want of what."""
    missing: dict[str, Counter[str]] = defaultdict(Counter)
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        missing[reason][report.nodeid.split("::")[0]] += 1
    if missing:
        parts = (
            f"{reason} ({', '.join(f'{count} of {file}' for file, count in sorted(files.items()))})"
            for reason, files in missing.items()
        )
        terminalreporter.write_line(f"Left out: {'; '.join(parts)}.")


@pytest.fixture(scope="session")
def service(tmp_path_factory) -> Iterator[Service]:
    """The service most tests talk to. Tests keep apart by making projects of their own."""
    service = start_service(reachable(tmp_path_factory.mktemp("service")) / "data")
    yield service
    assert service.stop() == 0, service.log


@pytest.fixture
def service_database(service: Service) -> Iterator[Database]:
    database = Database(service.database_url)
    yield database
    database.close()


@pytest.fixture
def project(service: Service, service_database: Database) -> Project:
    return make_project(service, service_database)


@pytest.fixture
def person(service: Service, service_database: Database, project: Project) -> dict[str, str]:
    """Somebody who can sign in to the project."""
    who = {"email": f"{project.slug}@example.com", "password": "correct horse battery"}
    put_person(service_database, who["email"], who["password"], project.slug, "engineer")
    return who


@pytest.fixture
def receiver():
    """The other side of channels, on this machine."""
    from alerts.receivers import Receiver

    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def mail_server():
    from alerts.receivers import MailServer

    server = MailServer()
    yield server
    server.close()


@pytest.fixture
def queries(monkeypatch) -> list[str]:
    """Every statement that this process sends, whichever way; the pool's ping when it lends a connection is none, nor is
    the one with which a transaction becomes that of a project.
    """
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(self, query, *arguments, **options):
        if str(query) != ";" and not str(query).startswith("SELECT set_config('role'"):
            sent.append(str(query))
        return execute(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    return sent


@pytest.fixture(scope="session")
def postgres(tmp_path_factory) -> Iterator[embedded.Server]:
    """A Postgres server without the service, for tests that need databases of their own."""
    data_dir = reachable(tmp_path_factory.mktemp("postgres"))
    run_dir = embedded.make_run_dir(embedded.running_as(data_dir))
    with embedded.running(embedded.prepare_postgres(data_dir, run_dir)) as server:
        yield server
    run_dir.rmdir()


@contextmanager
def own_database(postgres: embedded.Server, template: str = "template1") -> Iterator[str]:
    name = f"test_{next(COUNTER)}"
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER {embedded.SERVICE} TEMPLATE {template}")
        yield postgres.url.replace("/gapwatch?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_database_url(postgres: embedded.Server) -> Iterator[str]:
    with own_database(postgres) as url:
        yield url


@pytest.fixture(scope="session")
def migrated(postgres: embedded.Server) -> str:
    """The name of a database with the schema of this release, to copy: that takes a third of the time to migrate."""
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE migrated OWNER {embedded.SERVICE}")
    database = Database(postgres.url.replace("/gapwatch?", "/migrated?"))
    migrate(database)
    database.close()
    return "migrated"


@pytest.fixture
def database(postgres: embedded.Server, migrated: str) -> Iterator[Database]:
    """A database of the test's own, with the schema of this release."""
    with own_database(postgres, migrated) as url:
        database = Database(url)
        yield database
        database.close()
