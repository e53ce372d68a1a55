"""Sessions into a side, also where there are too many to be listed."""

import pytest

from gapwatch.answers.session_effects import MOST_LISTED, with_sessions
from gapwatch.statistics.estimates.drops import (
    Side,
    rate_drop,
    side_limits,
)

SESSIONS = [(5, 5)] * 30 + [(0, 5)] * 10


def test_few_sessions_are_not_looked_at():
    assert with_sessions(8, 20, [(2, 5)] * 4).side == Side(8, 20)


def test_attempts_outside_any_session_are_sittings_of_one():
    found = with_sessions(157, 210, SESSIONS)
    assert (found.side.successes, found.side.n, found.sessions, found.design_effect) == (157, 210, 40, 1)
    assert sum(n for _, n in found.side.sessions) == 210
    assert sum(k for k, _ in found.side.sessions) == 157


def test_counts_that_do_not_fit_are_taken_without_sessions():
    """A session that was folded between two queries must not make a negative rest."""
    assert with_sessions(10, 20, SESSIONS).side == Side(10, 20)


def test_very_many_sessions_count_by_the_design_effect_of_the_newest():
    listed = with_sessions(4500, 6000, SESSIONS * 30)
    estimated = with_sessions(4500, 6000, SESSIONS * 10, complete=False)
    assert estimated.design_effect > 2
    assert estimated.side.sessions is None
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
