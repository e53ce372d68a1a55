"""Attacks on what came after the first ones: two at once for one name, and a trail that does not fit into memory."""

import csv
import io
import threading

import httpx
import pytest
from attack.serving import serving
from people import somebody

from gapwatch.app import make_app
from gapwatch.pages.settings import audit as audit_pages
from gapwatch.settings import Settings

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
            text = browser.get(address).raise_for_status().text
            rows = list(csv.reader(io.StringIO(text)))[1:]
            if not rows:
                break
            assert len(text) < 2 * 20_000 and len(rows) <= 2
            seen += rows
            after = f"&after={rows[-1][0]}"
    assert len({row[0] for row in seen}) == len(seen) == 5
