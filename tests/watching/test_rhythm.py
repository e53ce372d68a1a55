from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.watching.rhythm import (
    DAY,
    HOUR,
    HOURS_OF_WEEK,
    WEEK,
    ExcusedSpan,
    LearnedHours,
    Rhythm,
    longest_by_weight,
)

MONDAY = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
MINUTE = 60.0


def work(days, spans=((8, 12), (12.75, 18)), every=5 * MINUTE, shift=0.0):
    """Times of a sender that works in these hours of the given days, counted from the Monday."""
    times = []
    for day in days:
        for opening, closing in spans:
            at = MONDAY + day * DAY + opening * HOUR + shift
            while at < MONDAY + day * DAY + closing * HOUR + shift:
                times.append(at)
                at += every
    return times


def weekdays(weeks, first=0):
    return [7 * week + day for week in range(first, first + weeks) for day in range(5)]


def learned(times, **more):
    rhythm = Rhythm.begin(times[0])
    for at in times[1:]:
        rhythm.learn(at, **more)
    return rhythm


def at(day, hour):
    return MONDAY + day * DAY + hour * HOUR


def test_hours_of_the_week_are_those_it_worked_in():
    expected = learned([*work(weekdays(3)), at(21, 8)]).expected_hours()
    index = int(MONDAY // HOUR) % HOURS_OF_WEEK
    week = [expected[(index + hour) % HOURS_OF_WEEK] for hour in range(HOURS_OF_WEEK)]
    assert [hour for hour in range(24) if week[hour]] == list(range(8, 18))
    assert not any(week[5 * 24 :])


def test_in_the_first_week_an_hour_is_like_that_of_the_days_before():
    rhythm = learned([*work([0, 1]), at(2, 8)])
    hours = LearnedHours(rhythm.expected_hours())
    assert hours.seconds(at(2, 0), at(3, 0)) == 10 * HOUR
    assert not rhythm.knows_a_week(at(2, 8))


def test_one_free_day_leaves_an_hour_expected_and_a_closed_month_too():
    rhythm = learned([*work(weekdays(3)), *work([22, 23, 24, 25])])
    assert sum(rhythm.expected_hours()) == 50
    closed = learned([*work(weekdays(3)), *work(weekdays(1, first=8))])
    assert sum(closed.expected_hours()) == 50


def test_new_hours_are_expected_after_some_weeks():
    longer = [*work(weekdays(4)), *work(weekdays(4, first=4), spans=((8, 22),))]
    assert sum(learned([*longer, at(56, 8)]).expected_hours()) == 5 * 14


def test_the_usual_gap_is_that_of_the_time_of_day():
    times = work(weekdays(2), spans=((8, 12),), every=4 * MINUTE)
    times += work(weekdays(2), spans=((12, 20),), every=12 * MINUTE)
    rhythm = learned(sorted(times))
    assert 3.5 * MINUTE < rhythm.usual_gap_s(at(14, 9)) < 4.5 * MINUTE
    assert 11 * MINUTE < rhythm.usual_gap_s(at(14, 17)) < 13 * MINUTE


def test_batches_are_heard_once():
    times = [moment + n for moment in work(weekdays(2), spans=((8, 18),), every=HOUR) for n in range(50)]
    assert 50 * MINUTE < learned(times).usual_gap_s(at(14, 9)) < 70 * MINUTE


@pytest.mark.parametrize(
    ("day", "hour", "known_s"),
    [
        (14, 18, 14 * HOUR),
        (14, 12, 0.8 * HOUR),
        (18, 18, 62 * HOUR),
        (14, 10.5, None),
        (14, 15, None),
    ],
)
def test_a_gap_is_known_by_the_time_of_the_week_it_began_at(day, hour, known_s):
    rhythm = learned(work(weekdays(2)))
    found = rhythm.precedent_s(at(day, hour))
    assert found is None if known_s is None else found == pytest.approx(known_s, rel=0.1)


def test_a_short_friday_explains_no_other_day():
    short = [day for day in weekdays(3) if day % 7 == 4]
    times = sorted([*work([day for day in weekdays(3) if day % 7 != 4]), *work(short, spans=((8, 14),))])
    rhythm = learned(times)
    assert rhythm.precedent_s(at(25, 14)) > 60 * HOUR
    assert rhythm.precedent_s(at(23, 14)) is None


def test_an_hour_off_in_the_morning_is_an_hour_off_all_day():
    rhythm = learned([*work(weekdays(4)), at(28, 7)])
    assert rhythm.precedent_s(at(28, 17)) == pytest.approx(14 * HOUR, rel=0.1)
    assert learned([*work(weekdays(4)), at(28, 8)]).precedent_s(at(28, 17)) is None


def test_downtime_faults_and_flushed_spools_teach_nothing():
    times = work(weekdays(2))
    plain = learned(times)
    gap = at(14, 8) + 3 * HOUR
    for more in (
        {"excused": [ExcusedSpan(at(14, 9), at(14, 10))]},
        {"ended": None},
        {"lag_s": 2.8 * HOUR},
    ):
        rhythm = learned([*times, at(14, 8)])
        before = len(rhythm.gaps)
        rhythm.learn(gap, **more)
        assert len(rhythm.gaps) == before
        assert rhythm.expected_hours() == plain.expected_hours()
    rhythm = learned([*times, at(14, 8)])
    rhythm.learn(gap)
    assert rhythm.gaps[-1].length_s == 3 * HOUR


def test_a_constant_lag_is_a_clock_and_no_spool():
    rhythm = Rhythm.begin(at(0, 8), 7200)
    for moment in work(weekdays(2))[1:]:
        rhythm.learn(moment, 7200)
    assert rhythm.usual_gap_s(at(14, 9)) > 0


def test_alerted_gaps_teach_less_and_answers_more():
    times = [*work(weekdays(2)), at(14, 8), at(14, 10)]
    for ended, is_known in (("alerted", False), ("quiet", True), ("normal", True)):
        rhythm = learned(times)
        rhythm.learn(at(14, 12), ended=ended)
        assert (rhythm.precedent_s(at(21, 10)) is not None) is is_known, ended
    rhythm = learned(times)
    rhythm.learn(at(14, 12), ended="alerted")
    rhythm.teach_normal(at(14, 10), at(14, 12))
    assert rhythm.precedent_s(at(21, 10)) == 2 * HOUR
    rhythm.forget_gap(at(14, 10))
    assert rhythm.precedent_s(at(21, 10)) is None


def test_a_pause_at_any_time_is_known_when_it_came_twice():
    times = [moment for moment in work(weekdays(3)) if not at(8, 9) < moment < at(8, 9.75)]
    assert learned(times).idle_s == 0.0
    times = [moment for moment in times if not at(10, 15) < moment < at(10, 15.75)]
    assert 0.7 * HOUR < learned(times).idle_s < 0.9 * HOUR


def test_what_is_stored_is_small_and_read_back_the_same():
    import json

    rhythm = learned(work(weekdays(12)))
    stored = json.dumps(rhythm.to_json())
    assert len(stored) < 8000
    again = Rhythm.from_json(json.loads(stored))
    assert again.to_json() == rhythm.to_json()
    assert len(rhythm.gaps) <= 96


def test_hours_have_the_interface_of_a_calendar():
    hours = LearnedHours(learned([*work(weekdays(2)), at(14, 8)]).expected_hours())
    start = datetime.fromtimestamp(at(14, 0), UTC)
    assert hours.is_working(start + timedelta(hours=9))
    assert not hours.is_working(start)
    assert hours.working_seconds(start, start + timedelta(days=21)) == 3 * 50 * HOUR
    assert hours.seconds(at(14, 9.5), at(14, 9.75)) == 900
    assert hours.working_day_s == 10 * HOUR
    assert not hours.is_continuous
    assert LearnedHours([True] * HOURS_OF_WEEK).is_continuous


def test_the_largest_value_of_enough_weight():
    assert longest_by_weight([(5, 0.5), (3, 0.5), (9, 0.4)], 1.0) == 3
    assert longest_by_weight([(5, 0.5)], 1.0) is None


def test_earlier_hearings_change_nothing():
    rhythm = learned(work(weekdays(1)))
    before = rhythm.to_json()
    rhythm.learn(rhythm.heard_at - WEEK)
    assert rhythm.to_json() == before
