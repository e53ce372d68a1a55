import json
import re
from datetime import UTC, datetime

import httpx
import pytest
from pages.test_alerts import SIM, engineer  # noqa: F401 - a fixture
from people import PASSWORD, Browser, somebody
from sqlalchemy import text

from gapwatch.accounts import put_person
from gapwatch.pages.incident import next_morning
from gapwatch.watching.notification import lines as notification_lines
from parts import episode, make_project, minutes_ago, wait_until

ODD = [None, [], "words", {}, {"change_point": None}, {"change_point": {"at": "yesterday"}}, {"since": {"value": None}},
       {"reference": "sim", "since": 7, "drop": [], "change_point": "?", "sessions": 3, "e_value": "many"},
       {"reference": {"side": "sim", "value": 3, "n": -1}, "interval": [1], "now": "x", "arl": "a"},
       {"since": {"value": 0.5, "n": "?", "interval": None}, "drop": {"value": "?", "interval": None}}]  # fmt: skip


def the_incident(project) -> int:
    return project.value("SELECT max(id) FROM incidents WHERE project_id = :p")


def words_of(page: httpx.Response) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


def run(project, statement: str, **parameters) -> None:
    with project.database.transaction() as connection:
        connection.execute(text(statement), {"p": project.id, **parameters})


def test_an_incident_tells_now_and_what_can_be_done(engineer, project):  # noqa: F811
    number = the_incident(project)
    page = engineer.get(f"/incidents/{number}")
    words = words_of(page)
    assert re.search(r"berlin-line-3: \d\d points below sim", words)
    assert re.search(r"Real success: 5\d % now \(n 100, [\d.]+ to [\d.]+\) , 96 % in sim", words)
    assert re.search(r"That is [\d.]+ points less \([\d.]+ to [\d.]+\) , since", words)
    assert re.search(r"Acknowledge, \d alerts?", words)
    assert "Computed" in words and "How this was decided" in words and "Nobody was told." in words
    failures = re.search(r'<a href="(/episodes\?[^"]+)">(\d+) failures since the change', page.text)
    listed = engineer.get(failures[1].replace("&amp;", "&") + "&format=json").json()["page"]
    assert len(listed["entries"]) == min(int(failures[2]), len(listed["entries"])) > 0
    twin = engineer.get(f"/incidents/{number}?format=json").json()["page"]
    with project.client("read") as client:
        api = client.get(f"/incidents/{number}").json()
    assert twin["standing"]["now"] == api["now"] and twin["found"]["robots"] == api["robots"]


def test_a_change_has_one_date_on_the_page_in_the_api_and_in_the_alert(engineer, project):  # noqa: F811
    number = the_incident(project)
    with project.client("read") as client:
        api = client.get(f"/incidents/{number}").json()
        [listed] = client.get("/incidents").json()["incidents"]
    page = engineer.get(f"/incidents/{number}?format=json").json()["page"]
    points = {alert["evidence"]["change_point"]["at"] for alert in api["alerts"] if alert["series"] == "success"}
    at = datetime.fromisoformat(api["change"]["at"])
    assert at in map(datetime.fromisoformat, points)
    assert {datetime.fromisoformat(one) for one in (api["changed_at"], listed["changed_at"])} == {at}
    assert datetime.fromisoformat(page["found"]["change"]["at"]) == at
    assert (
        datetime.fromisoformat(api["change"]["earliest"]) <= at <= datetime.fromisoformat(api["change"]["latest"])
    )
    # Each series by the alert that is about it.
    by_name = {alert["series"].partition("@")[0]: alert for alert in api["alerts"]}
    for one in page["series"]:
        own = by_name[one["series"]]["evidence"].get("change_point", {"at": api["change"]["at"]})["at"]
        assert own in points or datetime.fromisoformat(one["change"]["at"]) == datetime.fromisoformat(own)


