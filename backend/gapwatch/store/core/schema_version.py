"""Which schema the database has. Without Alembic, which would take 8 MB of the web process."""

from __future__ import annotations

from functools import cache

from sqlalchemy import text

from gapwatch.settings import ROOT
from gapwatch.store.core.database import Database


def is_current(database: Database) -> bool:
    """Return whether the database has the schema of this release."""
    with database.engine.connect() as connection:
        if not connection.execute(text("SELECT to_regclass('alembic_version') IS NOT NULL")).scalar_one():
            return False
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == newest_revision()


@cache
def newest_revision() -> str:
    """Return the last migration's number: files are named by date and number."""
    newest = max((ROOT / "migrations" / "versions").glob("*.py"))
    return newest.name.split("_")[3]
