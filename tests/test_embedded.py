import os
import signal
import subprocess

import psycopg
import pytest

from gapwatch import embedded
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