def test_the_contract_of_one_robot_is_told_on_the_page_in_the_incident_and_in_the_message(service, project):
    """One of three robots has its joints in another order, says so, and fails: that is the news, not its actuators."""
    agreed = {"control_hz": 50, "joint_order": ["j1", "j2"]}
    swapped = agreed | {"joint_order": ["j2", "j1"]}
    records = [
        episode(**SIM, outcome="failure" if n % 25 == 0 else "success", contract=agreed) for n in range(100)
    ]
    for n in range(180):
        is_odd, at = n % 3 == 1, minutes_ago(270 - 1.5 * n)
        fails, contract = (True, swapped) if is_odd else (n % 45 == 0, agreed)
        outcome = {"outcome": "failure" if fails else "success"}
        records.append(episode(started_at=at, robot=f"arm-{n % 3 + 1}", contract=contract, **outcome))
    hook = {"name": "ops", "kind": "webhook", "config": {"url": "https://hooks.example.com/x"}}
    with project.client("admin") as client:
        client.post("/channels", json=hook).raise_for_status()
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    told = "SELECT content FROM deliveries WHERE project_id = :p AND action = 'trigger' ORDER BY id DESC LIMIT 1"
    wait_until(lambda: project.rows(told), 60, what="a message")
    content = project.value(told)
    assert "(arm-2)" in content["contract"] and "joint_order" in content["contract"]
    assert f"Contract: {content['contract']}" in notification_lines(content)
    with Browser(service, somebody(project, "engineer")) as browser:
        incident = words_of(browser.get(f"/incidents/{the_incident(project)}"))
        page = words_of(browser.get("/deployments/berlin-line-3?window=all"))
    with project.client("read") as client:
        api = client.get(f"/incidents/{the_incident(project)}").json()
    assert "(arm-2)" in api["contract"] and "joint_order" in api["contract"]
    for words in (incident, page):
        assert "(arm-2)" in words and "joint_order" in words
    assert "Contracts agree" not in page


def test_of_a_silence_arrivals_are_drawn_and_not_success(engineer, project):  # noqa: F811
    number = the_incident(project)
    run(
        project,
        "UPDATE alerts SET kind = 'no_data', rule = 'robot-silent', series = 'robot:r' || id, changed_at = now(),"
        ' evidence = CAST(\'{"robot": "ur5e-2", "heard_at": "2026-11-02T09:14:00+00:00"}\' AS jsonb)'
        " WHERE project_id = :p",
    )
    page = engineer.get(f"/incidents/{number}")
    words = words_of(page)
    assert "ur5e-2 silent since 2 Nov 09:14 UTC" in words and "Arrivals of r" in words
    assert "Real success" not in words and "Failures and slices" not in words
    assert "Was this silence normal?" in words
    twin = engineer.get(f"/incidents/{number}?format=json").json()
    assert twin["page"]["series"] == [] and twin["page"]["arrivals"][0]["drawn"]["tier"] == "hour"
    [[alert]] = project.rows("SELECT min(id) FROM alerts WHERE project_id = :p")
    assert "Arrivals of r" in words_of(engineer.get(f"/alerts/{alert}"))


def test_an_incident_that_an_import_told_of_in_its_line_says_so(engineer, project):  # noqa: F811
    number = the_incident(project)
    with project.client("admin") as client:
        body = {
            "name": "ops",
            "kind": "webhook",
            "config": {"url": "https://hooks.example.com/x"},
            "enabled": False,
        }
        channel = client.post("/channels", json=body).json()["id"]
    run(project, "UPDATE incidents SET backfill_id = 7 WHERE project_id = :p")
    run(
        project,
        "INSERT INTO deliveries (project_id, channel_id, action, dedup_key, content, state, reason)"
        " VALUES (:p, :c, 'trigger', :key, CAST(:content AS jsonb), 'sent', 'import')",
        c=channel,
        key=f"gapwatch/{project.slug}/import-7",
        content=json.dumps({"headline": "Import of 220 episodes", "import": {"changed": ["berlin-line-3"]}}),
    )
    words = words_of(engineer.get(f"/incidents/{number}"))
    assert "Nobody was told" not in words
    assert "ops trigger, in the project's one line about an import : Import of 220 episodes" in words
    with project.client("read") as client:
        for address in (f"/incidents/{number}", f"/deliveries?incident={number}"):
            assert [one["reason"] for one in client.get(address).json()["deliveries"]] == ["import"]


def test_it_is_assigned_acknowledged_silenced_commented_on_and_resolved(engineer, project):  # noqa: F811
    address = f"/incidents/{the_incident(project)}"
    who = f"engineer-{project.slug}@example.com"
    assert f"passed it on: to {who}" in words_of(engineer.submit(address, project.slug, act="assign", owner=who))
    taken = engineer.submit(address, project.slug, act="acknowledge")
    assert 'data-s="acknowledged"' in taken.text and "data-acknowledge" not in taken.text
    assert "a remark" in engineer.submit(address, project.slug, act="comment", comment="a remark").text
    for span in ({"for": "4h"}, {"for": "morning", "zone": "Asia/Tokyo"}, {"for": "custom", "hours": "12"}):
        assert engineer.submit(address, project.slug, act="silence", comment="known", **span).status_code == 200
    assert engineer.get("/settings/silences").text.count("known") >= 3
    assert "08:00 Asia/Tokyo: known" in words_of(engineer.get(address))
    over = engineer.submit(address, project.slug, act="resolve", comment="new pads", mitigation="yes")
    assert 'data-s="resolved"' in over.text
    assert engineer.submit(address, project.slug, act="acknowledge").status_code == 409
    assert "late word" in engineer.submit(address, project.slug, act="comment", comment="late word").text
    assert engineer.get("/alerts?state=resolved").text.count("data-row") == 1
    events = engineer.get("/deployments/berlin-line-3?format=json").json()["page"]["events"]
    assert [event["title"] for event in events] == ["new pads"]


