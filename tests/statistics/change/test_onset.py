from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.api import GLM, families

from gapwatch.statistics.change.onset import (
    DayCount,
    DayEvent,
    _Rows,
    find_onset,
)

steady = settings(deadline=None, derandomize=True, database=None)
START = date(2026, 9, 1)
CONSTANT = {"none", "at_deploy"}


def field(generator, n, rate, *, days=60, sites=1, robots=1, release=2.0):
    """n real episodes spread over the days; `rate` takes progress from 0 to 1 and the number of the site."""
    day, site = generator.integers(0, days, n), generator.integers(0, sites, n)
    success = generator.random(n) < rate(day / days, site)
    return [
        DayCount(
            START + timedelta(int(day[i])),
            int(success[i]),
            1,
            f"site {site[i]}",
            f"robot {i % robots}",
            "1.5" if day[i] >= release * days else "1.4",
        )
        for i in range(n)
    ]


def share(generator, runs, verdicts, *args, **kwargs):
    found = [find_onset(field(generator, *args, **kwargs), 900, 1000).verdict for _ in range(runs)]
    return sum(verdict in verdicts for verdict in found) / runs


@pytest.mark.parametrize(
    ("verdict", "n", "rate", "setting"),
    [
        ("at_deploy", 300, lambda x, site: 0.7 + 0 * x, {"sites": 3}),
        ("site_specific", 300, lambda x, site: 0.9 - 0.3 * (site == 0), {"sites": 3}),
        ("release_regression", 1800, lambda x, site: 0.9 - 0.25 * (x >= 0.5), {"release": 0.5}),
        ("release_regression", 1800, lambda x, site: 0.9 - 0.3 * (x >= 0.25), {"release": 0.25, "sites": 2}),
        ("step_change", 1800, lambda x, site: 0.9 - 0.3 * (x >= 0.5), {}),
        ("step_change", 1800, lambda x, site: 0.9 - 0.3 * (x >= 0.6), {"sites": 2, "release": 0.2}),
        ("gradual_drift", 300, lambda x, site: 0.95 - 0.8 * x, {}),
        ("none", 300, lambda x, site: 0.9 + 0 * x, {"sites": 2}),
    ],
)
def test_each_kind_of_onset_is_named(verdict, n, rate, setting):
    """60 seeded fields a kind: right in 87 % or more."""
    assert share(np.random.default_rng(51), 60, {verdict}, n, rate, **setting) >= 0.87


@pytest.mark.parametrize(
    ("verdicts", "rate", "setting", "least"),
    [
        ({"site_specific"}, lambda x, site: 0.9 - 0.2 * (site == 0), {"sites": 3}, 0.8),
        ({"gradual_drift"}, lambda x, site: 0.9 - 0.4 * x, {}, 0.6),
        ({"step_change", "gradual_drift"}, lambda x, site: 0.9 - 0.2 * (x >= 0.5), {}, 0.75),
        (
            {"release_regression", "step_change", "gradual_drift"},
            lambda x, site: 0.9 - 0.2 * (x >= 0.5),
            {"release": 0.5},
            0.75,
        ),
    ],
)
def test_twenty_points_are_near_the_limit_of_what_300_episodes_can_tell(verdicts, rate, setting, least):
    """A step and a slope of 20 points on average differ by 5 units of χ²: even with both known, 13 % are wrong."""
    assert share(np.random.default_rng(52), 60, verdicts, 300, rate, **setting) >= least


def found_in(runs, make, seed=59):
    """Verdicts, and the days by which the beginning was missed, of seeded fields of 20 episodes on 60 days."""
    generator = np.random.default_rng(seed)
    verdicts, missed = [], []
    for _ in range(runs):
        rates, since, events = make(generator)
        counts = [(int(generator.binomial(20, rate)), 20) for rate in rates]
        days = [DayCount(START + timedelta(i), k, n) for i, (k, n) in enumerate(counts)]
        found = find_onset(days, 920, 1000, events)
        verdicts.append(found.verdict)
        if found.change_day is not None:
            missed.append(abs((found.change_day - START).days - since))
    return verdicts, missed


DAYS = np.arange(60)


def a_fall_made_good(generator):
    since = int(generator.integers(12, 30))
    until = since + int(generator.integers(10, 20))
    return 0.9 - 0.2 * ((since <= DAYS) & (until > DAYS)), since, ()


def a_ramp(generator):
    since = int(generator.integers(12, 30))
    return 0.9 - 0.25 * np.clip((DAYS - since) / (59 - since), 0, 1), since, ()


def a_step_with_a_release(days_after):
    def make(generator):
        since = int(generator.integers(12, 48))
        release = DayEvent(START + timedelta(since + days_after), "release", "1.5")
        return 0.9 - 0.2 * (since <= DAYS), since, (release,)

    return make


def test_a_fall_that_was_made_good_is_not_at_deploy():
    verdicts, missed = found_in(40, a_fall_made_good)
    assert verdicts.count("recovered") >= 36
    assert np.median(missed) <= 1


