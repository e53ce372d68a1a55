from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gapwatch.watching.working_hours import DAYS, Shift, WorkCalendar

BERLIN = ZoneInfo("Europe/Berlin")
WEEK = ["mon", "tue", "wed", "thu", "fri"]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def calendar(*shifts, time_zone="Europe/Berlin", holidays=()):
    return WorkCalendar.model_validate(
        {"time_zone": time_zone, "shifts": list(shifts), "holidays": list(holidays)}
    )


def shift(start, end, *days):
    return {"days": list(days or DAYS), "from": start, "to": end}


def berlin(*parts, fold=0):
    return datetime(*parts, tzinfo=BERLIN, fold=fold)


OFFICE = calendar(shift("08:00", "18:00", *WEEK), holidays=["2026-12-25"])


@pytest.mark.parametrize(
    ("at", "working"),
    [
        (berlin(2026, 11, 16, 7, 59, 59), False),  # a Monday
        (berlin(2026, 11, 16, 8), True),
        (berlin(2026, 11, 16, 17, 59, 59), True),
        (berlin(2026, 11, 16, 18), False),
        (berlin(2026, 11, 21, 12), False),  # a Saturday
        (berlin(2026, 12, 25, 12), False),  # a holiday on a Friday
        (berlin(2026, 12, 24, 12), True),
        (datetime(2026, 11, 16, 7, 0, tzinfo=UTC), True),
        (datetime(2026, 7, 13, 7, 0, tzinfo=UTC), True),
        (datetime(2026, 7, 13, 6, 0, tzinfo=UTC), True),  # in summer 08:00 is an hour earlier
        (datetime(2026, 11, 16, 6, 0, tzinfo=UTC), False),
    ],
)
def test_hours_of_the_week_are_those_of_the_time_zone(at, working):
    assert OFFICE.is_working(at) is working


def test_a_shift_over_midnight_belongs_to_the_day_it_begins_on():
    nights = calendar(shift("22:00", "06:00", "fri"), holidays=["2026-11-27"])
    assert nights.is_working(berlin(2026, 11, 20, 23))
    assert nights.is_working(berlin(2026, 11, 21, 5, 59))
    assert not nights.is_working(berlin(2026, 11, 21, 6))
    assert not nights.is_working(berlin(2026, 11, 20, 5))
    # The holiday takes the whole shift with it, the night before a holiday stays.
    assert not nights.is_working(berlin(2026, 11, 28, 3))
    before = calendar(shift("22:00", "06:00"), holidays=["2026-12-25"])
    assert before.is_working(berlin(2026, 12, 25, 3)) and not before.is_working(berlin(2026, 12, 26, 3))


def test_the_last_sunday_of_march_has_an_hour_less_and_that_of_october_one_more():
    day = calendar(shift("00:00", "24:00"))
    for begins, hours in ((berlin(2027, 3, 28), 23), (berlin(2026, 10, 25), 25), (berlin(2026, 11, 1), 24)):
        ends = (begins + DAY).astimezone(UTC)
        assert day.working_seconds(begins, ends) == hours * 3600
    nights = calendar(shift("22:00", "06:00"))
    for begins, hours in ((berlin(2027, 3, 27, 22), 7), (berlin(2026, 10, 24, 22), 9)):
        ends = berlin(begins.year, begins.month, begins.day + 1, 6)
        assert nights.working_seconds(begins, ends) == hours * 3600


def test_a_time_that_the_clock_jumps_over_or_shows_twice():
    # 02:00 to 03:00 does not exist on 28 March 2027: both ends move, and the shift keeps its length.
    spring = calendar(shift("02:30", "10:00", "sun"), shift("22:00", "02:30", "sat"))
    assert not spring.is_working(datetime(2027, 3, 28, 1, 30, tzinfo=UTC) - 5 * HOUR)
    windows = list(spring.windows(berlin(2027, 3, 27, 21), berlin(2027, 3, 28, 12)))
    assert [(one.start, one.end) for one in windows] == [(berlin(2027, 3, 27, 22), berlin(2027, 3, 28, 10))]
    # 02:00 to 03:00 comes twice on 25 October 2026: it begins at the first and ends at the second.
    autumn = calendar(shift("02:15", "02:45", "sun"))
    for at in (berlin(2026, 10, 25, 2, 30), berlin(2026, 10, 25, 2, 30, fold=1)):
        assert autumn.is_working(at)
    assert autumn.working_seconds(berlin(2026, 10, 25), berlin(2026, 10, 26)) == 1.5 * 3600