@pytest.mark.parametrize(
    ("zone", "ends"),
    [
        ("UTC", "2026-11-19T08:00:00+00:00"),
        # It is the 19th there already.
        ("Asia/Tokyo", "2026-11-19T23:00:00+00:00"),
        ("Europe/Berlin", "2026-11-19T07:00:00+00:00"),
        ("America/New_York", "2026-11-19T13:00:00+00:00"),
    ],
)
def test_tomorrow_morning_is_on_the_clock_of_who_asks(zone, ends):
    now = datetime(2026, 11, 18, 21, 30, tzinfo=UTC)
    assert next_morning(now, zone).astimezone(UTC).isoformat() == ends


def test_the_morning_of_a_deployment_with_a_calendar_is_named_after_its_zone(engineer, project):  # noqa: F811
    address = f"/incidents/{the_incident(project)}"
    assert "until tomorrow 08:00, UTC" in words_of(engineer.get(address))
    shifts = [{"days": ["mon"], "from": "08:00", "to": "18:00"}]
    with project.client("admin") as client:
        body = {"time_zone": "Europe/Berlin", "shifts": shifts}
        client.put("/deployments/berlin-line-3/calendar", json=body).raise_for_status()
    assert "until tomorrow 08:00, Europe/Berlin" in words_of(engineer.get(address))


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"act": "explode"}, 404),
        ({"act": "comment", "comment": ""}, 404),
        ({"act": "silence", "comment": "x", "for": "9y"}, 422),
        ({"act": "silence", "comment": "x", "for": "morning", "zone": "Mars/Olympus"}, 422),
        ({"act": "silence", "comment": "x", "for": "morning", "zone": "../../etc/passwd"}, 422),
        ({"act": "silence", "comment": "x", "for": "custom", "hours": "0"}, 422),
        ({"act": "assign", "owner": "stranger@example.com"}, 422),
    ],
)
def test_what_cannot_be_done_is_refused(engineer, project, fields, status):  # noqa: F811
    assert engineer.submit(f"/incidents/{the_incident(project)}", project.slug, **fields).status_code == status


def test_who_may_only_look_sees_everything_and_acts_on_nothing(engineer, project, service):  # noqa: F811
    address = f"/incidents/{the_incident(project)}"
    with Browser(service, somebody(project, "viewer")) as viewer:
        assert "data-acknowledge" not in viewer.get(address).text
        assert viewer.submit(address, project.slug, act="acknowledge").status_code == 403
        assert "data-acknowledge" not in viewer.get("/alerts").text


@pytest.mark.parametrize("number", ["0", "999999999", "abc", "99999999999999999999", "%00", "²"])
def test_an_incident_that_does_not_exist_has_no_page(engineer, project, number):  # noqa: F811
    assert engineer.get(f"/incidents/{number}").status_code == 404
    assert engineer.submit(f"/incidents/{number}", project.slug, act="acknowledge").status_code == 404


def test_a_link_of_a_message_leads_through_sign_in_and_to_the_right_project(engineer, project, service):  # noqa: F811
    number = the_incident(project)
    other = make_project(service, project.database)
    who = {"email": f"both-{project.slug}@example.com", "password": PASSWORD}
    # The first of the two by name may be either: the link names none.
    for one in (project, other):
        put_person(project.database, who["email"], PASSWORD, one.slug, "engineer")
    with Browser(service) as browser:
        asked = browser.get(f"/incidents/{number}")
        assert asked.url.path == "/sign-in" and asked.url.params["to"] == f"/incidents/{number}"
        opened = browser.post("/sign-in", data={**who, "to": f"/incidents/{number}"})
        assert opened.url.path == f"/incidents/{number}"
        assert "berlin-line-3" in opened.text
        assert browser.get(f"/incidents/{number}?project={other.slug}").status_code == 404


