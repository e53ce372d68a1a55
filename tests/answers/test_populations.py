"""Sites, robots and sessions into a side, also where there are too many to be listed."""

import pytest
from answers.cells import steady
from hypothesis import given
from hypothesis import strategies as st

from gapwatch.answers.populations import (
    MOST_LISTED,
    ClusterEffect,
    describe_population,
    places_of,
    with_population,
    with_sessions,
)
from gapwatch.statistics.estimates.drops import (
    Side,
    rate_drop,
    side_limits,
)
from gapwatch.statistics.estimates.rates import FEWEST_CLUSTERS, clustered_rate
from gapwatch.store.read.sides import PlaceCount

SESSIONS = [(5, 5)] * 30 + [(0, 5)] * 10


def test_one_session_is_not_looked_at():
    assert with_sessions(8, 20, [(8, 20)]).side == Side(8, 20)


FIVE = places_of([PlaceCount(f"arm-{i}", "berlin", 40 + i, 20 - i) for i in range(5)])
THREE = places_of([PlaceCount(f"arm-{i}", f"site-{i % 3}", 40, 20) for i in range(6)])


def test_a_population_is_that_of_the_coarsest_of_two_or_more():
    sessions = [(21, 30)] * 10
    any_robot = with_population("any", 210, 300, sessions, FIVE)
    assert (any_robot.side.by, len(any_robot.side.clusters)) == ("robot", 5)
    any_site = with_population("any", 240, 360, [], THREE)
    assert (any_site.side.by, len(any_site.side.clusters)) == ("site", 3)
    these = with_population("these", 210, 300, sessions, FIVE)
    assert (these.side.by, len(these.side.clusters)) == ("session", 10)
    assert with_population("these", 210, 300, [], FIVE).side == Side(210, 300)
    # A fold between two queries: counts that do not add up are not taken.
    assert with_population("any", 211, 301, [], FIVE).side == Side(211, 301)


def test_the_words_say_whom_an_interval_speaks_for():
    assert describe_population("these", FIVE, 0).words == "these 5 robots only"
    assert describe_population("any", FIVE, 0).words == "any robot of this kind"
    assert describe_population("these", THREE, 8).words == "these 3 sites only"
    assert describe_population("these", THREE, 8).by == "session"
    assert describe_population("any", THREE, 8).words == "any site of this kind"
    one = places_of([PlaceCount("arm-1", None, 5, 5)])
    assert describe_population("any", one, 4).words == "any session of this robot"
    assert describe_population("these", one, 1) == describe_population("any", one, 1).__class__(
        "these", "further episodes of this robot", None, 0
    )


def test_episodes_that_name_no_robot_are_one_more_of_unknown_number():
    mixed = places_of([PlaceCount("a", None, 9, 1), PlaceCount("b", None, 8, 2), PlaceCount(None, None, 3, 7)])
    assert mixed.count("robot") == 2
    assert sorted(mixed.counts("robot")) == [(3, 10), (8, 10), (9, 10)]


def test_attempts_outside_any_session_are_sittings_of_one():
    found = with_sessions(157, 210, SESSIONS)
    assert (found.side.successes, found.side.n, found.clusters, found.design_effect) == (157, 210, 40, 1)
    assert sum(n for _, n in found.side.clusters) == 210
    assert sum(k for k, _ in found.side.clusters) == 157


def test_counts_that_do_not_fit_are_taken_without_sessions():
    """A session that was folded between two queries must not make a negative rest."""
    assert with_sessions(10, 20, SESSIONS).side == Side(10, 20)


def test_very_many_sessions_count_by_the_design_effect_of_the_newest():
    listed = with_sessions(4500, 6000, SESSIONS * 30)
    estimated = with_sessions(4500, 6000, SESSIONS * 10, complete=False)
    assert estimated.design_effect > 2
    assert estimated.side.clusters is None
    other = Side(900, 1000)
    exact, near = side_limits(listed.side, other), side_limits(estimated.side, other)
    assert (near.low, near.high) == pytest.approx((exact.low, exact.high), abs=0.003)
    assert near.value == pytest.approx(0.75, abs=0.0005)


