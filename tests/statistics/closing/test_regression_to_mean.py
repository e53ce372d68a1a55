import numpy as np
import pytest

from gapwatch.statistics.closing.regression_to_mean import Peer, expected_regression


@pytest.mark.parametrize(
    ("slices", "each", "published"), [(12, 30, 0.124), (12, 100, 0.067), (13, 50, 0.098), (6, 20, 0.132)]
)
def test_most_of_what_a_worst_slice_regains_by_itself_is_expected(slices, each, published):
    """The published re-measurements of a worst slice that nobody touched."""
    random = np.random.default_rng(11)
    regained, expected = [], []
    for _ in range(300):
        before, after = random.binomial(each, 0.78, (2, slices))
        found = expected_regression([Peer(k, each) for k in before])
        worst = int(np.argmin(before))
        assert found.worst == worst
        regained.append((after[worst] - before[worst]) / each)
        expected.append(found.shifts[worst])
    assert np.mean(regained) == pytest.approx(published, abs=0.02)
    assert 0.6 * np.mean(regained) < np.mean(expected) < 1.1 * np.mean(regained)


def test_slices_that_truly_differ_are_hardly_drawn_together():
    found = expected_regression([Peer(500, 1000), Peer(900, 1000), Peer(700, 1000), Peer(800, 1000)])
    assert 0 < found.shifts[0] < 0.005
    assert found.narrowed[0] > 0.95


def test_shifts_point_to_the_middle_and_clusters_strengthen_them():
    alone = expected_regression([Peer(20, 40), Peer(30, 40), Peer(32, 40)])
    clustered = expected_regression([Peer(20, 40, 3.0), Peer(30, 40, 3.0), Peer(32, 40, 3.0)])
    assert alone.shifts[0] > 0 > alone.shifts[2]
    assert clustered.shifts[0] > alone.shifts[0]


def test_one_unit_or_one_without_episodes_has_no_peers():
    assert expected_regression([Peer(5, 10)]) is None
    assert expected_regression([Peer(5, 10), Peer(0, 0)]) is None
