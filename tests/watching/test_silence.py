from datetime import UTC, datetime, timedelta

import pytest

from bench.oncall_silence import WORLDS, measure
from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.silence import (
    Outage,
    SilenceContext,
    SilentDeployment,
    evidence_of,
    followers,
    hear,
    judge,
)

NOW = datetime(2026, 2, 4, 10, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
PARAMS = NoDataParams()


def times(days=21, until=NOW, every=5):
    """A Monday-to-Friday day shift, 8 to 18."""
    begin = datetime(2026, 2, 4, tzinfo=UTC) - days * DAY
    found = []
    for day in range(days + 1):
        at = begin + day * DAY + 8 * HOUR
        if at.weekday() < 5:
            found += [at + n * every * MINUTE for n in range(600 // every)]
    return [at for at in found if at <= until]


def deployment(*robots):
    members = [hear(None, f"r{n}", 1, [(at, at) for at in robot]) for n, robot in enumerate(robots)]
    whole = hear(None, None, 1, sorted((at, at) for robot in robots for at in robot))
    return whole, SilenceContext(members=members)


@pytest.mark.parametrize(
    ("quiet", "word"),
    [(29 * MINUTE, None), (31 * MINUTE, "died"), (7 * HOUR, "died"), (20 * HOUR, "died")],
)
def test_a_deployment_that_stops_at_work_died(quiet, word):
    whole, context = deployment(times(), times())
    silence = judge(whole, PARAMS, NOW + quiet, context)
    assert (silence and silence.word) == word
    assert silence is None or silence.pages


@pytest.mark.parametrize(
    ("now", "word", "pages"),
    [
        # Friday night, Saturday, Monday before work, a free Monday, a working week and a half later.
        (datetime(2026, 1, 30, 20, tzinfo=UTC), None, False),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), None, False),
        (datetime(2026, 2, 2, 7, tzinfo=UTC), None, False),
        (datetime(2026, 2, 2, 11, tzinfo=UTC), "absent", False),
        (datetime(2026, 2, 12, 12, tzinfo=UTC), "absent", True),
    ],
)
def test_who_does_not_come_back_from_a_rest_is_absent_at_first(now, word, pages):
    whole, context = deployment(times(until=datetime(2026, 1, 30, 19, tzinfo=UTC)))
    silence = judge(whole, PARAMS, now, context)
    assert (silence and silence.word) == word
    assert bool(silence and silence.pages) is pages


def test_without_robots_that_work_there_is_no_silence():
    whole, context = deployment(times())
    assert judge(whole, PARAMS, NOW + 5 * HOUR, SilenceContext()) is None
    assert judge(whole, PARAMS, NOW + 5 * HOUR, context) is not None


def test_the_fewer_robots_are_left_the_longer_a_gap_may_be():
    dense, sparse = times(every=2), times(every=25)
    whole, context = deployment(dense, sparse)
    left = SilenceContext(members=context.members[1:])
    late = NOW + 40 * MINUTE
    assert judge(whole, PARAMS, late, context) is not None
    assert judge(whole, PARAMS, late, left) is None


def test_a_calendar_overrides_what_was_learned():
    class Closed:
        def is_working(self, at):
            return False

        def working_seconds(self, start, end):
            return 0.0

    class Open:
        def is_working(self, at):
            return True

        def working_seconds(self, start, end):
            return (end - start).total_seconds()

    whole, context = deployment(times())
    closed = SilenceContext(Closed(), context.members)
    assert judge(whole, PARAMS, NOW + 5 * HOUR, closed) is None
    new, members = deployment(times(days=3))
    silence = judge(new, PARAMS, NOW + 31 * MINUTE, SilenceContext(Open(), members.members))
    assert silence.pages


def test_downtime_and_the_time_to_catch_up_do_not_count():
    outage = Outage(NOW, NOW + 5 * HOUR)
    whole, context = deployment(times())
    excused = SilenceContext(None, context.members, [outage.excused])
    assert judge(whole, PARAMS, NOW + 6 * HOUR, excused) is None
    assert judge(whole, PARAMS, NOW + 7 * HOUR + 31 * MINUTE, excused) is not None


def test_a_short_downtime_leaves_half_an_hour_and_a_long_one_two():
    lengths = [(Outage(NOW, NOW + length).excused, length) for length in (MINUTE, HOUR, 9 * HOUR)]
    assert [span.end - span.start - length.total_seconds() for span, length in lengths] == [1800, 3600, 7200]


def test_a_robot_that_says_what_it_has_not_sent_was_at_work():
    robot = hear(None, "r1", 1, [(at, at) for at in times()])
    known = len(robot.rhythm.gaps)
    robot.spool_oldest_at = NOW + 10 * MINUTE
    robot = hear(robot, "r1", 1, [(NOW + 4 * HOUR, NOW + 4 * HOUR)])
    assert len(robot.rhythm.gaps) == known
    assert robot.spool_oldest_at is None


def test_evidence_names_one_robot_or_all():
    whole, context = deployment(times(), times())
    silence = judge(whole, PARAMS, NOW + HOUR, context)
    assert evidence_of(whole, silence, context.members)["robots"] == ["r0", "r1"]
    assert evidence_of(whole, silence, context.members[:1])["robot"] == "r0"
    assert evidence_of(context.members[0], silence)["robot"] == "r0"


def test_of_a_site_that_falls_silent_one_deployment_pages():
    def place(number, site, minute, *, pages=False):
        return SilentDeployment(number, site, NOW + minute * MINUTE, pages)

    together = [place(1, "berlin", 0), place(2, "berlin", 9), place(3, "berlin", 90), place(4, None, 0)]
    assert followers(together) == {2: 1}
    assert followers([place(1, "berlin", 0), place(2, "berlin", 0, pages=True)]) == {1: 2}


SHORT = ("working week, three robots", "working week with lunch and breaks", "24/7", "weekends only")


@pytest.mark.parametrize("name", SHORT)
def test_fleets_page_seldom_and_deaths_at_work_are_told_in_time(name):
    """The short version of `make bench-oncall`: two months, the first week among them."""
    world = next(world for world in WORLDS if world.name == name)
    outcome = measure(world, days=60, runs=1, deaths=12, seed=3)
    assert outcome.pages == 0
    assert outcome.told_in_time >= 0.9
