"""Web is killed at every single send and write of a request: whatever was acknowledged is stored, once."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

import psutil
import pytest
from faults.harness import SECRET, Webs, compare

from gapwatch.accounts import make_key
from gapwatch.rollup.fold import fold_due_work
from parts import Project, episode, wait_until

STRACE = shutil.which("strace")
FOREVER = 40

pytestmark = pytest.mark.skipif(STRACE is None, reason="strace is not installed")


@pytest.fixture
def webs(database, tmp_path):
    webs = Webs(database.url, tmp_path)
    yield webs
    webs.close()


@pytest.fixture
def project(database, webs):
    key = make_key(database, SECRET.encode(), project="robots", scope="ingest", name="test")
    return Project("robots", 1, webs.url, {"ingest": key}, database)


@contextlib.contextmanager
def killed_at(pid: int, call: str, number: int):
    """The process dies as it enters its `number`th call from now on."""
    strace = subprocess.Popen(
        [
            *(STRACE, "-f", "-o", "/dev/null", "-p", str(pid)),
            *("-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = strace.stderr.readline()
        if "attached" not in said:
            pytest.skip(f"strace cannot attach here: {said.strip()}")
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.communicate(timeout=10)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@contextlib.contextmanager
def connected(project):
    """A connection that this very process has accepted, and that nothing replaces when it breaks."""
    connection = HTTPConnection(urlsplit(project.url).netloc, timeout=10)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read()
    yield connection
    connection.close()


def post(project, connection: HTTPConnection, record) -> tuple[int, dict] | None:
    """Status and body, or None for a client that has no complete answer."""
    headers = {"Authorization": f"Bearer {project.keys['ingest']}", "Content-Type": "application/json"}
    with contextlib.suppress(OSError, HTTPException):
        connection.request("POST", "/api/v1/episodes", json.dumps(record), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    return None


def test_a_kill_at_any_send_or_write_of_a_request_loses_nothing_acknowledged(webs, project, database):
    sent, points, retries = {}, {}, set()
    web = webs.start()
    for call in ("sendto", "write"):
        for number in range(1, FOREVER):
            record = episode()
            record["deployment"] = f"line-{record['id'][:8]}"
            sent[record["id"]] = record["outcome"]
            with connected(project) as connection, killed_at(web, call, number):
                answer = post(project, connection, record)
                time.sleep(0.05)
                survived = is_alive(web)
            if survived:
                os.kill(web, signal.SIGKILL)
            wait_until(lambda pid=web: not is_alive(pid), pause_s=0.005, what="the death of web")
            stored = project.stored() == len(sent)
            assert answer is None or (answer[0] == 201 and stored), (call, number, answer)
            web = webs.start()
            with connected(project) as connection:
                _, retry = post(project, connection, record)
            assert retry["status"] == ("duplicate" if stored else "accepted"), (call, number)
            retries.add(retry["status"])
            if survived:
                points[call] = number - 1
                break
    # Killed at each of them, with either outcome: the sweep met the whole transaction.
    assert points["sendto"] >= 6
    assert points["write"] >= 1
    assert retries == {"accepted", "duplicate"}
    fold_due_work(database)
    found = compare(project, sent, sent)
    assert found.is_clean, found
    assert found.stored == len(sent)
