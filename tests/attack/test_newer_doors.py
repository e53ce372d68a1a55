"""Attacks on what came after the first ones: several at once for one name, a trail that does not fit into memory,
receivers that drip, and numbers in messages.
"""

import contextlib
import csv
import io
import json
import socket
import threading
import time

import httpx
import pytest
from alerts.stage import SECRET, Stage
from attack.serving import serving
from channels.messages import message
from people import somebody
from sqlalchemy import text

from gapwatch.access.sealing import Sealer
from gapwatch.app import make_app
from gapwatch.channels.egress import Egress
from gapwatch.channels.kinds import CHANNEL_KINDS, read_config
from gapwatch.pages.settings import audit as audit_pages
from gapwatch.settings import Settings
from gapwatch.store.alerting import outbox
from gapwatch.watching import notification

HOOK = {"kind": "webhook", "config": {"url": "https://example.com/x"}}


def all_at_once(calls):
    answers, together = [], threading.Barrier(len(calls))

    def ask(call):
        together.wait()
        answers.append(call())

    threads = [threading.Thread(target=ask, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/channels", {"name": "race", **HOOK}),
        ("POST", "/rules", {"name": "race", "kind": "drop"}),
        ("POST", "/keys", {"name": "race", "scope": "read"}),
    ],
)
def test_several_at_once_for_one_name_get_an_answer_each(project, method, path, body):
    with project.client("admin") as client:

        def ask():
            return client.request(method, path, json=body)

        for number in range(4):
            body["name"] = f"race-{number}"
            statuses = {answer.status_code for answer in all_at_once([ask] * 6)}
            assert statuses <= {200, 201, 409}


def test_an_export_of_the_audit_is_bounded_by_bytes_and_goes_on_where_it_ended(service, project, monkeypatch):
    """An entry may hold what an event said: 50,000 of them would be gigabytes in the memory of everybody's web process."""
    monkeypatch.setattr(audit_pages, "EXPORTED_AT_ONCE", 2)
    monkeypatch.setattr(audit_pages, "MOST_EXPORTED_BYTES", 10_000)
    details = {f"note-{number}": "y" * 400 for number in range(20)}
    with project.client("admin") as client:
        for number in range(5):
            body = {"kind": "other", "title": f"event-{number}", "details": details}
            client.post("/events", json=body).raise_for_status()
    who = somebody(project, "admin")
    settings = Settings(
        database_url=service.database_url, redis_url=service.running["redis_url"], data_dir=service.data_dir
    )
    with (
        serving(make_app(settings), "on") as (port, _),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as browser,
    ):
        browser.post("/sign-in", data=who)
        seen, after = [], ""
        while True:
            address = f"/settings/audit?format=csv&action=event.recorded{after}"
            said = browser.get(address).raise_for_status().text
            rows = list(csv.reader(io.StringIO(said)))[1:]
            if not rows:
                break
            assert len(said) < 2 * 20_000 and len(rows) <= 2
            seen += rows
            after = f"&after={rows[-1][0]}"
    assert len({row[0] for row in seen}) == len(seen) == 5


@pytest.fixture
def dripping():
    """A server that says a letter every 50 ms and never ends; how its answer begins is up to the test."""
    listener = socket.create_server(("127.0.0.1", 0))
    begin, stop = [b""], threading.Event()

    def serve():
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(begin[0])
            while not stop.wait(0.05):
                connection.sendall(b"x")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1], begin
    stop.set()
    listener.close()


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_receiver_that_drips_its_answer_does_not_keep_a_sender(dripping, monkeypatch, begin):
    """Every piece is in time, the whole is not: three such channels were all senders, and everybody's alerts."""
    monkeypatch.setattr("gapwatch.channels.egress.CONNECT_WITHIN_S", 0.2)
    monkeypatch.setattr("gapwatch.channels.egress.ANSWER_WITHIN_S", 0.5)
    port, begins = dripping
    begins[0] = begin
    started = time.monotonic()
    attempt = Egress(allow_private=True).post(f"http://127.0.0.1:{port}/", b"{}", {})
    assert attempt.outcome in {"retry", "sent"} and time.monotonic() - started < 10


@pytest.mark.parametrize("security", ["none", "starttls"])
def test_a_mail_server_that_drips_its_greeting_does_not_keep_a_sender(dripping, monkeypatch, security):
    monkeypatch.setattr("gapwatch.channels.kinds.email.MAIL_WITHIN_S", 0.5)
    port, begins = dripping
    begins[0] = b"220-"
    config = {"to": ["a@example.com"], "sender": "b@example.com", "host": "127.0.0.1", "port": port}
    config = read_config("email", {}, config | {"security": security})
    started = time.monotonic()
    attempt = CHANNEL_KINDS["email"].send(config, message(), Egress(allow_private=True))
    assert attempt.outcome == "retry" and time.monotonic() - started < 10


def test_no_message_holds_the_number_of_its_project(database, receiver):
    stage = Stage(database, receiver)
    # Of the third project.
    stage.run("INSERT INTO projects (slug, name) VALUES ('x', 'x'), ('third', 'third')")
    project_id = stage.rows("SELECT id FROM projects WHERE slug = 'third'")[0][0]
    sealed = Sealer(SECRET).seal({})
    with database.transaction() as connection:
        channel_id = connection.execute(
            text(
                "INSERT INTO channels (project_id, name, kind, config, secret)"
                " VALUES (:p, 'x', 'webhook', CAST(:config AS jsonb), :sealed) RETURNING id"
            ),
            {"p": project_id, "config": json.dumps({"url": f"{receiver.url}/x"}), "sealed": sealed},
        ).scalar_one()
        outbox.enqueue(
            connection, project_id, channel_id, "test", notification.test_content("x"), incident_id=None
        )
    stage.send()
    [got] = receiver.got
    assert got.headers["Gapwatch-Delivery"] == "third-1" == got.json["id"]
