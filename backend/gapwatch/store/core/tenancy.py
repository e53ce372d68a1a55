"""What keeps tenants apart in the database itself: pages and the API work as a role that sees one project.

Each of their transactions becomes `gapwatch_tenant` and says which project it is of, both for the transaction
alone, so that nothing stays in a connection that a pool or PgBouncer hands on. The role owns nothing, and row
security shows it the rows of that project; without one, none. Ingest and workers stay the role that owns the
tables, since their work is of all projects: a policy says so, and row security is forced, so that owning a table
opens nothing by itself. But for `episodes`: COPY is refused wherever row security holds. Decisions 0029 and 0040.
"""

from __future__ import annotations

from psycopg import errors as postgres_errors
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

TENANT_ROLE = "gapwatch_tenant"
# The project of the transaction; an empty text is what a setting of an earlier transaction leaves behind.
_PROJECT = "(SELECT nullif(current_setting('gapwatch.project', true), '')::int)"
# `=` for policies. Postgres would take a second `=` on `project_id` for a second choice among the rows, reckon
# with a few where there are thousands, and plan accordingly (a page of episodes took 350 instead of 34 ms). What
# is `===` is expected of nearly every row, which it is, since every query also asks for its project.
_OPERATOR = (
    "CREATE OPERATOR public.{} (LEFTARG = int4, RIGHTARG = int4, FUNCTION = {}, NEGATOR = {}, RESTRICT = {})"
)
_OPERATORS = (
    _OPERATOR.format("===", "int4eq", "OPERATOR(public.!==)", "nlikesel"),
    _OPERATOR.format("!==", "int4ne", "OPERATOR(public.===)", "likesel"),
)
_IS = "OPERATOR(public.===)"
_RULES = {
    "projects": f"id {_IS} {_PROJECT}",
    # Their addresses, for the list of members; never how they sign in.
    "users": f"EXISTS (SELECT 1 FROM members m WHERE m.user_id = users.id AND m.project_id = {_PROJECT})",  # noqa: S608
}
_GRANTS = {
    "projects": "SELECT, UPDATE",
    "users": "SELECT (id, email, created_at, disabled_at)",
    "audit_entries": "SELECT, INSERT",
}
# Filled by COPY, which Postgres refuses to every role that row security applies to.
COPIED_INTO = ("episodes",)
# When the service was up, which decides what was a silence of a robot: of no project.
_OPEN = ("heartbeats", "service_spans")


class RoleMissing(Exception):
    """The role of tenants is not there and cannot be made; the message says what to run."""


def enter_project(connection: Connection, project_id: int) -> None:
    """Be somebody of a project until the end of the transaction."""
    connection.execute(
        text("SELECT set_config('role', :role, true), set_config('gapwatch.project', :project, true)"),
        {"role": TENANT_ROLE, "project": str(project_id)},
    )


def ensure_tenant_role(connection: Connection) -> None:
    """Make the role, and let this one become it."""
    is_there = connection.execute(
        text("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role)"), {"role": TENANT_ROLE}
    ).scalar_one()
    try:
        with connection.begin_nested():
            if not is_there:
                connection.execute(text(f"CREATE ROLE {TENANT_ROLE} NOLOGIN"))
            if not connection.execute(
                text("SELECT pg_has_role(:role, 'MEMBER')"), {"role": TENANT_ROLE}
            ).scalar_one():
                connection.execute(text(f"GRANT {TENANT_ROLE} TO CURRENT_USER"))
    except DBAPIError as error:
        if isinstance(error.orig, postgres_errors.DuplicateObject | postgres_errors.UniqueViolation):
            # Another database of the same server was first.
            return
        if not isinstance(error.orig, postgres_errors.InsufficientPrivilege):
            raise
        user = connection.execute(text("SELECT current_user")).scalar_one()
        raise RoleMissing(
            f"Pages work as the database role {TENANT_ROLE}, which {user} may not make. Run once as a superuser: "
            f'CREATE ROLE {TENANT_ROLE} NOLOGIN; GRANT {TENANT_ROLE} TO "{user}";'
        ) from error


def allow_drops(connection: Connection) -> None:
    """Before tables are dropped: a rule that looks at another table holds it fast. `protect_tables` renews it."""
    if connection.execute(text("SELECT to_regclass('users') IS NOT NULL")).scalar_one():
        connection.execute(text("DROP POLICY IF EXISTS of_the_project ON users"))
        connection.commit()


def protect_tables(connection: Connection) -> list[str]:
    """Put every table under row security that is not yet, those of later releases too; return their names."""
    rows = connection.execute(
        text("""
        SELECT c.relname AS name, c.relrowsecurity AND EXISTS (
                   SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'of_the_project') AS is_ruled,
               c.relforcerowsecurity AND EXISTS (
                   SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'of_the_service'
                   AND p.polroles = ARRAY[c.relowner]) AS is_forced,
               quote_ident(pg_get_userbyid(c.relowner)) AS owner,
               EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'project_id'
                       AND NOT a.attisdropped) AS has_project,
               has_any_column_privilege(:role, c.oid, 'SELECT') AS is_granted
        FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1
        """),
        {"role": TENANT_ROLE},
    ).all()
    changed = []
    connection.execute(text(f"GRANT USAGE ON SCHEMA public TO {TENANT_ROLE}"))
    has_operator = "SELECT to_regoperator('public.===(int4,int4)') IS NOT NULL"
    if not connection.execute(text(has_operator)).scalar_one():
        for operator in _OPERATORS:
            connection.execute(text(operator))
    known = {row.name for row in rows}
    for row in rows:
        rule = _RULES.get(row.name) or (f"project_id {_IS} {_PROJECT}" if row.has_project else None)
        if row.name == "users" and "members" not in known:
            continue
        if row.name in _OPEN and not row.is_granted:
            connection.execute(text(f"GRANT SELECT ON {row.name} TO {TENANT_ROLE}"))
        may_force = row.name not in COPIED_INTO
        if rule is None or (row.is_ruled and row.is_granted and row.is_forced == may_force):
            continue
        if not row.is_ruled:
            connection.execute(text(f"ALTER TABLE {row.name} ENABLE ROW LEVEL SECURITY"))
            policy = f"CREATE POLICY of_the_project ON {row.name} TO {TENANT_ROLE}"
            connection.execute(text(f"{policy} USING ({rule}) WITH CHECK ({rule})"))
        if may_force and not row.is_forced:
            connection.execute(text(f"DROP POLICY IF EXISTS of_the_service ON {row.name}"))
            connection.execute(
                text(f"CREATE POLICY of_the_service ON {row.name} TO {row.owner} USING (true) WITH CHECK (true)")
            )
            connection.execute(text(f"ALTER TABLE {row.name} FORCE ROW LEVEL SECURITY"))
        grant = _GRANTS.get(row.name, "SELECT, INSERT, UPDATE, DELETE")
        connection.execute(text(f"GRANT {grant} ON {row.name} TO {TENANT_ROLE}"))
        changed.append(row.name)
    return changed


def closed_tables(connection: Connection) -> list[str]:
    """Tables of which this role would read a part only: a backup by it would be short of rows, and say nothing."""
    rows = connection.scalars(
        text("""
        SELECT c.relname FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND row_security_active(c.oid) AND NOT EXISTS (
            SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'of_the_service'
            AND pg_has_role(p.polroles[1], 'USAGE'))
        ORDER BY 1
        """)
    )
    return list(rows)
