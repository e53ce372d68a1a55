from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from parts import episode, make_project, wait_until

ODD = ["ur5e/left arm", "a/status", "Łódź 50% #1?", "..", "@robot:1", "<b>&\"'", "é"]


def later(**lasting):
    return (datetime.now(UTC) + timedelta(**lasting)).isoformat()


def send(project, *robots, **fields):
    with project.client() as client:
        records = [episode(robot=robot, **fields) for robot in robots]
        client.post("/episodes/batch", json=records).raise_for_status()


def heard(project, *robots):
    """Sends a live episode of each, and waits until the watch has heard them."""
    send(project, *robots)
    wait_until(
        lambda: project.value("SELECT count(*) FROM presence WHERE project_id = :p") == len(robots), what="hearing"
    )


def path(robot):
    return f"/robots/{quote(robot, safe='')}"


def test_robots_are_listed_with_what_is_known_of_them(project):
    heard(project, "ur5e-1", "ur5e-2")
    with project.client("read") as reader:
        answer = reader.get("/robots").raise_for_status().json()
        assert [robot["robot"] for robot in answer["robots"]] == ["ur5e-1", "ur5e-2"]
        assert answer["next"] is None
        [first, _] = answer["robots"]
        assert (first["deployment"], first["status"], first["alert_id"]) == ("berlin-line-3", "working", None)
        assert first["heard_at"].endswith("Z")
        page = reader.get("/robots", params={"limit": 1}).json()
        assert page["next"] == "ur5e-1"
        rest = reader.get("/robots", params={"limit": 1, "after": page["next"]}).json()
        assert ([robot["robot"] for robot in rest["robots"]], rest["next"]) == (["ur5e-2"], None)
        assert reader.get("/robots", params={"deployment": "oslo"}).json()["robots"] == []
        assert reader.get("/robots", params={"status": "retired"}).json()["robots"] == []
        assert reader.get("/robots", params={"colour": "red"}).status_code == 422


def test_a_status_is_set_read_back_and_taken_back(project):
    heard(project, "ur5e-1")
    until = later(hours=3)
    with project.client("admin") as admin:
        put = admin.put("/robots/ur5e-1/status", json={"status": "repair", "until": until, "reason": "gripper"})
        assert put.status_code == 200
        said = put.json()
        assert (said["status"], said["reason"], said["applied"]) == ("repair", "gripper", True)
        assert datetime.fromisoformat(said["until"]) == datetime.fromisoformat(until)
        assert admin.get("/robots/ur5e-1").json()["status"] == "repair"
        admin.put("/robots/ur5e-1/status", json={"status": "working"}).raise_for_status()
        found = admin.get("/robots/ur5e-1").json()
        assert (found["status"], found["until"]) == ("working", None)
        assert [line["change"] for line in found["history"]] == ["working", "repair"]
    actions = project.rows("SELECT action FROM audit_entries WHERE project_id = :p AND subject = 'robot/ur5e-1'")
    assert actions == [("robot.repair",), ("robot.working",)]


@pytest.mark.parametrize("robot", ODD)
def test_names_of_any_letters_work_in_the_address_and_in_the_body(project, robot):
    send(project, robot)
    with project.client("admin") as admin:
        if robot != "..":  # which programs take for a way up
            put = admin.put(f"{path(robot)}/status", json={"status": "parked"})
            assert (put.status_code, put.json()["robot"]) == (200, robot)
            assert admin.get(path(robot)).json()["status"] == "parked"
        put = admin.put("/robots/status", json={"robot": robot, "status": "retired"})
        assert (put.status_code, put.json()["status"]) == (200, "retired")