@pytest.mark.parametrize("evidence", ODD, ids=lambda evidence: json.dumps(evidence)[:40])
def test_no_evidence_however_odd_breaks_a_page(engineer, project, evidence):  # noqa: F811
    number = the_incident(project)
    run(
        project,
        "UPDATE alerts SET evidence = CAST(:e AS jsonb) WHERE project_id = :p AND incident_id IS NOT NULL",
        e=json.dumps(evidence),
    )
    [[alert]] = project.rows("SELECT min(id) FROM alerts WHERE project_id = :p AND incident_id IS NOT NULL")
    for address in (f"/incidents/{number}", "/alerts", f"/alerts/{alert}", "/", "/deployments/berlin-line-3"):
        assert engineer.get(address).status_code == 200, address
    with project.client("read") as client:
        assert client.get(f"/incidents/{number}").status_code == 200
        assert client.get("/incidents").status_code == 200


def test_rows_of_another_release_break_no_page(engineer, project):  # noqa: F811
    """An unknown kind, a series of signs, content that is no object, an incident without alerts or changes."""
    number = the_incident(project)
    run(
        project,
        "UPDATE alerts SET kind = 'of_the_future', series = U&'signal:\\2603 <b>&\\202E', rule = '<i>rule</i>'"
        " WHERE project_id = :p AND id = (SELECT max(id) FROM alerts WHERE project_id = :p)",
    )
    run(project, "UPDATE incidents SET content = 'null', changed_at = '1970-01-01' WHERE project_id = :p")
    assert engineer.get(f"/incidents/{number}").status_code == 200
    assert "<i>rule" not in engineer.get(f"/incidents/{number}").text
    run(project, "UPDATE alerts SET incident_id = NULL WHERE project_id = :p")
    run(project, "UPDATE incidents SET changed_at = '2999-01-01', owner = '<b>gone</b>' WHERE project_id = :p")
    for address in (f"/incidents/{number}", "/alerts"):
        page = engineer.get(address)
        assert page.status_code == 200 and "<b>gone" not in page.text
    assert "no reason is left" in engineer.get("/alerts").text
    # A slug like no pattern: an unknown version of content is told by nothing.
    run(project, "UPDATE episodes SET robot_id = NULL WHERE project_id = :p")
    assert engineer.get(f"/incidents/{number}").status_code == 200


def test_the_alerted_signal_is_drawn(engineer, project):  # noqa: F811
    number = the_incident(project)
    run(
        project,
        "UPDATE alerts SET series = 'duration', kind = 'drift' WHERE project_id = :p"
        " AND id = (SELECT max(id) FROM alerts WHERE project_id = :p AND incident_id IS NOT NULL)",
    )
    run(project, "UPDATE episodes SET duration_s = 5 + random() WHERE project_id = :p AND domain = 'real'")
    [[alert]] = project.rows("SELECT max(id) FROM alerts WHERE project_id = :p AND incident_id IS NOT NULL")
    series = [one["series"] for one in engineer.get(f"/incidents/{number}?format=json").json()["page"]["series"]]
    assert "duration" in series
    page = engineer.get(f"/alerts/{alert}").text
    assert re.search(r'id="t-series">duration of', page) and "fig-series" in page


def test_a_runbook_is_linked(engineer, project):  # noqa: F811
    rule = {
        "name": "success-below-sim",
        "kind": "drop",
        "severity": "warning",
        "runbook_url": "https://wiki.example.com/drop?a=1",
    }
    with project.client("admin") as client:
        assert client.post("/rules", json=rule | {"runbook_url": "javascript:alert(1)"}).status_code == 422
        assert client.post("/rules", json=rule).json()["runbook_url"] == rule["runbook_url"]
    assert 'href="https://wiki.example.com/drop?a=1"' in engineer.get(f"/incidents/{the_incident(project)}").text
    run(project, "UPDATE rules SET runbook_url = 'javascript:alert(1)' WHERE project_id = :p")
    assert "javascript:" not in engineer.get(f"/incidents/{the_incident(project)}").text


def test_a_silence_asks_whether_it_was_normal(engineer, project):  # noqa: F811
    number = the_incident(project)
    address = f"/incidents/{number}"
    assert "Was this silence normal?" not in engineer.get(address).text
    run(
        project,
        "INSERT INTO alerts (project_id, deployment_id, incident_id, rule, kind, series, state, severity)"
        " SELECT :p, deployment_id, id, 'robot-silent', 'no_data', 'deployment', 'firing', 'warning'"
        " FROM incidents WHERE project_id = :p AND id = :i",
        i=number,
    )
    assert "Was this silence normal?" in engineer.get(address).text
    answered = engineer.submit(address, project.slug, act="normal", comment="cleaning")
    assert "normal: cleaning" in words_of(answered) and "Was this silence normal?" not in answered.text
