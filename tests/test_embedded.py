import os
import signal
import subprocess
from dataclasses import replace

import psycopg
import pytest
from alembic import command
from sqlalchemy import text

from gapwatch import embedded
from gapwatch.store.core.database import Database
from gapwatch.store.core.migrate import alembic_config, migrate
from parts import reachable


@pytest.fixture
def run_dir(tmp_path):
    run_dir = embedded.make_run_dir(embedded.running_as(tmp_path))
    yield run_dir
    run_dir.rmdir()


def test_the_cluster_is_durable_private_and_has_no_port(tmp_path, run_dir):
    server = embedded.prepare_postgres(reachable(tmp_path) / "a b", run_dir)
    with embedded.running(server), psycopg.connect(server.url) as connection:
        settings = dict(
            connection.execute(
                "SELECT name, setting FROM pg_settings WHERE name IN"
                " ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'data_checksums')"
            ).fetchall()
        )
        encoding = connection.execute("SHOW server_encoding").fetchone()
    assert settings == {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "listen_addresses": "",
        "data_checksums": "on",
    }
    assert encoding == ("UTF8",)
    assert run_dir.stat().st_mode & 0o077 == 0


def test_the_password_is_needed_even_on_the_private_socket(tmp_path, run_dir):
    server = embedded.prepare_postgres(reachable(tmp_path) / "data", run_dir)
    with embedded.running(server):
        for url, name in ((server.url, "postgres-service-password"), (server.admin_url, "postgres-password")):
            password = (tmp_path / "data" / name).read_text()
            with pytest.raises(psycopg.OperationalError, match="authentication failed"):
                psycopg.connect(url.replace(password, "guessed"))


def test_a_postgres_left_behind_is_stopped_before_the_next_starts(tmp_path, run_dir):
    data_dir = reachable(tmp_path) / "data"
    server = embedded.prepare_postgres(data_dir, run_dir)
    orphan = subprocess.Popen(
        server.argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=embedded.server_environment(),
        **embedded.spawn_options(server.account, signal.SIGINT),
    )
    try:
        embedded.wait_until_ready(server, lambda: orphan.poll() is None)
        again = embedded.prepare_postgres(data_dir, run_dir)
        assert orphan.wait(10) == 0
        with embedded.running(again):
            pass
    finally:
        if orphan.poll() is None:
            orphan.kill()
            orphan.wait()


def test_a_cluster_of_another_major_version_is_refused_in_words(tmp_path, run_dir):
    data_dir = reachable(tmp_path) / "data"
    embedded.prepare_postgres(data_dir, run_dir)
    (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(embedded.EmbeddedError, match="made by Postgres 17"):
        embedded.prepare_postgres(data_dir, run_dir)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a closed home that others cannot enter")
def test_root_with_a_closed_directory_opens_no_parent(tmp_path, run_dir, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(embedded, "ROOT_STATE", reachable(tmp_path) / "state")
    server = embedded.prepare_postgres(closed / "data", run_dir)
    with embedded.running(server):
        pass
    assert closed.stat().st_mode & 0o777 == 0o700
    assert (closed / "data" / "postgres").is_symlink()
    # The second start finds the same cluster, also after the directory was moved.
    (closed / "data").rename(closed / "moved")
    assert embedded.prepare_postgres(closed / "moved", run_dir).argv == server.argv


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as somebody else")
def test_a_directory_that_was_closed_later_is_named(tmp_path, run_dir):
    data_dir = reachable(tmp_path) / "open" / "data"
    embedded.prepare_postgres(data_dir, run_dir)
    (tmp_path / "open").chmod(0o700)
    with pytest.raises(embedded.EmbeddedError, match="can no longer reach"):
        embedded.prepare_postgres(data_dir, run_dir)


def test_a_cluster_of_an_earlier_release_is_handed_over_to_a_role_that_is_no_superuser(tmp_path, run_dir):
    """Its tables belonged to the superuser that the service was."""
    server = embedded.prepare_postgres(reachable(tmp_path) / "data", run_dir)
    old = replace(server, is_ready=lambda: made_by_superuser(server.admin_url))
    with embedded.running(old):
        before = Database(server.admin_url)
        with before.engine.connect() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            # The last release before there was row security.
            command.upgrade(config, "0019")
            connection.execute(text("INSERT INTO projects (slug, name) VALUES ('fleet', 'fleet')"))
            connection.execute(text("INSERT INTO channels (project_id, name, kind) VALUES (1, 'a', 'webhook')"))
            connection.execute(text("CREATE SEQUENCE left_over"))
            connection.commit()
        before.close()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url)

        assert server.is_ready() and server.is_ready()  # twice changes nothing
        database = Database(server.url)
        migrate(database)
        with database.transaction() as connection:
            role = "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
            assert connection.execute(text(role)).scalar_one() is False
            foreign = """
                SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
                AND relowner <> current_user::regrole
                UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
                AND proowner <> current_user::regrole
                """
            assert connection.execute(text(foreign)).all() == []
            assert connection.execute(text("SELECT name FROM channels")).scalar_one() == "a"
        with database.transaction(1) as connection:
            added = "INSERT INTO channels (project_id, name, kind) VALUES (1, 'b', 'webhook') RETURNING id"
            assert connection.execute(text(added)).scalar_one() == 2
        with database.transaction(2) as connection:
            assert connection.execute(text("SELECT name FROM channels")).all() == []
        database.close()


def made_by_superuser(admin_url):
    """What the earlier release did with a cluster that is up."""
    try:
        with psycopg.connect(admin_url, dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE gapwatch")
    except psycopg.OperationalError:
        return False
    return True