def test_around_the_clock_is_one_window():
    always = calendar(shift("00:00", "24:00"), time_zone="America/New_York")
    now = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert always.is_working(now)
    assert always.working_until(now) > now + 300 * DAY
    assert always.working_seconds(now, now + 7 * DAY) == 7 * 86400
    assert len(always.next_windows(now, 5)) == 1


def test_overlapping_shifts_are_counted_once():
    doubled = calendar(shift("08:00", "14:00", *WEEK), shift("13:00", "18:00", *WEEK))
    monday = berlin(2026, 11, 16)
    assert doubled.working_seconds(monday, monday + DAY) == 10 * 3600
    assert doubled.working_until(berlin(2026, 11, 16, 9)) == berlin(2026, 11, 16, 18)
    assert doubled.working_until(berlin(2026, 11, 16, 7)) is None


def test_the_next_windows_begin_with_the_present_one_and_pass_over_holidays():
    found = OFFICE.next_windows(berlin(2026, 12, 24, 12), 3)
    assert [one.start for one in found] == [berlin(2026, 12, d, 8) for d in (24, 28, 29)]


def test_nothing_lies_between_a_time_and_an_earlier_one():
    assert OFFICE.working_seconds(berlin(2026, 11, 17), berlin(2026, 11, 16)) == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"time_zone": "Berlin"}, "write it like Europe/Berlin"),
        ({"time_zone": "../../etc/passwd"}, "write it like Europe/Berlin"),
        ({"time_zone": "Europe"}, "write it like Europe/Berlin"),
        ({"shifts": []}, "give at least one shift"),
        ({"shifts": [shift("8:00", "18:00")]}, "write it like 08:00"),
        ({"shifts": [shift("08:00", "24:30")]}, "write it like 08:00"),
        ({"shifts": [shift("08:60", "18:00")]}, "write it like 08:00"),
        ({"shifts": [shift("٠٨:٠٠", "18:00")]}, "write it like 08:00"),
        ({"shifts": [shift("08:00", "08:00")]}, "a whole day is 00:00 to 24:00"),
        ({"shifts": [shift("24:00", "08:00")]}, "cannot begin at 24:00"),
        ({"shifts": [{"days": ["monday"], "from": "08:00", "to": "18:00"}]}, "'mon', 'tue'"),
        ({"shifts": [{"days": [], "from": "08:00", "to": "18:00"}]}, "name at least one day"),
        ({"shifts": [{"from": "08:00"}]}, "Field required"),
        ({"holidays": ["25.12.2026"]}, "write it like 2026-12-25|valid date"),
        ({"holidays": [1766620800]}, "write it like 2026-12-25"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_a_calendar_that_cannot_be_says_what_is_wrong(wrong, says):
    given_fields = {"time_zone": "Europe/Berlin", "shifts": [shift("08:00", "18:00")]} | wrong
    with pytest.raises(ValidationError, match=says):
        WorkCalendar.model_validate(given_fields)


def test_days_and_holidays_are_kept_once_and_in_order_and_come_back_as_they_were_written():
    one = calendar(
        shift("08:00", "18:00", "fri", "mon", "fri"), holidays=["2026-12-26", "2026-12-25", "2026-12-26"]
    )
    assert one.shifts[0].days == ("mon", "fri")
    assert one.holidays == (date(2026, 12, 25), date(2026, 12, 26))
    assert WorkCalendar.model_validate(one.model_dump(mode="json", by_alias=True)) == one
    assert Shift(start="08:00", end="18:00").days == DAYS


@settings(max_examples=60, deadline=None)
@given(
    begins_after=st.integers(0, 16 * 24 * 60),
    lasting=st.integers(1, 20 * 24 * 60),
    cut=st.floats(0, 1),
    clock=st.sampled_from([("08:00", "18:00"), ("22:00", "06:00"), ("02:30", "02:15"), ("00:00", "24:00")]),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
)
def test_working_time_adds_up_and_agrees_with_a_look_at_every_moment(begins_after, lasting, cut, clock, zone):
    weekly = calendar(shift(*clock, *WEEK), time_zone=zone)
    begin = datetime(2026, 10, 20, tzinfo=UTC) + timedelta(minutes=begins_after)
    end, middle = begin + timedelta(minutes=lasting), begin + cut * timedelta(minutes=lasting)
    whole = weekly.working_seconds(begin, end)
    assert whole == pytest.approx(weekly.working_seconds(begin, middle) + weekly.working_seconds(middle, end))
    assert 0 <= whole <= (end - begin).total_seconds()
    for window in weekly.windows(begin, end):
        assert weekly.is_working(max(window.start, begin))
        assert window.end >= end or not weekly.is_working(window.end)
