"""Bring a database to the schema of this release."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from gapwatch.settings import ROOT
from gapwatch.store.core.database import Database, DatabaseUnusable
from gapwatch.store.core.row_numbers import number_rows
from gapwatch.store.core.tenancy import RoleMissing, allow_drops, ensure_tenant_role, protect_tables

# Two `migrate` at once (two containers starting) wait for each other on this advisory lock.
MIGRATION_LOCK = 0x6A9_3A7C4


def alembic_config() -> Config:
    return Config(toml_file=str(ROOT / "pyproject.toml"))


def migrate(database: Database, revision: str = "head") -> None:
    """Go up or down to a revision. Give up waiting for a lock after 10 s instead of blocking the service."""
    config = alembic_config()
    with database.engine.connect() as connection:
        connection.execute(text("SET lock_timeout = 0; SET statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(text("SET lock_timeout = '10s'"))
        connection.commit()
        config.attributes["connection"] = connection
        going_down = revision.startswith("-") or revision == "base"
        ensure_tenant_role(connection)
        connection.commit()
        if going_down:
            allow_drops(connection)
        (command.downgrade if going_down else command.upgrade)(config, revision)
        number_rows(connection)
        protect_tables(connection)
        connection.commit()
        # The session holds the lock; closing it for good releases the lock with it.
        connection.invalidate()


def migrate_or_explain(database: Database) -> None:
    """Bring the database up to date. Raise DatabaseUnusable with the server's reason."""
    try:
        migrate(database)
    except RoleMissing as error:
        raise DatabaseUnusable(str(error)) from error
    except OperationalError as error:
        raise DatabaseUnusable(str(error.orig).strip().splitlines()[0]) from error


def clear_for_restore(database: Database) -> bool:
    """Empty a database without projects, so that a dump can be restored. Return False if it has projects."""
    with database.transaction() as connection:
        exists = connection.execute(text("SELECT to_regclass('projects') IS NOT NULL")).scalar_one()
        if exists and connection.execute(text("SELECT EXISTS (SELECT FROM projects)")).scalar_one():
            return False
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        # A dump holds the policies of the role, and not the role.
        ensure_tenant_role(connection)
    return True


def stored_episodes(database: Database) -> int:
    with database.transaction() as connection:
        return int(connection.execute(text("SELECT count(*) FROM episodes")).scalar_one())
