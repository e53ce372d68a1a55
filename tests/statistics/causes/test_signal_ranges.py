import numpy as np
import pytest

from gapwatch.statistics.causes.signal_ranges import UsualRange, unusual_side, usual_ranges
from gapwatch.statistics.estimates.sketches import fold


def test_the_usual_range_is_the_middle_98_percent_of_sim_successes():
    values = np.random.default_rng(2).normal(10, 1, 5000)
    ranges = usual_ranges({"from_numbers": values, "from_sketch": fold(values), "few": values[:49]})
    assert set(ranges) == {"from_numbers", "from_sketch"}
    for found in ranges.values():
        assert (found.low, found.median, found.high) == pytest.approx(
            np.quantile(values, [0.01, 0.5, 0.99]), rel=0.01
        )
        assert found.n == 5000


def test_a_value_outside_the_range_is_on_one_side_of_it():
    usual = UsualRange(low=5, median=15, high=25, n=400)
    assert [unusual_side(x, usual) for x in (4.9, 5, 15, 25, 25.1)] == ["below", None, None, None, "above"]
    assert unusual_side(99, UsualRange(5, 15, 25, n=49)) is None
