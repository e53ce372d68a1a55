"""Which schema the database has, without Alembic: the web process, which asks for it, would hold 8 MB of it."""

from __future__ import annotations

from functools import cache

from sqlalchemy import text

from gapwatch.settings import ROOT
from gapwatch.store.core.database import Database


def is_current(database: Database) -> bool:
    """Whether the database has the schema this release expects."""
    with database.engine.connect() as connection:
        if not connection.execute(text("SELECT to_regclass('alembic_version') IS NOT NULL")).scalar_one():
            return False
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == newest_revision()


@cache
def newest_revision() -> str:
    """Migrations follow one another, and their files are named by date and number."""
    newest = max((ROOT / "migrations" / "versions").glob("*.py"))
    return newest.name.split("_")[3]