def test_a_name_is_the_same_however_its_letters_are_composed(project):
    send(project, "é")
    with project.client("admin") as admin:
        put = admin.put("/robots/status", json={"robot": "e\u0301", "status": "parked"})
        assert (put.status_code, put.json()["robot"]) == (200, "é")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/body/status"),
        ({"status": "asleep"}, "/body/status"),
        ({"status": "parked", "until": "2020-01-01T00:00:00Z"}, "/body/until"),
        ({"status": "parked", "until": "tomorrow"}, "/body/until"),
        ({"status": "parked", "until": "12h"}, "/body/until"),
        ({"status": "working", "until": "2099-01-01T00:00:00Z"}, "/body/until"),
        ({"status": "retired", "until": "2099-01-01T00:00:00Z"}, "/body/until"),
        ({"status": "parked", "reason": ""}, "/body/reason"),
        ({"status": "parked", "age_s": -1}, "/body/age_s"),
        ({"status": "parked", "colour": "red"}, "/body/colour"),
    ],
)
def test_a_bad_status_is_refused_with_its_place(project, body, pointer):
    send(project, "ur5e-1")
    with project.client("admin") as admin:
        answer = admin.put("/robots/ur5e-1/status", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_what_is_not_there_is_not_found(project, service, service_database):
    stranger = make_project(service, service_database)
    send(stranger, "ur5e-1")
    with project.client("admin") as admin:
        for method, address, body in (
            ("PUT", "/robots/ur5e-1/status", {"status": "parked"}),
            ("PUT", "/robots/%00/status", {"status": "parked"}),
            ("PUT", "/robots/status", {"robot": "ur5e-1", "status": "parked"}),
            ("PUT", "/robots/status", {"deployment": "berlin-line-3", "status": "parked"}),
            ("POST", "/robots/ur5e-1/move", {"deployment": "oslo"}),
            ("GET", "/robots/ur5e-1", None),
        ):
            answer = admin.request(method, address, json=body)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), (
                address
            )
        assert admin.put("/robots/status", json={"status": "parked"}).status_code == 422


def test_a_robot_says_of_itself_that_it_is_parked_and_nothing_more(project):
    heard(project, "ur5e-1")
    with project.client("ingest") as robot, project.client("read") as reader, project.client("admin") as admin:
        said = robot.put("/robots/status", json={"robot": "ur5e-1", "status": "parked"}).raise_for_status().json()
        assert (said["status"], said["applied"]) == ("parked", True)
        for status in ("repair", "retired"):
            assert robot.put("/robots/ur5e-1/status", json={"status": status}).status_code == 403
        assert robot.post("/robots/ur5e-1/move", json={"deployment": "berlin-line-3"}).status_code == 403
        assert robot.get("/robots").status_code == 403
        assert reader.put("/robots/ur5e-1/status", json={"status": "parked"}).status_code == 403
        admin.put("/robots/ur5e-1/status", json={"status": "repair"}).raise_for_status()
        said = robot.put("/robots/ur5e-1/status", json={"status": "working"}).json()
        assert (said["status"], said["applied"], said["why"]) == ("repair", False, "set by people")
        admin.put("/robots/ur5e-1/status", json={"status": "working"}).raise_for_status()
        late = {"robot": "ur5e-1", "status": "parked", "age_s": 3600}
        said = robot.put("/robots/status", json=late).json()
        assert (said["status"], said["applied"], said["why"]) == ("working", False, "older")


def test_a_parked_robot_that_sends_a_live_episode_works_again(project):
    heard(project, "ur5e-1")
    with project.client("ingest") as robot, project.client("read") as reader:
        robot.put("/robots/ur5e-1/status", json={"status": "parked"}).raise_for_status()
        assert reader.get("/robots/ur5e-1").json()["status"] == "parked"
        send(project, "ur5e-1")
        wait_until(lambda: reader.get("/robots/ur5e-1").json()["status"] == "working", what="the robot at work")


def test_robots_without_a_name_rest_with_their_deployment(project):
    heard(project, None)
    with project.client("ingest") as robot:
        said = robot.put("/robots/status", json={"deployment": "berlin-line-3", "status": "parked"})
        assert (said.status_code, said.json()["status"]) == (200, "parked")
        assert said.json()["deployment"] == "berlin-line-3"


def test_a_robot_is_moved_to_another_deployment(project):
    heard(project, "ur5e-1")
    send(project, "ur5e-2", deployment="oslo")
    with project.client("admin") as admin:
        moved = admin.post("/robots/ur5e-1/move", json={"deployment": "oslo", "reason": "fair"})
        assert (moved.status_code, moved.json()["deployment"]) == (200, "oslo")
        assert admin.get("/robots/ur5e-1").json()["history"][0]["reason"] == "from berlin-line-3 to oslo: fair"
        moved = admin.post("/robots/move", json={"robot": "ur5e-1", "deployment": "berlin-line-3"})
        assert moved.json()["deployment"] == "berlin-line-3"
        nowhere = admin.post("/robots/ur5e-1/move", json={"deployment": "atlantis"})
        assert (nowhere.status_code, nowhere.json()["errors"][0]["pointer"]) == (422, "/body/deployment")


def test_a_robot_that_was_never_heard_live_says_so_when_it_is_moved(project):
    send(project, "ur5e-1", started_at="2024-01-01T00:00:00Z")
    with project.client("admin") as admin:
        answer = admin.post("/robots/ur5e-1/move", json={"deployment": "berlin-line-3"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (409, "never-heard")
