"""Recurring silences and maintenance on the page; tests/pages/test_settings.py has those that hold once."""

import pytest
from people import Browser, somebody


@pytest.fixture
def engineer(service, project):
    with Browser(service, somebody(project, "engineer")) as browser:
        yield browser


def fields(**changes):
    return {
        "kind": "maintenance",
        "deployment": "berlin*",
        "reason": "belts are cleaned",
        "lasting": "every week",
        "days": ["sun"],
        "from": "22:00",
        "to": "02:00",
        "time_zone": "Europe/Berlin",
    } | changes


def test_the_next_times_are_shown_before_anything_is_saved(engineer, project):
    page = engineer.submit("/settings/silences", project.slug, **fields(act="preview"))
    assert "The next times it would hold" in page.text
    assert page.text.split("The next times it would hold")[1].split("</ul>")[0].count("<li>") == 5
    assert 'value="belts are cleaned"' in page.text
    assert "Nothing is silenced." in page.text


def test_hours_that_are_given_count_whatever_else_is_chosen(engineer, project):
    page = engineer.submit("/settings/silences", project.slug, **fields(lasting="1 hour")).text
    assert "Sun 22:00–02:00" in page
    asked = engineer.submit("/settings/silences", project.slug, deployment="x", reason="y", act="preview")
    assert asked.status_code == 422 and "from: not a time of day" in asked.text


def test_a_series_is_saved_and_ended(engineer, project):
    page = engineer.submit("/settings/silences", project.slug, **fields()).text
    for text in ("Sun 22:00–02:00 (Europe/Berlin)", "maintenance", "ended by hand"):
        assert text in page, text
    number = page.split('name="silence" value="')[1].split('"')[0]
    assert "Nothing is silenced." in engineer.submit("/settings/silences/end", project.slug, silence=number).text


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"from": "10 pm"}, "from: not a time of day"),
        ({"days": []}, "days: name at least one day"),
        ({"time_zone": "Mars"}, "time zone: not a time zone"),
        ({"rule": "stage-gate"}, "Maintenance is of deployments"),
        ({"last_day": "2020-01-01"}, "The last day is over"),
        ({"last_day": "9999-12-31"}, "Write the last day like"),
        ({"last_day": "soon"}, "Write the last day like"),
        ({"kind": "party"}, "Say why, and for how long."),
    ],
)
def test_a_series_that_cannot_be_says_what_is_wrong(engineer, project, wrong, says):
    answer = engineer.submit("/settings/silences", project.slug, **fields(**wrong))
    assert answer.status_code == 422
    assert says in answer.text
