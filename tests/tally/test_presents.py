from datetime import UTC, datetime, timedelta

from gapwatch.tally.presents import PresentFacts, RecentAttempt, make_present

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)


def attempts(*good: bool) -> list[RecentAttempt]:
    """Of four robots in turn, newest first."""
    made = [
        RecentAttempt(NOON + timedelta(minutes=i), "success" if one else "failure", 1, 1, f"r-{i % 4}", None)
        for i, one in enumerate(good)
    ]
    return made[::-1]


def test_a_young_regime_does_not_hide_the_odd_robot():
    # r-3 succeeds every second time. Lately all fail: a regime of forty, which tells no robot from another.
    usual = [i % 4 != 3 or i % 8 == 3 for i in range(800)]
    facts = PresentFacts(1, 1, NOON, True, None, None, 1.0)
    present = make_present(attempts(*usual, *[False] * 40), facts)
    assert present.why == "change" and 30 <= present.regime.n <= 50
    odd = [robot.robot for robot in present.robots if robot.than_others == "below"]
    assert odd == ["r-3"]
    assert {robot.n for robot in present.robots} == {100}