def test_a_ramp_is_no_step_and_its_start_is_known_within_a_week():
    verdicts, missed = found_in(40, a_ramp)
    assert verdicts.count("gradual_drift") >= 34
    assert np.median(missed) <= 7


def test_a_release_after_the_step_is_not_blamed():
    verdicts, _ = found_in(60, a_step_with_a_release(days_after=1))
    assert verdicts.count("release_regression") <= 6
    verdicts, _ = found_in(60, a_step_with_a_release(days_after=0))
    assert verdicts.count("release_regression") >= 36


def test_a_release_that_may_be_it_is_told_as_what_happened_at_that_time():
    found = find_onset(steps(16, 8), 950, 1000, [DayEvent(START + timedelta(21), "release", "1.5")])
    assert found.verdict == "step_change"
    assert "at that time: release 1.5 on 2026-09-22" in found.reason


@pytest.mark.parametrize(
    ("verdict", "rate"),
    [
        ("gradual_drift", lambda x, site: 0.93 - 0.5 * np.maximum(x - 0.75, 0) / 0.25),
        ("gradual_drift", lambda x, site: 0.93 - 0.5 * np.maximum(x - 0.5, 0) / 0.5),
        ("step_change", lambda x, site: 0.93 - 0.3 * (x >= 0.75)),
    ],
)
def test_a_drift_that_begins_late_is_no_step(verdict, rate):
    """90 days, 1500 episodes, 40 seeded fields: the last three weeks or the second half, sliding or after a step."""
    assert share(np.random.default_rng(57), 40, {verdict}, 1500, rate, days=90) >= 0.85


def test_the_day_a_drift_began_is_said():
    generator = np.random.default_rng(58)
    found = find_onset(
        field(generator, 3000, lambda x, site: 0.93 - 0.5 * np.maximum(x - 0.7, 0) / 0.3, days=90), 930, 1000
    )
    assert found.verdict == "gradual_drift"
    assert abs((found.change_day - START).days - 63) <= 7
    assert found.plausible_days[0] <= found.change_day <= found.plausible_days[-1]
    assert f"from {found.change_day} to" in found.reason


@pytest.mark.parametrize(("n", "days", "sites"), [(60, 14, 3), (150, 60, 1), (300, 60, 3), (1000, 30, 1)])
def test_without_a_change_few_are_claimed(n, days, sites):
    """Constant 0.75, two robots, a release halfway: 120 seeded fields, 5 % and two standard errors."""
    generator = np.random.default_rng(53)

    def level(x, site):
        return 0.75 + 0 * x

    assert share(generator, 120, CONSTANT, n, level, days=days, sites=sites, robots=2, release=0.5) >= 0.91


def test_days_of_their_own_are_not_taken_for_a_change():
    """60 days of 10 with rates of their own (ICC 0.1): spread among days is no step."""
    generator = np.random.default_rng(54)
    false = 0
    for _ in range(150):
        rates = generator.beta(0.7 * 9, 0.3 * 9, 60)
        days = [DayCount(START + timedelta(i), int(generator.binomial(10, rates[i])), 10) for i in range(60)]
        false += find_onset(days, 800, 1000).verdict not in CONSTANT
    assert false / 150 <= 0.08, false


def test_the_plausible_days_contain_the_day_of_the_change():
    generator = np.random.default_rng(55)
    hits, sizes = [], []
    for _ in range(100):
        found = find_onset(field(generator, 300, lambda x, site: 0.9 - 0.4 * (x >= 0.5)), 900, 1000)
        if found.verdict == "step_change":
            hits.append(START + timedelta(30) in found.plausible_days)
            sizes.append(len(found.plausible_days))
    assert np.mean(hits) >= 0.9
    assert np.mean(sizes) <= 10


def steps(before, after, *, at=20, days=40, version="1"):
    rows = [(START + timedelta(i), before if i < at else after) for i in range(days)]
    return [DayCount(day, good, 20, version=version) for day, good in rows]


def test_the_reason_names_day_events_and_what_was_lost_before():
    found = find_onset(steps(16, 8), 950, 1000, [DayEvent(START + timedelta(20), "calibration", "arm 2")])
    assert (found.verdict, found.change_day) == ("step_change", START + timedelta(20))
    assert found.change == pytest.approx(0.4)
    assert found.reason == (
        "Success fell by 40.0 points on 2026-09-21 (plausible from 2026-09-21 to 2026-09-21); at that time: "
        "calibration arm 2 on 2026-09-21. Before that it was 15.0 points below sim."
    )
    release = find_onset(steps(16, 8), 950, 1000, [DayEvent(START + timedelta(20), "release", "1.5")])
    assert (release.verdict, release.change_day) == ("release_regression", START + timedelta(20))
    assert "with release 1.5 of 2026-09-21" in release.reason


