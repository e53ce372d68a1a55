import re
from html import unescape

import pytest
from people import Browser, somebody

from parts import episode, wait_until

ODD = '<b>ur5e/1</b> & "co" é'


@pytest.fixture
def engineer(service, project):
    with Browser(service, somebody(project, "engineer")) as browser:
        yield browser


@pytest.fixture
def heard(project):
    """A live episode of an odd robot and of another deployment."""
    with project.client() as client:
        records = [episode(robot=ODD), episode(robot="x", deployment="oslo")]
        client.post("/episodes/batch", json=records).raise_for_status()
    wait_until(lambda: project.value("SELECT count(*) FROM presence WHERE project_id = :p") == 2, what="hearing")


def test_a_project_without_robots_says_what_to_do(engineer):
    assert "No robot yet. Episodes name theirs in the field" in engineer.get("/settings/robots").text


def test_a_robot_is_parked_put_into_repair_retired_and_put_back(engineer, project, heard):
    for act, shown in (
        ("parked", "parked"),
        ("repair", "in repair"),
        ("retired", "retired"),
        ("working", "working"),
    ):
        page = engineer.submit(
            "/settings/robots", project.slug, robot=ODD, act=act, reason="gripper", lasting="4 hours"
        )
        assert page.status_code == 200
        robots = engineer.get("/settings/robots?format=json").json()["page"]["robots"]
        [robot] = [entry["robot"] for entry in robots if entry["name"] == ODD]
        assert robot["status"] == act
        assert (robot["until"] is not None) == (act in {"parked", "repair"})
        assert f"{shown}" in page.text
        assert unescape(re.search(r'id="t-robot">(.*?)</h2>', page.text)[1]) == ODD
    lines = [row[0] for row in project.rows("SELECT change FROM robot_history WHERE project_id = :p ORDER BY id")]
    assert lines == ["parked", "repair", "retired", "working"]


def test_a_robot_is_moved(engineer, project, heard):
    engineer.submit("/settings/robots", project.slug, robot=ODD, act="move", deployment="oslo")
    listed = engineer.get("/settings/robots?deployment=oslo&format=json").json()["page"]["robots"]
    assert {entry["name"] for entry in listed} == {ODD, "x"}
    wrong = engineer.submit("/settings/robots", project.slug, robot=ODD, act="move", deployment="atlantis")
    assert wrong.status_code == 422 and "There is no deployment of this name" in wrong.text


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"robot": "nobody", "act": "parked"}, 404), ({"act": "fly"}, 422), ({"lasting": "x"}, 422)],
)
def test_what_cannot_be_is_said(engineer, project, heard, fields, status):
    answer = engineer.submit("/settings/robots", project.slug, **{"robot": ODD, "act": "parked"} | fields)
    assert answer.status_code == status


def test_robots_are_found_by_deployment_and_status(engineer, project, heard):
    engineer.submit("/settings/robots", project.slug, robot="x", act="retired")
    found = engineer.get("/settings/robots?status=retired&format=json").json()["page"]["robots"]
    assert [entry["name"] for entry in found] == ["x"]
    assert "No robot fits." in engineer.get("/settings/robots?status=repair").text
    assert engineer.get("/settings/robots?deployment=%00&robot=%00&status=%00").status_code == 200


def test_a_silent_robot_leads_to_its_incident(engineer, project, heard):
    project.rows(
        "WITH i AS (INSERT INTO incidents (project_id, deployment_id, state, severity)"
        " SELECT project_id, deployment_id, 'firing', 'warning' FROM presence WHERE project_id = :p AND robot = 'x'"
        " RETURNING project_id, deployment_id, id)"
        " INSERT INTO alerts (project_id, deployment_id, incident_id, rule, kind, series, state, severity)"
        " SELECT project_id, deployment_id, id, 'robot-silent', 'no_data', 'robot:x', 'firing', 'warning' FROM i"
        " RETURNING 1"
    )
    incident = project.value("SELECT id FROM incidents WHERE project_id = :p")
    assert f'href="/incidents/{incident}">silent</a>' in engineer.get("/settings/robots").text
