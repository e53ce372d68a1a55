"""Times that would break pages are refused, forms cannot crash a page, and an event can be taken back."""

from datetime import UTC, datetime, timedelta

import pytest
from people import Browser, somebody

from parts import Project, episode, wait_until

FAR = "9999-12-31T23:59:59Z"


@pytest.fixture
def working(attacker: Project) -> Project:
    with attacker.client() as client:
        client.post("/episodes", json=episode()).raise_for_status()
    wait_until(
        lambda: attacker.value("SELECT count(*) FROM rollup_counts WHERE project_id = :p"), what="the counts"
    )
    return attacker


@pytest.mark.parametrize("at", [FAR, "1999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999w"])
def test_an_event_has_the_bounds_of_an_episode(attacked, working, at):
    with working.client() as client:
        refused = client.post("/events", json={"kind": "release", "title": "x", "at": at})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/body/at"
    with Browser(attacked, somebody(working, "engineer")) as browser:
        page = "/deployments/berlin-line-3"
        assert browser.submit(page, working.slug, kind="release", title="x", at=at).status_code == 422
        assert browser.get(page).status_code == 200
    assert working.value("SELECT count(*) FROM events WHERE project_id = :p") == 0


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/silences", {"starts_at": FAR, "minutes": 60}, "starts_at"),
        ("/silences", {"starts_at": "0001-01-01T00:00:00Z", "minutes": 60}, "starts_at"),
        ("/silences", {"ends_at": FAR}, "ends_at"),
        ("/robots/r-1/status", {"status": "parked", "until": FAR}, "until"),
    ],
)
def test_what_people_plan_has_bounds_too(working, path, body, field):
    with working.client() as client:
        client.post("/episodes", json=episode(robot="r-1")).raise_for_status()
    more = {"reason": "x", "match": {"deployment": ["*"]}} if path == "/silences" else {}
    with working.client("admin") as client:
        refused = client.request("POST" if path == "/silences" else "PUT", path, json=body | more)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == f"/body/{field}"


def test_an_event_that_was_let_in_before_breaks_no_page(attacked, working):
    working.rows(
        "INSERT INTO events (project_id, kind, at, title) VALUES (:p, 'other', :at, 'x') RETURNING id", at=FAR
    )
    with Browser(attacked, somebody(working, "viewer")) as browser:
        for address in ("/", "/deployments/berlin-line-3", "/deployments/berlin-line-3?format=report"):
            assert browser.get(address).status_code == 200
    with working.client("read") as client:
        assert client.get("/deployments/berlin-line-3/trend").status_code == 200
        assert [event["at"] for event in client.get("/events").json()["events"]] == [FAR]


def test_an_event_is_taken_back_and_the_trail_keeps_it(attacked, working, victim):
    body = {"kind": "release", "title": "1.4.0 rolled out", "deployment": "berlin-line-3"}
    with working.client() as client:
        first, second = (client.post("/events", json=body).json()["id"] for _ in range(2))
        assert client.delete(f"/events/{first}").status_code == 403
    with victim.client("admin") as stranger:
        assert stranger.delete(f"/events/{first}").status_code == 404
    with working.client("admin") as client:
        assert client.delete(f"/events/{first}").status_code == 204
        assert client.delete(f"/events/{first}").status_code == 404
        assert [event["id"] for event in client.get("/events").json()["events"]] == [second]
    page = "/deployments/berlin-line-3"
    with Browser(attacked, somebody(working, "engineer")) as browser:
        assert "1.4.0 rolled out" in browser.get(page).text
        taken = browser.submit(page, working.slug, act="remove-event", event=str(second))
        assert taken.status_code == 200
        assert "1.4.0 rolled out" not in taken.text
        assert browser.submit(page, working.slug, act="remove-event", event=str(second)).status_code == 404
    with Browser(attacked, somebody(working, "viewer")) as browser:
        assert browser.submit(page, working.slug, act="remove-event", event="1").status_code == 403
    trail = working.rows(
        "SELECT subject, details ->> 'title', details ->> 'kind' FROM audit_entries "
        "WHERE project_id = :p AND action = 'event.deleted' ORDER BY id"
    )
    assert trail == [(f"event/{number}", body["title"], "release") for number in (first, second)]


@pytest.mark.parametrize("number", ["9" * 5000, "[" * 5000, "1e999999", "-" + "9" * 400])
def test_numbers_without_measure_in_a_form_are_refused(attacked, working, number):
    with Browser(attacked, somebody(working, "admin")) as browser:
        form = {"name": "mine", "kind": "drop", "severity": "warning", "act": "save"}
        answer = browser.submit("/settings/rules", working.slug, params=f'{{"min_real": {number}}}', **form)
        assert answer.status_code == 422
        for path, field in (("/settings/silences/end", "silence"), ("/settings/keys/revoke", "key")):
            assert browser.submit(path, working.slug, **{field: number}).status_code in (404, 422)
        for path in (f"/alerts/{number}", f"/incidents/{number}", f"/settings/quarantine?after={number}"):
            assert browser.get(path).status_code < 500
    with working.client("admin") as client:
        body = f'{{"kind": "drop", "params": {{"min_real": {number}}}}}'
        answer = client.post("/rules/preview", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422)


def test_a_token_that_is_not_ascii_is_a_wrong_token(attacked, working):
    with Browser(attacked, somebody(working, "engineer")) as browser:
        answer = browser.post("/settings/silences", data={"csrf": "trés-faux-🤖", "project": working.slug})
    assert answer.status_code == 403


def test_the_last_day_of_a_series_is_within_two_years(attacked, working):
    form = {
        "reason": "x",
        "deployment": "*",
        "lasting": "every week",
        "days": "mon",
        "from": "10:00",
        "to": "11:00",
    }
    far = (datetime.now(UTC) + timedelta(days=800)).date().isoformat()
    with Browser(attacked, somebody(working, "engineer")) as browser:
        for day in (far, "9000-01-01", "9999-12-31"):
            assert browser.submit("/settings/silences", working.slug, last_day=day, **form).status_code == 422
