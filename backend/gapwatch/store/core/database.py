"""Engine, transactions and retries, the same for web and worker.

One request or task is one transaction, committed before the answer. A process makes its own `Database`
after forking: a connection shared by two processes breaks both.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import sqlalchemy
from psycopg import errors as postgres_errors
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.exc import DBAPIError, OperationalError, TimeoutError

from gapwatch.errors import Conflict, DiskFull, ServiceUnavailable, UnsafeServer
from gapwatch.store.core.tenancy import enter_project

T = TypeVar("T")

__all__ = [
    "Connection",
    "Database",
    "DatabaseError",
    "DatabaseUnusable",
    "session_options",
    "split_password",
    "translate",
]

# What any statement may raise, for those who handle what nobody else did.
DatabaseError = DBAPIError

# After one of these the transaction changed nothing and may run again.
RETRYABLE = (postgres_errors.SerializationFailure, postgres_errors.DeadlockDetected)
MOST_TRIES = 5

# Set in every session, however the server is configured: an answer means the commit is on disk.
SESSION_OPTIONS = {
    "synchronous_commit": "on",
    "timezone": "UTC",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "30s",
    # Our queries take milliseconds; starting parallel workers would take longer.
    "max_parallel_workers_per_gather": "0",
}


def session_options(statement_timeout_s: int) -> str:
    options = SESSION_OPTIONS | {"statement_timeout": f"{statement_timeout_s}s"}
    return " ".join(f"-c {name}={value}" for name, value in options.items())


class Database:
    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 5,
        overflow: int | None = None,
        statement_timeout_s: int = 30,
        application: str = "gapwatch",
    ) -> None:
        self.url = url
        self.engine = create_engine(
            make_url(url).set(drivername="postgresql+psycopg"),
            # Errors must not carry what people sent into the log.
            hide_parameters=True,
            pool_size=pool_size,
            max_overflow=pool_size if overflow is None else overflow,
            pool_timeout=5,
            # After a restart of Postgres every pooled connection is dead; pinging finds out in time.
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": 5,
                "keepalives_idle": 30,
                "application_name": application,
                "options": session_options(statement_timeout_s),
            },
        )

    @contextmanager
    def transaction(self, project_id: int | None = None) -> Iterator[Connection]:
        """Run one transaction, of a project as its tenant. Raise the server's faults as our own 503 and 507."""
        try:
            with self.engine.begin() as connection:
                if project_id is not None:
                    enter_project(connection, project_id)
                yield connection
        except DBAPIError as error:
            if isinstance(error.orig, postgres_errors.UniqueViolation):
                # Somebody was faster between the look and the write; whoever looks first is told by name.
                raise Conflict("Somebody else stored the same a moment ago; look at it and try again.") from error
            raise translate(error) from error
        except TimeoutError as error:
            raise ServiceUnavailable("All database connections are busy; try again shortly.") from error

    @contextmanager
    def reading(self, project_id: int) -> Iterator[Connection]:
        """Give a request one consistent view of a project, so that what it reads in several queries adds up."""
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        try:
            with self.engine.connect().execution_options(**options) as connection, connection.begin():
                enter_project(connection, project_id)
                yield connection
        except DBAPIError as error:
            raise translate(error) from error
        except TimeoutError as error:
            raise ServiceUnavailable("All database connections are busy; try again shortly.") from error

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Give a long read one consistent view, without time limits."""
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        try:
            with self.engine.connect().execution_options(**options) as connection, connection.begin():
                connection.execute(sqlalchemy.text("SET LOCAL statement_timeout = 0"))
                connection.execute(sqlalchemy.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
                yield connection
        except DBAPIError as error:
            raise translate(error) from error

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run a whole transaction, again if another one got in its way or the server went away."""
        for attempt in range(1, MOST_TRIES + 1):
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except DBAPIError as error:
                conflict = isinstance(error.orig, RETRYABLE)
                lost_once = error.connection_invalidated and attempt == 1
                if attempt == MOST_TRIES or not (conflict or lost_once):
                    raise translate(error) from error
                time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 - jitter
            except TimeoutError as error:
                raise ServiceUnavailable("All database connections are busy; try again shortly.") from error
        raise AssertionError("unreachable")

    def refuse_unsafe_server(self) -> None:
        with self.transaction() as connection:
            fsync = connection.execute(sqlalchemy.text("SHOW fsync")).scalar_one()
        if fsync != "on":
            raise UnsafeServer

    def close(self) -> None:
        self.engine.dispose()


def split_password(url: str) -> tuple[str, str | None]:
    """An address for Postgres's own tools without the password, and the password; also of one that gives it as a
    parameter.
    """
    parsed = make_url(url)
    in_query = parsed.query.get("password")
    password = parsed.password or (in_query if isinstance(in_query, str) else None)
    bare = parsed._replace(drivername="postgresql", password=None).difference_update_query(["password"])
    return bare.render_as_string(hide_password=False), None if password is None else str(password)


class DatabaseUnusable(Exception):
    """The database refuses us or is not there; the message is the first line of its reason."""


def translate(error: DBAPIError) -> Exception:
    """Return the service's own error for a fault of the server; anything else stays what it is."""
    if isinstance(error.orig, postgres_errors.DiskFull):
        return DiskFull()
    # Class 25: the server ended our idle transaction, or it is a standby that only reads.
    state = getattr(error.orig, "sqlstate", None) or ""
    if isinstance(error, OperationalError) or error.connection_invalidated or state.startswith("25"):
        return ServiceUnavailable("The database is not answering; try again shortly.")
    return error