def test_a_release_on_a_day_of_rest_is_seen_the_next_day():
    worked = [d for d in steps(16, 8) if d.day not in (START + timedelta(18), START + timedelta(19))]
    found = find_onset(worked, 950, 1000, [DayEvent(START + timedelta(19), "release", "1.5")])
    assert (found.verdict, found.change_day) == ("release_regression", START + timedelta(19))


def test_a_site_or_robot_that_joins_late_is_not_a_change_of_time():
    late = [DayCount(START + timedelta(i), 18, 20, robot="a") for i in range(40)]
    late += [DayCount(START + timedelta(i), 10, 20, robot="b") for i in range(20, 40)]
    found = find_onset(late, 900, 1000)
    assert (found.verdict, found.where) == ("site_specific", ("b",))
    assert found.change == pytest.approx(0.4)


def test_a_fix_is_told_with_its_day_and_what_is_left():
    found = find_onset(steps(12, 16), 950, 1000)
    assert (found.verdict, found.risen_day) == ("at_deploy", START + timedelta(20))
    assert found.reason.startswith("Real was 35.0 points below sim from the first day, and is 15.0 below since")
    better_than_sim = find_onset(steps(12, 19), 900, 1000).reason
    assert better_than_sim.startswith("Real was 30.0 points below sim from the first day, and is 5.0 above since")


def test_a_level_that_stays_is_no_fix():
    generator = np.random.default_rng(4)
    risen = 0
    for _ in range(200):
        days = [DayCount(START + timedelta(day), int(generator.binomial(20, 0.7)), 20) for day in range(40)]
        risen += find_onset(days, 950, 1000).risen_day is not None
    assert risen <= 10


def test_an_improvement_is_no_onset():
    assert find_onset(steps(8, 16), 950, 1000).verdict == "at_deploy"


def test_many_robots_are_compared_too():
    days = [
        DayCount(START + timedelta(i), 9 if r else 4, 10, robot=f"r{r:02}") for i in range(30) for r in range(20)
    ]
    found = find_onset(days, 900, 1000)
    assert (found.verdict, found.where) == ("site_specific", ("r00",))


@pytest.mark.parametrize(
    "days",
    [
        [],
        [DayCount(START, 30, 39)],
        [DayCount(START, 300, 400)],
        [DayCount(START + timedelta(i), 5, 6) for i in range(6)],
    ],
)
def test_too_few_episodes_are_a_result(days):
    found = find_onset(days, 900, 1000)
    assert (found.verdict, found.change_day) == ("too few episodes", None)
    assert find_onset(steps(16, 8), 0, 0).verdict == "too few episodes"


def test_one_crowded_day_leaves_no_place_for_a_step():
    days = [DayCount(START, 200, 300)] + [DayCount(START + timedelta(i), 1, 1) for i in range(1, 6)]
    assert find_onset(days, 900, 1000).verdict == "at_deploy"


def test_fits_agree_with_statsmodels():
    generator = np.random.default_rng(56)
    rows = _Rows(field(generator, 400, lambda x, site: 0.9 - 0.3 * x - 0.1 * site, sites=2))
    fit = rows.slope()
    x = (rows.day - rows.day.min()) / np.ptp(rows.day)
    both = np.column_stack([rows.k, rows.n - rows.k])
    slope = GLM(both, np.column_stack([rows.member, x]), family=families.Binomial()).fit()
    constant = GLM(both, rows.member, family=families.Binomial()).fit()
    assert fit.best == pytest.approx(constant.deviance - slope.deviance, rel=1e-6)


counts = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from("ab")), min_size=1, max_size=30
)


@steady
@given(counts, st.randoms())
def test_the_order_and_the_split_of_rows_do_not_matter(rows, chance):
    days = [DayCount(START + timedelta(i), min(k, n), n, site=s) for i, (k, n, s) in enumerate(rows)]
    parts = [
        DayCount(d.day, hit, 1, d.site) for d in days for hit in [1] * d.successes + [0] * (d.n - d.successes)
    ]
    chance.shuffle(parts)
    first, second = find_onset(days, 80, 100), find_onset(parts, 80, 100)
    assert (first.verdict, first.change_day, first.where) == (second.verdict, second.change_day, second.where)
    assert dict(first.net_gains) == pytest.approx(dict(second.net_gains), abs=1e-6)


@pytest.mark.parametrize("sites", [("a",), ("a", "b")])
@pytest.mark.parametrize(
    ("size", "last", "days"), [(1000, 980, 10), (100, 95, 30), (200, 195, 10), (10_000, 9_900, 10), (20, 17, 40)]
)
def test_a_fall_from_nothing_but_successes_is_a_step_of_its_size(size, last, days, sites):
    """A part without failures has infinite log-odds; what is lost after it is finite."""
    counts = [size] * days + [last]
    series = [
        DayCount(START + timedelta(days=day), k, size, site) for day, k in enumerate(counts) for site in sites
    ]
    found = find_onset(series, 9990, 10_000)
    assert found.verdict == "step_change", found
    assert found.change_day == START + timedelta(days=days)
    assert found.change == pytest.approx((size - last) / size, abs=0.001)
