import numpy as np

from gapwatch.statistics.closing.week_moves import week_moves


def days(successes, each=20, number=7):
    return [(successes, each)] * number


def test_a_fall_a_rise_a_steady_week_and_too_few_episodes():
    moves = week_moves(
        [(days(18), days(12)), (days(10), days(17)), (days(16), days(16)), (days(9, 10, 1), days(16))]
    )
    assert [move.verdict for move in moves] == ["fell", "rose", "steady", "too few episodes"]
    assert moves[0].interval[0] < moves[0].value < moves[0].interval[1] < 0
    assert week_moves([]) == []


def test_of_many_steady_deployments_hardly_any_is_called_moved():
    random = np.random.default_rng(4)
    moved = 0
    for _ in range(20):
        weeks = [tuple([(int(k), 20) for k in random.binomial(20, 0.8, 7)] for _ in range(2)) for _ in range(12)]
        moved += sum(move.verdict in ("rose", "fell") for move in week_moves(weeks))
    assert moved <= 4
