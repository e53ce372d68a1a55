import pytest
from people import Browser, somebody

from parts import episode


@pytest.fixture
def engineer(service, project):
    with project.client() as client:
        client.post("/episodes", json=episode()).raise_for_status()
    with Browser(service, somebody(project, "engineer")) as browser:
        yield browser


def fields(**changes):
    return {
        "deployment": "berlin-line-3",
        "act": "save",
        "time_zone": "Europe/Berlin",
        "days_0": ["mon", "tue", "wed", "thu", "fri"],
        "from_0": "06:00",
        "to_0": "22:00",
        "days_1": ["sat"],
        "from_1": "22:00",
        "to_1": "06:00",
        "from_2": "",
        "to_2": "",
        "holidays": "2026-12-25\n2026-12-26",
    } | changes


def test_a_calendar_is_saved_shown_and_removed(engineer, project):
    assert "learned from its episodes" in engineer.get("/settings/calendars").text
    page = engineer.submit("/settings/calendars", project.slug, **fields())
    assert page.status_code == 200
    for text in ("Mon–Fri 06:00–22:00", "Sat 22:00–06:00", "without 2 holidays", "Next working times"):
        assert text in page.text, text
    with project.client("read") as reader:
        calendar = reader.get("/deployments/berlin-line-3/calendar").json()["calendar"]
    assert calendar["holidays"] == ["2026-12-25", "2026-12-26"]
    assert calendar["shifts"][1] == {"days": ["sat"], "from": "22:00", "to": "06:00"}
    gone = engineer.submit("/settings/calendars", project.slug, **fields(act="remove"))
    assert "learned from its episodes" in gone.text


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"time_zone": "Berlin"}, "time zone: not a time zone; write it like Europe/Berlin."),
        ({"from_0": "8 am"}, "shifts 1 from: not a time of day"),
        ({"days_0": []}, "shifts 1 days: name at least one day"),
        ({"from_0": "", "to_0": "", "from_1": "", "to_1": ""}, "shifts: give at least one shift"),
        ({"holidays": "christmas"}, "holidays 1: not a date; write it like 2026-12-25."),
    ],
)
def test_a_calendar_that_cannot_be_says_what_is_wrong_and_keeps_what_was_typed(engineer, project, wrong, says):
    answer = engineer.submit("/settings/calendars", project.slug, **fields(**wrong))
    assert answer.status_code == 422
    assert says in answer.text
    if wrong.get("from_0") == "8 am":
        assert 'value="8 am"' in answer.text


def test_an_unknown_deployment_is_not_found(engineer, project):
    assert engineer.submit("/settings/calendars", project.slug, deployment="atlantis").status_code == 404
    assert engineer.get("/settings/calendars?deployment=%00").status_code == 200
