"""Silences and maintenance windows that come again every week; tests/alerts/test_api.py has those that hold once."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from gapwatch.api.alert_bodies import MAINTENANCE, SILENCE


def test_a_maintenance_window_comes_again_and_says_when(project):
    with project.client("admin") as admin:
        made = admin.post("/silences", json=MAINTENANCE)
        assert made.status_code == 201, made.text
        answer = made.json()
        assert (answer["kind"], answer["ends_at"], len(answer["next"])) == ("maintenance", None, 5)
        ends = [datetime.fromisoformat(one["end"]) for one in answer["next"]]
        # A week apart by the clock on the wall: an hour more or less where the clock changes.
        assert all(abs(b - a - timedelta(days=7)) <= timedelta(hours=1) for a, b in pairwise(ends))
        [listed] = admin.get("/silences").json()["silences"]
        assert listed["recurrence"] == MAINTENANCE["recurrence"]
        assert listed["kind"] == "maintenance"
        assert admin.delete(f"/silences/{answer['id']}").status_code == 204
        assert admin.get("/silences").json()["silences"] == []
        [over] = admin.get("/silences", params={"all": True}).json()["silences"]
        assert over["ends_at"] is not None


def test_a_silence_that_holds_once_is_as_it_was(project):
    with project.client("admin") as admin:
        made = admin.post("/silences", json=SILENCE).json()
        assert made["kind"] == "silence" and "next" not in made
        [listed] = admin.get("/silences").json()["silences"]
        assert "recurrence" not in listed


def test_a_series_ends_where_it_is_told_to(project):
    ends = datetime.now(UTC) + timedelta(days=15)
    with project.client("admin") as admin:
        answer = admin.post("/silences", json=MAINTENANCE | {"ends_at": ends.isoformat()}).json()
    assert 2 <= len(answer["next"]) <= 3
    assert all(datetime.fromisoformat(one["end"]) <= ends for one in answer["next"])


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"kind": "party"}, "/body/kind"),
        ({"minutes": 60}, "/body/minutes"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "/body/ends_at"),
        ({"match": {"rule": ["stage-gate"]}}, "/body/match"),
        ({"match": {"severity": ["info"]}}, "/body/match"),
        ({"recurrence": {"from": "22:00", "to": "22:00"}}, "/body/recurrence"),
        ({"recurrence": {"from": "22:00", "to": "02:00", "time_zone": "Mars"}}, "/body/recurrence/time_zone"),
        ({"recurrence": {"days": ["sunday"], "from": "22:00", "to": "02:00"}}, "/body/recurrence/days/0"),
    ],
)
def test_a_bad_series_is_refused_with_its_place(project, change, pointer):
    with project.client("admin") as admin:
        answer = admin.post("/silences", json=MAINTENANCE | change)
    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
