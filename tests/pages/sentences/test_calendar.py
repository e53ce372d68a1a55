import pytest

from gapwatch.pages.sentences.calendar import days_in_words, hours_in_words, recurrence_in_words
from gapwatch.watching.recurrence import Recurrence
from gapwatch.watching.working_hours import DAYS, WorkCalendar


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (DAYS, "every day"),
        (["mon", "tue", "wed", "thu", "fri"], "Mon–Fri"),
        (["sat", "sun"], "Sat, Sun"),
        (["sun", "mon"], "Mon, Sun"),
        (["mon", "wed", "thu", "fri"], "Mon, Wed–Fri"),
        (["tue"], "Tue"),
    ],
)
def test_days_that_follow_one_another_are_a_span(days, words):
    assert days_in_words(days) == words


def test_hours_in_words():
    shifts = [{"from": "00:00", "to": "24:00"}, {"days": ["sat"], "from": "22:00", "to": "06:00"}]
    calendar = WorkCalendar.model_validate({"shifts": shifts, "holidays": ["2026-12-25"]})
    assert hours_in_words(calendar) == ["every day, all day", "Sat 22:00–06:00", "without 1 holiday", "UTC"]
    series = Recurrence.model_validate(
        {"days": ["sun"], "from": "22:00", "to": "02:00", "time_zone": "Europe/Oslo"}
    )
    assert recurrence_in_words(series) == "Sun 22:00–02:00 (Europe/Oslo)"
