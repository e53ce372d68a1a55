import pytest

from gapwatch.api.calendars import ALWAYS, WEEK
from parts import episode


@pytest.fixture
def deployed(project):
    with project.client() as client:
        client.post("/episodes", json=episode()).raise_for_status()
    return project


ADDRESS = "/deployments/berlin-line-3/calendar"


def test_a_calendar_is_set_read_back_replaced_and_deleted(deployed):
    with deployed.client("admin") as admin:
        assert admin.get(ADDRESS).json() == {"deployment": "berlin-line-3", "calendar": None}
        put = admin.put(ADDRESS, json=WEEK)
        assert put.status_code == 200, put.text
        assert put.json()["calendar"] == WEEK
        assert len(put.json()["next"]) == 5
        assert admin.get(ADDRESS).json()["calendar"] == WEEK
        always = admin.put(ADDRESS, json=ALWAYS).json()
        assert (always["calendar"]["time_zone"], always["is_working"]) == ("UTC", True)
        assert admin.delete(ADDRESS).status_code == 204
        assert admin.delete(ADDRESS).status_code == 204
        assert admin.get(ADDRESS).json()["calendar"] is None


@pytest.mark.parametrize(
    ("change", "pointer", "says"),
    [
        ({"time_zone": "Berlin"}, "/body/time_zone", "Europe/Berlin"),
        ({"shifts": []}, "/body/shifts", "at least one shift"),
        ({"shifts": [{"from": "8", "to": "18:00"}]}, "/body/shifts/0/from", "08:00"),
        ({"shifts": [{"from": "08:00", "to": "08:00"}]}, "/body/shifts/0", "00:00 to 24:00"),
        ({"shifts": [{"days": ["monday"], "from": "08:00", "to": "18:00"}]}, "/body/shifts/0/days/0", "'mon'"),
        ({"holidays": ["christmas"]}, "/body/holidays/0", "2026-12-25"),
    ],
)
def test_a_bad_calendar_is_refused_with_its_place_and_what_to_write(deployed, change, pointer, says):
    with deployed.client("admin") as admin:
        answer = admin.put(ADDRESS, json=WEEK | change)
    assert answer.status_code == 422
    [fault] = answer.json()["errors"]
    assert fault["pointer"] == pointer
    assert says in fault["message"]


def test_calendars_are_for_admins_and_of_known_deployments(deployed):
    with deployed.client("read") as reader, deployed.client("admin") as admin:
        assert reader.put(ADDRESS, json=WEEK).status_code == 403
        assert reader.get(ADDRESS).status_code == 200
        for method in ("GET", "PUT", "DELETE"):
            assert admin.request(method, "/deployments/atlantis/calendar", json=WEEK).status_code == 404
