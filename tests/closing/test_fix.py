import pytest
from closing.weeks import GRASPS


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"kind": "prayer"}, "/body/fix/kind"),
        ({"category": "magic"}, "/body/fix/category"),
        ({"category": None}, "/body/fix/category"),
        ({"robot_hours": -1}, "/body/fix/robot_hours"),
        ({"demonstrations": 1.5}, "/body/fix/demonstrations"),
        ({"expected_points": 101}, "/body/fix/expected_points"),
        ({"robots": "r-1"}, "/body/fix/robots"),
        ({"from_version": ""}, "/body/fix/from_version"),
        ({"expected": 15}, "/body/fix/expected"),
    ],
)
def test_a_bad_fix_is_refused_with_its_place(project, change, pointer):
    with project.client("ingest") as client:
        answer = client.post("/events", json={"kind": "mitigation", "title": "x", "fix": GRASPS | change})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_only_a_mitigation_has_a_fix_and_it_is_listed_with_its_event(project):
    with project.client("ingest") as client:
        refused = client.post("/events", json={"kind": "release", "title": "x", "fix": GRASPS})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/body/fix"
        body = {"kind": "mitigation", "title": "x", "fix": GRASPS | {"conditions": {"clutter": 3.0, "wet": True}}}
        assert client.post("/events", json=body).status_code == 201
    with project.client("read") as client:
        [event] = client.get("/events").json()["events"]
    assert event["fix"] == GRASPS | {"conditions": {"clutter": "3", "wet": "true"}}
