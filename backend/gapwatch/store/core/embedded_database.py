"""The one database of an embedded cluster, and the role that the service is there: owner of its tables, and no
superuser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from gapwatch.store.core.tenancy import TENANT_ROLE


@dataclass(frozen=True)
class ServiceRole:
    name: str
    password: str


def make_database(admin_url: str, name: str, service: ServiceRole) -> bool:
    """Return whether Postgres answers. Create the roles and the database on the very first start.

    A cluster of an earlier release belongs to its superuser: what is in it is handed over.
    """
    try:
        with psycopg.connect(admin_url, dbname="postgres", connect_timeout=2, autocommit=True) as connection:
            _make_roles(connection, service)
            owner = sql.Identifier(service.name)
            cursor = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
            if cursor.fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), owner))
        with psycopg.connect(admin_url, dbname=name, connect_timeout=2) as connection:
            _hand_over(connection, name, service.name)
    except psycopg.OperationalError:
        return False
    return True


def _make_roles(connection: psycopg.Connection, service: ServiceRole) -> None:
    known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles")}
    owner, tenant = sql.Identifier(service.name), sql.Identifier(TENANT_ROLE)
    if service.name not in known:
        made = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS")
        connection.execute(made.format(owner))
    # Also when the file with it was lost and made anew.
    connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(owner, sql.Literal(service.password)))
    if TENANT_ROLE not in known:
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(tenant))
    # A checkpoint may be asked for by benches; it is no power over anything.
    connection.execute(sql.SQL("GRANT {}, pg_checkpoint TO {}").format(tenant, owner))


# What is not the service's yet. Sequences of columns, indexes and row types go with their table.
_FOREIGN: dict[LiteralString, LiteralString] = {
    "TABLE": """
        SELECT c.oid::regclass::text FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND r.rolname <> %s
        """,
    "SEQUENCE": """
        SELECT c.oid::regclass::text FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S' AND r.rolname <> %s AND NOT EXISTS (
            SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i'))
        """,
    "FUNCTION": """
        SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
        WHERE p.pronamespace = 'public'::regnamespace AND r.rolname <> %s
        """,
    "SCHEMA": """
        SELECT n.nspname::text FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
        WHERE n.nspname = 'public' AND r.rolname <> %s
        """,
}


def _hand_over(connection: psycopg.Connection, database: str, owner: str) -> None:
    for what, query in _FOREIGN.items():
        for (name,) in connection.execute(query, (owner,)).fetchall():
            # Names as Postgres itself spells them, quoted where that is needed.
            altered = sql.SQL("ALTER {} {} OWNER TO {}")
            connection.execute(altered.format(sql.SQL(what), sql.SQL(name), sql.Identifier(owner)))
    owned = (
        "SELECT 1 FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE d.datname = %s AND r.rolname = %s"
    )
    if connection.execute(owned, (database, owner)).fetchone() is None:
        handed = sql.SQL("ALTER DATABASE {} OWNER TO {}")
        connection.execute(handed.format(sql.Identifier(database), sql.Identifier(owner)))
