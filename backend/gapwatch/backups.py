"""Backup to one file and restore: Postgres's own dump, with the tools that come with the embedded server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gapwatch import embedded
from gapwatch.store.core import secret_row
from gapwatch.store.core.database import Database, split_password
from gapwatch.store.core.migrate import (
    clear_for_restore,
    migrate,
    stored_episodes,
)
from gapwatch.store.core.tenancy import closed_tables


class BackupError(Exception):
    """A sentence for the person at the terminal."""


def back_up(database: Database, path: Path) -> int:
    """Write a dump beside a running service. Return its size. `path` is replaced only once it is complete."""
    with database.transaction() as connection:
        closed = closed_tables(connection)
    if closed:
        raise BackupError(f"This role may not read all of {', '.join(closed)}. Use the one that owns the tables.")
    partial = path.with_name(f"{path.name}.partial")
    # It contains key hashes and people's addresses.
    partial.touch(mode=0o600)
    try:
        # Row security is forced upon the owner too, with a policy that shows it every row. Policies name roles,
        # which another server has under other names; migrating puts them on again.
        _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--enable-row-security",
             "--no-policies", f"--file={partial}", url=database.url)  # fmt: skip
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path.stat().st_size


def restore(database: Database, path: Path) -> int:
    """Fill an empty database from a dump and migrate it to this release. Return the number of episodes.

    Which server secret it belongs to from now on is decided by the first start.
    """
    if not path.is_file():
        raise BackupError(f"There is no file {path}.")
    if not clear_for_restore(database):
        raise BackupError("This database already holds projects. Restore into an empty one.")
    _run("pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction",
         str(path), url=database.url)  # fmt: skip
    migrate(database)
    with database.transaction() as connection:
        secret_row.forget(connection)
    return stored_episodes(database)


def _run(tool: str, *arguments: str, url: str) -> None:
    """Whoever is on this machine can read the arguments of every process, so the password goes by its environment,
    which only its own account can read.
    """
    without_password, password = split_password(url)
    environment = os.environ | ({"PGPASSWORD": password} if password else {})
    command = [str(embedded.postgres_tool(tool)), f"--dbname={without_password}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise BackupError(
            f"{tool} failed: {done.stderr.strip().splitlines()[-1] if done.stderr else 'no reason given'}"
        )
