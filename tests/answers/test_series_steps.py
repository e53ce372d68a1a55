from datetime import UTC, datetime, timedelta

from gapwatch.answers.series_steps import series_steps

AT = datetime(2026, 11, 12, 12, tzinfo=UTC)


def values(n: int, value: float = 1.0, first: int = 0):
    return [(AT + timedelta(minutes=first + number), value) for number in range(n)]


def test_no_step_spans_the_change():
    before, since = series_steps(values(40, 1.0, -40) + values(25, 0.0), AT, is_rate=True)
    assert {step.value for step in before} == {1.0} and {step.value for step in since} == {0.0}
    assert before[-1].last_at < AT <= since[0].first_at
    assert sum(step.n for step in before) == 40
    assert all(step.interval[0] < step.value <= step.interval[1] for step in before)


def test_the_newest_values_are_a_run_of_their_own():
    runs = series_steps(values(20) + values(20, 0.5, 9000), AT, AT + timedelta(minutes=9000), is_rate=False)
    assert [run[0].value for run in runs] == [1.0, 0.5]


def test_any_other_number_is_a_median_between_quartiles():
    [[step]] = series_steps([(AT, float(number)) for number in range(5)], AT, is_rate=False)
    assert (step.value, step.interval, step.n) == (2.0, (1.0, 3.0), 5)


def test_without_values_there_is_no_line():
    assert series_steps([], AT, is_rate=True) == []
