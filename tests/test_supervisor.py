"""`gapwatch serve` as its users meet it: as a process that is killed, stopped and started again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from gapwatch.store.core.database import Database
from parts import Service, clean_environment, episode, make_project, reachable, start_service, wait_until

# How each part is recognised among the supervisor's children.
PARTS = {
    "web": "gapwatch web",
    "worker": "gapwatch worker",
    "beat": "gapwatch beat",
    "redis": "valkey-server",
    "postgres": "bin/postgres",
}


@pytest.fixture
def data_dir(tmp_path) -> Path:
    # A space in the path is part of every test here.
    return reachable(tmp_path) / "data of a robot"


@pytest.fixture
def own(data_dir):
    service = start_service(data_dir)
    yield service
    service.stop()


def processes_of(service) -> list[psutil.Process]:
    return [
        psutil.Process(service.process.pid),
        *psutil.Process(service.process.pid).children(recursive=True),
    ]


def post_one(service) -> str:
    database = Database(service.database_url)
    project = make_project(service, database)
    record = episode()
    with project.client() as client:
        answer = client.post("/episodes", json=record)
    database.close()
    assert answer.status_code == 201, answer.text
    return record["id"]


def is_ready(service) -> bool:
    return httpx.get(f"{service.url}/readyz").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_leaves_no_process_socket_or_lock(data_dir, number):
    service = start_service(data_dir)
    post_one(service)
    run_dir = Path(service.running["run_dir"])
    processes = processes_of(service)
    assert service.stop(number) == 0, service.log
    _, alive = psutil.wait_procs(processes, timeout=2)
    assert alive == []
    assert not run_dir.exists()
    # The binaries are beside the data when the clone is closed to the account that runs Postgres.
    left = {path.name for path in data_dir.iterdir()} - {"postgres-binaries-18"}
    assert left == {"postgres", "postgres-password", "postgres-service-password", "secret-key"}
    assert not (data_dir / "postgres" / "postmaster.pid").exists()


def test_a_full_disk_that_cannot_take_its_words_does_not_end_the_service(data_dir):
    with Path("/dev/full").open("w") as full, (data_dir.parent / "log").open("w") as log:
        command = [sys.executable, "-m", "gapwatch", "serve", "--port", "0", "--data-dir", str(data_dir)]
        process = subprocess.Popen(command, env=clean_environment(), stdout=full, stderr=log)
    service = Service(process, data_dir, data_dir.parent / "log")
    try:
        running = data_dir / "running.json"
        wait_until(lambda: running.exists() and "url" in running.read_text(), 30, what="the start")
        wait_until(lambda: is_ready(service), 30, what="readiness")
        # Whoever ends because of it has done so by now.
        time.sleep(2)
        assert process.poll() is None and is_ready(service)
    finally:
        service.stop()


def test_a_second_serve_on_the_same_directory_says_so_and_stops(own):
    argv = [sys.executable, "-m", "gapwatch", "serve", "--port", "0", "--data-dir", own.data_dir]
    second = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True, timeout=20, check=False)
    assert second.returncode == 1
    assert f"already running on {own.data_dir}" in second.stderr
    assert str(own.process.pid) in second.stderr
    assert httpx.get(f"{own.url}/healthz").is_success


def test_a_port_in_use_is_named(data_dir):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        argv = [sys.executable, "-m", "gapwatch", "serve", "--port", port, "--data-dir", data_dir]
        done = subprocess.run(
            argv, env=clean_environment(), capture_output=True, text=True, timeout=20, check=False
        )
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr


def test_an_outside_database_that_is_away_is_a_sentence_and_not_a_traceback(data_dir):
    url = "postgresql://robot:s3cret@127.0.0.1:1/fleet"
    done = subprocess.run(
        [sys.executable, "-m", "gapwatch", "serve", "--port", "0", "--data-dir", data_dir],
        env=clean_environment(GAPWATCH_DATABASE_URL=url),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "The database cannot be used: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "s3cret" not in done.stderr


def test_killing_the_supervisor_takes_its_children_along_and_the_next_start_heals(data_dir):
    service = start_service(data_dir)
    kept = post_one(service)
    old_run_dir = Path(service.running["run_dir"])
    processes = processes_of(service)
    service.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(processes, timeout=15)
    assert alive == []
    again = start_service(data_dir)
    try:
        with psycopg.connect(again.database_url) as connection:
            assert connection.execute("SELECT id FROM episodes").fetchall() == [(kept,)]
        assert not old_run_dir.exists()
        post_one(again)
    finally:
        assert again.stop() == 0


def test_data_survives_a_restart(data_dir):
    service = start_service(data_dir)
    kept = post_one(service)
    assert service.stop() == 0
    again = start_service(data_dir)
    try:
        with psycopg.connect(again.database_url) as connection:
            assert connection.execute("SELECT id FROM episodes").fetchall() == [(kept,)]
    finally:
        again.stop()


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_is_started_again(own, part):
    wait_until(lambda: is_ready(own), what="readiness")
    [before] = own.children(PARTS[part])
    os.kill(before, signal.SIGKILL)
    [after] = wait_until(lambda: [pid for pid in own.children(PARTS[part]) if pid != before], what=f"a new {part}")
    assert after != before
    wait_until(lambda: is_ready(own), 15, what="readiness after the kill")
    wait_until(lambda: post_one(own), 10, what="an accepted episode")
    assert "part stopped and is started again" in own.log


def test_logs_are_json_lines_that_name_their_part(own):
    post_one(own)
    httpx.get(f"{own.url}/sign-in")
    wait_until(lambda: '"path": "/sign-in"' in own.log, what="the line of the request")
    lines = [line for line in own.log.splitlines() if line.strip()]
    parts = {json.loads(line)["part"] for line in lines if line.startswith("{")}
    assert {"gapwatch", "web"} <= parts
    request = next(json.loads(line) for line in lines if '"event": "request"' in line)
    assert (request["path"], request["status"]) == ("/sign-in", 200)
    assert len(request["request_id"]) == 32


def test_serving_as_several_web_processes(data_dir):
    service = start_service(data_dir, GAPWATCH_WEB_PROCESSES="2")
    try:
        assert len(wait_until(lambda: service.children("gapwatch web"))) == 2
        for _ in range(10):
            assert httpx.get(f"{service.url}/healthz").is_success
    finally:
        assert service.stop() == 0
