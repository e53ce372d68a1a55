"""One reader of files cannot take anybody's connections: neither by going away nor by staying without reading."""

import asyncio
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from attack.serving import serving
from people import Browser, somebody
from sqlalchemy import text

from gapwatch import http_protocol
from gapwatch.doors import streamed_file
from gapwatch.doors.lanes import Lanes
from gapwatch.doors.streamed_file import StreamedFile
from parts import Project, episode, wait_until

NOTE = "x" * 3900
QUICK_S = 5.0


@pytest.fixture
def full(attacker: Project) -> Project:
    """A project whose export is larger than the buffers of a connection: nobody gets all of it without reading."""
    records = [episode(outcome="failure", failure={"note": NOTE}) for _ in range(4000)]
    with attacker.client() as client:
        answer = client.post("/episodes/batch", json=records)
        assert answer.status_code == 200, answer.text
    return attacker


def reading(project: Project, path: str, *headers: str) -> socket.socket:
    """A connection that asked for a file and has not read anything of it."""
    address = urlsplit(project.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((address.hostname, address.port))
    connection.sendall("\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode())
    return connection


def held_connections(project: Project) -> int:
    """Database connections of web that somebody has in hand."""
    with project.database.transaction() as transaction:
        return transaction.execute(
            text("""SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid()
                    AND (application_name LIKE 'gapwatch-web%' OR application_name LIKE 'gapwatch-export%')""")
        ).scalar_one()


def everything_answers(other: Project, who: dict[str, str], service) -> None:
    """Pages, sign-in and the read API of another project, at once."""
    started = time.monotonic()
    with Browser(service, who) as browser, other.client("read") as client:
        assert browser.get("/").status_code == 200
        assert client.get("/episodes").status_code == 200
    assert time.monotonic() - started < QUICK_S


@pytest.mark.parametrize("way", ["cancelled pages", "stalled exports"])
def test_readers_of_files_leave_everybody_else_their_connections(attacked, full, victim, way):
    viewer = somebody(full, "viewer")
    if way == "cancelled pages":
        with Browser(attacked, viewer) as browser:
            cookie = "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())
        asked = ("/episodes?format=csv", f"Cookie: {cookie}")
        count = 24
    else:
        asked = ("/api/v1/episodes/export", f"Authorization: Bearer {full.keys['read']}")
        count = 22
    victims = somebody(victim, "viewer")
    connections = [reading(full, *asked) for _ in range(count)]
    try:
        # Those that are let in have sent their head; the others were told why not.
        statuses = [int(connection.recv(12).split()[1]) for connection in connections]
        assert statuses.count(200) == 2
        assert statuses.count(429) == count - 2
        everything_answers(victim, victims, attacked)
    finally:
        for connection in connections:
            connection.close()
    wait_until(lambda: held_connections(full) == 0, QUICK_S, what="every connection being given back")
    everything_answers(victim, victims, attacked)
    with full.client("read") as client:
        assert client.get("/episodes/export").status_code == 200


def test_a_refused_export_says_why_and_when_to_come_again(attacked, full):
    asked = ("/api/v1/episodes/export", f"Authorization: Bearer {full.keys['read']}")
    with reading(full, *asked) as first, reading(full, *asked) as second:
        first.recv(12), second.recv(12)
        with full.client("read") as client:
            refused = client.get("/episodes/export")
        assert refused.status_code == 429
        assert refused.headers["content-type"] == "application/problem+json"
        assert int(refused.headers["retry-after"]) > 0
        assert "two exports at a time" in refused.json()["detail"]
        with Browser(attacked, somebody(full, "viewer")) as browser:
            page = browser.get("/episodes?format=csv")
        assert page.status_code == 429
        assert "<html" in page.text and "two exports at a time" in page.text


@pytest.mark.parametrize("kind", ["whole", "streamed"])
def test_a_reader_that_stalls_is_cut_off(monkeypatch, kind):
    """Whatever the answer is: a page of many megabytes, or a file without end."""
    monkeypatch.setattr(http_protocol, "STALLED_S", 0.2)
    closed = threading.Event()
    lanes = Lanes("two files", overall=4, at_once=2, waiting=0)

    def pieces():
        try:
            while True:
                yield b"x" * 100_000
        finally:
            closed.set()

    async def app(scope, receive, send):
        if kind == "whole":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x" * 50_000_000})
        else:
            await StreamedFile(pieces, name="f", media_type="text/csv", lanes=lanes, project_id=1)(
                scope, receive, send
            )

    with serving(app) as (port, server), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wait_until(lambda: server.server_state.connections, what="the connection")
        wait_until(lambda: not server.server_state.connections, what="the reader being cut off")
        if kind == "streamed":
            assert closed.wait(5)
            wait_until(lambda: lanes.running == 0, what="the lane being free")


@pytest.mark.parametrize("way", ["disconnect", "error", "slow", "too long", "end"])
def test_every_way_out_closes_the_file_and_frees_its_lane(monkeypatch, way):
    monkeypatch.setattr(streamed_file, "PIECE_WITHIN_S", 0.1 if way == "slow" else 60)
    monkeypatch.setattr(streamed_file, "FILE_WITHIN_S", 0.1 if way == "too long" else 60)
    asyncio.run(end_file(way))


async def end_file(way: str) -> None:
    closed, aborted, sent = threading.Event(), asyncio.Event(), []
    lanes = Lanes("two files", overall=4, at_once=2, waiting=0)

    def pieces():
        try:
            yield b"first"
            if way == "error":
                raise TimeoutError("the database went away")
            if way == "end":
                return
            while True:
                time.sleep(0.01)
                yield b"more"
        finally:
            closed.set()

    async def receive():
        if way == "disconnect" and sent:
            return {"type": "http.disconnect"}
        await aborted.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)
        if way == "disconnect" or (way == "slow" and len(sent) > 1):
            await asyncio.sleep(30)

    file = StreamedFile(pieces, name="f", media_type="text/csv", lanes=lanes, project_id=1)
    if way == "disconnect":
        sent.append({})
    scope = {"type": "http", "method": "GET", "extensions": {"gapwatch.abort": aborted.set}}
    async with asyncio.timeout(10):
        await file(scope, receive, send)
        assert await asyncio.to_thread(closed.wait, 5)
        while lanes.running:
            await asyncio.sleep(0.01)
    is_whole = sent[-1] == {"type": "http.response.body"}
    assert is_whole == (way == "end")
    assert aborted.is_set() == (way in ("error", "slow", "too long"))
