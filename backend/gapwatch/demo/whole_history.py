"""The moment from which the demo's people act: the whole history was sent and is counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gapwatch.store.core.database import Database
from gapwatch.store.fold import work
from gapwatch.store.people import access

GIVE_UP_S, PAUSE_S = 600.0, 1.0


@contextmanager
def once_counted(database_url: str, project: str, sent: threading.Event) -> Iterator[tuple[Database, int]]:
    """Wait for it, then give the database and the number of the project."""
    sent.wait(GIVE_UP_S)
    database = Database(database_url)
    try:
        until = time.monotonic() + GIVE_UP_S
        with database.transaction() as connection:
            project_id = access.ensure_project(connection, project)
        while time.monotonic() < until:
            with database.transaction() as connection:
                if "fold" not in work.kinds_due(connection):
                    break
            time.sleep(PAUSE_S)
        yield database, project_id
    finally:
        database.close()
