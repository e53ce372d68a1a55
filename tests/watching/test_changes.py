from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from gapwatch.statistics.change.fallen_robots import RobotSides
from gapwatch.watching.changes import (
    AffectedRobots,
    ChangeSpan,
    Happened,
    LevelShare,
    affected_robots,
    change_span,
    rank_events,
    worst_slices,
)

AT = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SURE = ChangeSpan(AT, AT - HOUR, AT + HOUR)


def ranked(*events, change=SURE, robots=AffectedRobots((), ())):  # noqa: B008 - frozen
    return rank_events(events, change, deployment="berlin-line-3", site="berlin", robots=robots)


def working_days(changed_at: datetime, rates: tuple[float, float], seed: int, most: int = 200) -> list:
    """Thirty episodes a day from eight to six, Mondays to Fridays, whose rate changes; the newest ones before the
    change and dozens after it, as an alarm finds them.
    """
    chance, rows = np.random.default_rng(seed), []
    day = changed_at.replace(hour=0) - timedelta(days=14)
    while day < changed_at + timedelta(days=3):
        if day.weekday() < 5:
            times = [day + 8 * HOUR + timedelta(minutes=20 * number) for number in range(30)]
            rows += [(at, float(chance.random() < rates[at >= changed_at])) for at in times]
        day += timedelta(days=1)
    before = [row for row in rows if row[0] < changed_at]
    return before[-most:] + [row for row in rows if row[0] >= changed_at][:60]


def test_robots_are_told_apart_by_what_they_lost_since_the_change():
    sides = [
        RobotSides("bad-1", 180, 200, 4, 20),
        RobotSides("bad-2", 95, 100, 2, 12),
        RobotSides("good", 180, 200, 18, 20),
        RobotSides("new", 0, 0, 1, 3),
    ]
    found = affected_robots(sides, None)
    assert found == AffectedRobots(("bad-1", "bad-2"), ("good",), "some")
    assert affected_robots([RobotSides("good", 180, 200, 18, 20)], 0.9) == AffectedRobots((), (), "none")


def test_events_are_ranked_by_fit_to_the_change_point():
    found = ranked(
        Happened("site", AT - timedelta(days=2), "new lamp"),
        Happened("release", AT - timedelta(minutes=10), "1.5.0", deployment="berlin-line-3"),
        Happened("calibration", AT - timedelta(hours=3), "camera", site="berlin"),
    )
    assert [one["title"] for one in found] == ["1.5.0", "camera", "new lamp"]
    assert [one["inside"] for one in found] == [True, False, False]
    assert found[0]["fit"] > 0.9


def test_events_elsewhere_long_before_or_after_are_left_out():
    assert not ranked(
        Happened("release", AT, "other", deployment="oslo"),
        Happened("release", AT - timedelta(days=8), "old"),
        Happened("release", AT + timedelta(hours=3), "after"),
    )


def test_an_event_on_the_affected_robots_fits_better_than_one_on_the_others():
    robots = AffectedRobots(("bad-1", "bad-2"), ("good",))
    found = ranked(
        Happened("calibration", AT, "of the good one", robots=("good",)),
        Happened("calibration", AT - timedelta(hours=1), "of the bad ones", robots=("bad-1", "bad-2")),
        robots=robots,
    )
    assert [one["title"] for one in found] == ["of the bad ones"]


@pytest.mark.parametrize(("rates", "found_first"), [((0.95, 0.5), 0.9), ((0.95, 0.75), 0.75)])
def test_a_release_at_noon_is_listed_and_first_although_the_estimate_is_hours_off(rates, found_first):
    """The detector's estimate is off by up to a day; a lamp was changed two days before and a camera the day after."""
    first = listed = 0
    runs = 100
    for seed in range(runs):
        off = np.random.default_rng(1000 + seed).uniform(-12, 12)
        values = working_days(AT, rates, seed)
        change = change_span(AT + off * HOUR, values, "success", {})
        found = ranked(
            Happened("site", AT - timedelta(days=4), "lamp", deployment="berlin-line-3"),
            Happened("release", AT, "1.5.0", deployment="berlin-line-3"),
            Happened("calibration", AT + timedelta(days=1), "camera", deployment="berlin-line-3"),
            change=change,
        )
        titles = [one["title"] for one in found]
        listed += "1.5.0" in titles
        first += titles[:1] == ["1.5.0"]
    assert listed >= 0.97 * runs
    assert first >= found_first * runs


def test_what_happens_at_night_is_seen_in_the_first_episode_of_the_morning():
    morning = AT.replace(hour=8)
    change = change_span(morning, working_days(morning, (0.97, 0.2), 4), "success", {})
    at_night = change.fit(morning - timedelta(hours=9))
    assert at_night == change.fit(morning)
    assert at_night > 0.9


def test_sessions_that_resemble_one_another_widen_the_span():
    values = working_days(AT, (0.95, 0.5), 7)
    plain = change_span(AT, values, "success@full", {})
    alike = change_span(AT, values, "success@full", {"sessions": {"design_effect": 4.0}})
    assert alike.latest - alike.earliest > plain.latest - plain.earliest


@pytest.mark.parametrize("evidence", [{}, {"sessions": None}, {"sessions": {"design_effect": "?"}}])
def test_without_values_the_estimate_stands_give_or_take_an_hour(evidence):
    change = change_span(AT, [(AT - HOUR, 1.0), (AT, 1.0)], "success", evidence)
    assert (change.at, change.earliest, change.latest) == (AT, AT - HOUR, AT + HOUR)
    assert change.fit(AT) == 1.0


def test_a_deployment_that_was_bad_from_its_first_episode_changed_with_it():
    values = [(AT + number * HOUR, float(number % 3 == 0)) for number in range(60)]
    change = change_span(AT, values, "success", {})
    assert (change.at, change.n) == (AT, 0)
    assert change.fit(AT - 20 * HOUR) == 1.0


def test_the_surest_failures_come_first_and_small_levels_are_left_out():
    shares = [
        LevelShare("lighting", "day", 19, 40),
        LevelShare("lighting", "dim", 60, 200),
        LevelShare("lighting", "dusk", 6, 22),
        LevelShare("lighting", "dark", 0, 19),
    ]
    # Dusk has the lowest rate of those with twenty episodes and the widest interval.
    assert [level["level"] for level in worst_slices(shares)] == ["dim", "dusk", "day"]


def test_a_level_that_nearly_all_episodes_have_is_no_worst_level():
    shares = [LevelShare("shift", "day", 22, 42), LevelShare("shift", "night", 0, 19)]
    assert worst_slices(shares) == []
    shares = [LevelShare("gripper", "suction", 400, 960), LevelShare("gripper", "jaw", 39, 40)]
    assert [level["level"] for level in worst_slices(shares)] == ["jaw"]
