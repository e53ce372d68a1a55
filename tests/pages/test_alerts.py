"""The inbox of incidents, and one alert of them."""

import re

import pytest
from people import Browser, somebody

from parts import episode, minutes_ago, wait_until

SIM = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}


@pytest.fixture
def engineer(service, project):
    """Somebody at a project whose deployment loses half; an alert is open."""
    records = [episode(**SIM, outcome="failure" if n % 25 == 0 else "success") for n in range(100)]
    records += [
        episode(started_at=minutes_ago(240 - 2 * n), outcome="failure" if n % 2 else "success") for n in range(120)
    ]
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    wait_until(
        lambda: project.rows("SELECT 1 FROM incidents WHERE project_id = :p AND state = 'firing'"),
        30,
        what="an alert",
    )
    with Browser(service, somebody(project, "engineer")) as browser:
        yield browser


def first_alert(browser: Browser) -> str:
    """The address of the first reason of the first incident."""
    incident = re.search(r'<a href="(/incidents/\d+)" data-open', browser.get("/alerts").text)[1]
    return re.search(r'<li class="failrow">\s*<a href="(/alerts/\d+)"', browser.get(incident).text)[1]


def test_the_inbox_has_one_row_an_incident_and_every_page_counts_those_without_an_owner(engineer, project):
    page = engineer.get("/alerts").text
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "▼ 1 incident has no owner." in words
    assert page.count("data-row") == 1
    assert re.search(r"\d\d % now \(n 100, [\d.]+ to [\d.]+\) , 96 % in sim \(n 100, [\d.]+ to [\d.]+\)", words)
    assert re.search(r"\d reasons?: success", words)
    assert '<span class="count">1<' in engineer.get("/episodes").text
    assert "1 deployment needs attention." in engineer.get("/").text
    assert "/incidents/" in engineer.get("/").text
    assert "/incidents/" in engineer.get("/deployments/berlin-line-3").text
    assert engineer.get("/alerts?state=resolved").text.count("data-row") == 0
    assert engineer.get("/alerts?owner=nobody").text.count("data-row") == 1
    assert engineer.get("/alerts?owner=me").text.count("data-row") == 0
    assert engineer.get("/alerts?state=nonsense").status_code == 422
    address = re.search(r'action="(/incidents/\d+)"', page)[1]
    answer = engineer.submit(address, project.slug, act="acknowledge", back="/alerts?owner=nobody")
    assert str(answer.url).endswith(f"/alerts?owner=nobody#incident-{address.rpartition('/')[2]}")
    assert '<span class="count">' not in answer.text
    assert engineer.get("/alerts?owner=me").text.count("data-row") == 1


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example/alerts", "/alerts/../sign-out", ""])
def test_a_form_leads_back_to_pages_of_ours_only(engineer, project, back):
    address = re.search(r'action="(/incidents/\d+)"', engineer.get("/alerts").text)[1]
    answer = engineer.submit(address, project.slug, act="comment", comment="x", back=back)
    assert str(answer.url).endswith(address)


def test_the_most_severe_comes_first_then_what_loses_most(engineer, project):
    with project.database.transaction() as connection:
        from sqlalchemy import text

        connection.execute(
            text("""
            INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at)
            SELECT project_id, name, policy_id, task_id, now() FROM deployments,
                   unnest(ARRAY['quiet', 'critical', 'info']) AS name
            WHERE project_id = :p AND slug = 'berlin-line-3'
            """),
            {"p": project.id},
        )
        connection.execute(
            text("""
            INSERT INTO incidents (project_id, deployment_id, state, severity)
            SELECT project_id, id, 'firing', CASE slug WHEN 'quiet' THEN 'warning' ELSE slug END FROM deployments
            WHERE project_id = :p AND slug <> 'berlin-line-3'
            """),
            {"p": project.id},
        )
    listed = engineer.get("/alerts?format=json").json()["page"]["entries"]
    assert [one["deployment"] for one in listed] == ["critical", "berlin-line-3", "quiet", "info"]


def test_one_alert_tells_everything_and_its_twin_is_the_apis(engineer, project):
    address = first_alert(engineer)
    page = engineer.get(address).text
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert re.search(
        r"Real success is \d\d\.\d % \(n \d+, [\d.]+ to [\d.]+\) against 96\.0 % in simulation", words
    )
    assert "Nobody was told." in page
    assert re.search(r'Part of</b><a href="/incidents/\d+"', page)
    twin = engineer.get(f"{address}?format=json").json()["page"]["alert"]
    with project.client("read") as client:
        api = client.get(address).json()
    assert {name: twin[name] for name in ("id", "rule", "state", "evidence", "series")} == {
        name: api[name] for name in ("id", "rule", "state", "evidence", "series")
    }


def test_it_is_acknowledged_commented_on_silenced_and_resolved_with_a_fix(engineer, project):
    address = first_alert(engineer)
    page = engineer.submit(address, project.slug, act="acknowledge", comment="on it")
    assert 'data-s="acknowledged"' in page.text
    assert "on it" in page.text
    assert "is on it" in engineer.get("/deployments/berlin-line-3").text
    assert "a remark" in engineer.submit(address, project.slug, act="comment", comment="a remark").text
    engineer.submit(address, project.slug, act="silence", comment="known", **{"for": "4h"})
    assert "known" in engineer.get("/settings/silences").text
    resolved = engineer.submit(address, project.slug, act="resolve", comment="new pads", mitigation="yes")
    assert 'data-s="resolved"' in resolved.text
    events = engineer.get("/deployments/berlin-line-3?format=json").json()["page"]["events"]
    assert [event["title"] for event in events] == ["new pads"]


@pytest.mark.parametrize(
    "fields",
    [{"act": "explode"}, {"act": "comment", "comment": ""}, {"act": "silence", "comment": "x", "for": "9y"}],
)
def test_what_cannot_be_done_is_refused(engineer, project, fields):
    assert engineer.submit(first_alert(engineer), project.slug, **fields).status_code == 404


@pytest.mark.parametrize("number", ["0", "999999999", "abc", "99999999999999999999", "%00"])
def test_an_alert_that_does_not_exist_has_no_page(engineer, number):
    assert engineer.get(f"/alerts/{number}").status_code == 404
