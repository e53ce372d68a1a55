from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from gapwatch.watching.recurrence import Recurrence, next_times, window_at, windows_between

BERLIN = ZoneInfo("Europe/Berlin")
SUNDAY_NIGHT = {"days": ["sun"], "from": "22:00", "to": "02:00", "time_zone": "Europe/Berlin"}
FIRST = datetime(2026, 10, 1, tzinfo=UTC)


def berlin(*parts):
    return datetime(*parts, tzinfo=BERLIN)


def series(**other):
    return Recurrence.model_validate(SUNDAY_NIGHT | other)


def test_a_series_holds_in_its_hours_over_midnight_and_between_its_ends():
    one = series()
    window = window_at(berlin(2026, 11, 16, 1), FIRST, None, one)
    assert window == (berlin(2026, 11, 15, 22), berlin(2026, 11, 16, 2))
    assert window_at(berlin(2026, 11, 16, 2), FIRST, None, one) is None
    assert window_at(berlin(2026, 11, 15, 23), berlin(2026, 11, 15, 23, 30), None, one) is None
    cut = window_at(berlin(2026, 11, 16, 1), FIRST, berlin(2026, 11, 16, 1, 30), one)
    assert cut.end == berlin(2026, 11, 16, 1, 30)
    assert window_at(berlin(2026, 11, 16, 1), FIRST, berlin(2026, 11, 16, 1), one) is None


def test_the_next_times_stay_on_the_clock_of_the_wall_when_it_changes():
    times = next_times(berlin(2026, 10, 17, 12), FIRST, None, series(), 3)
    assert [(one.start, one.end) for one in times] == [
        (berlin(2026, 10, day, 22), berlin(2026, 10, day + 1, 2)) for day in (18, 25)
    ] + [(berlin(2026, 11, 1, 22), berlin(2026, 11, 2, 2))]
    assert [one.start.hour for one in times] == [20, 21, 21]


def test_the_next_times_end_with_the_series_and_begin_with_it():
    assert next_times(FIRST, FIRST, berlin(2026, 10, 12), series(), 5)[-1].end == berlin(2026, 10, 12)
    late = berlin(2027, 6, 1)
    assert next_times(FIRST, late, None, series(), 1)[0].start == berlin(2027, 6, 6, 22)


def test_what_holds_once_is_one_window():
    ends = FIRST + timedelta(hours=3)
    assert window_at(FIRST, FIRST, ends, None) == (FIRST, ends)
    assert window_at(ends, FIRST, ends, None) is None
    assert list(windows_between(FIRST - timedelta(days=1), FIRST, FIRST, ends, None)) == []


@pytest.mark.parametrize(
    "wrong", [{"days": ["someday"]}, {"from": "25:00"}, {"time_zone": "Mars"}, {"to": "22:00"}]
)
def test_a_series_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValidationError):
        series(**wrong)
