from datetime import UTC, datetime, timedelta

from gapwatch.answers.arrivals import arrivals_around

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HEARD = datetime(2026, 11, 18, 10, 20, tzinfo=UTC)


def working(weeks):
    """Twelve episodes an hour from eight to six, for so many weeks until it was last heard."""
    first = (HEARD - weeks * 7 * DAY).replace(hour=0, minute=0)
    hours = (first + HOUR * n for n in range(weeks * 7 * 24 + 24))
    return {at: 12 for at in hours if 8 <= at.hour < 18 and at <= HEARD}


def test_a_short_silence_is_drawn_by_the_hour_against_the_same_hours_of_the_weeks_before():
    drawn = arrivals_around(None, working(3), HEARD, HEARD + 6 * HOUR)
    by_hour = {step.at: step for step in drawn.steps}
    assert drawn.tier == "hour" and drawn.steps[0].at == (HEARD - 3 * DAY).replace(minute=0)
    noon = by_hour[HEARD.replace(hour=12, minute=0)]
    assert (noon.n, noon.usual) == (0, 12.0)
    night = by_hour[HEARD.replace(hour=3, minute=0)]
    assert (night.n, night.usual) == (0, 0.0)
    assert by_hour[HEARD.replace(hour=9, minute=0)].n == 12


def test_a_long_silence_is_drawn_by_the_day_and_teaches_nothing():
    drawn = arrivals_around("ur5e-1", working(3), HEARD, HEARD + 20 * DAY)
    assert drawn.tier == "day" and drawn.robot == "ur5e-1"
    assert (drawn.steps[-1].n, drawn.steps[-1].usual) == (0, 120.0)


def test_without_a_week_before_nothing_is_called_usual():
    for counts in ({}, {HEARD.replace(minute=0): 3}):
        assert all(step.usual is None for step in arrivals_around(None, counts, HEARD, HEARD + HOUR).steps)