def test_very_many_attempts_outside_sessions_thin_the_design_effect():
    n = MOST_LISTED + 1200
    mostly_alone = with_sessions(150 + round(0.75 * (n - 200)), n, SESSIONS)
    assert 1 < mostly_alone.design_effect < 1.2
    drop = rate_drop(Side(900, 1000), mostly_alone.side)
    assert drop.value == pytest.approx(0.15, abs=0.001)


sessions = st.lists(st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=20)


@steady
@given(sessions, st.integers(0, 40), st.integers(0, 40), st.randoms(use_true_random=False))
def test_a_side_holds_every_attempt_once_in_any_order_of_sessions(listed, good, bad, chance):
    successes, n = sum(k for k, _ in listed) + good, sum(m for _, m in listed) + good + bad
    found = with_sessions(successes, n, listed)
    assert (found.side.successes, found.side.n, found.clusters) == (successes, n, len(listed))
    assert (found.side.clusters is None) == (len(listed) < FEWEST_CLUSTERS)
    if found.side.clusters is not None:
        assert [sum(part) for part in zip(*found.side.clusters, strict=True)] == [successes, n]
        assert found.inflation == found.side.clustered_rate.design_effect >= 1
    shuffled = list(listed)
    chance.shuffle(shuffled)
    assert with_sessions(successes, n, shuffled).inflation == pytest.approx(found.inflation)


@pytest.mark.parametrize(
    ("successes", "n", "listed"),
    [
        (8, 20, [(2, 5)]),
        # More attempts, more successes or more failures in sessions than there are at all.
        (10, 24, [(2, 5)] * 5),
        (9, 40, [(2, 5)] * 5),
        (30, 40, [(2, 5)] * 5),
    ],
)
def test_a_side_whose_sessions_say_nothing_is_that_of_its_counts(successes, n, listed):
    found = with_sessions(successes, n, listed)
    assert found == ClusterEffect(Side(successes, n), len(listed))
    assert (found.design_effect, found.inflation) == (1, 1)


def test_sessions_that_are_all_or_nothing_count_nearly_once_each():
    found = with_sessions(10, 25, [(5, 5)] * 2 + [(0, 5)] * 3)
    assert list(found.side.clusters) == [(5, 5)] * 2 + [(0, 5)] * 3
    # 1 + (5 − 1) ρ*, ρ* drawn from 1 towards 0.2 by
    # (5 · 0.2 + 10 · 1) / (5 + 10).
    assert found.inflation == pytest.approx(1 + 4 * 11 / 15)
    assert found.design_effect == 1


def test_attempts_outside_are_listed_up_to_a_number_of_them():
    listed, within = MOST_LISTED, sum(n for _, n in SESSIONS)
    good = 150 + listed // 2
    assert with_sessions(good, within + listed, SESSIONS).side.clusters is not None
    beyond = with_sessions(good, within + listed + 1, SESSIONS)
    assert beyond.side.clusters is None
    assert beyond.design_effect == beyond.inflation > 1


def test_effective_counts_are_the_counts_by_the_design_effect():
    effect = clustered_rate(*zip(*SESSIONS, strict=True)).design_effect
    some = with_sessions(1500, 2000, SESSIONS, complete=False)
    assert (some.design_effect, some.inflation) == (effect, effect)
    assert some.side == Side(round(1500 / effect), round(2000 / effect))
    # All sessions are known: what lies outside them is independent, so only 200 of 10,000 carry the effect.
    thinned = with_sessions(7500, 10_000, SESSIONS)
    assert thinned.design_effect == pytest.approx(1 + (effect - 1) * 200 / 10_000)
    assert thinned.side == Side(round(7500 / thinned.design_effect), round(10_000 / thinned.design_effect))
