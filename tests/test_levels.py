import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapwatch.levels import bounds, level_of, number_range


@pytest.mark.parametrize(
    ("value", "level"),
    [
        ("dim", "dim"),
        (True, "true"),
        (False, "false"),
        (3.0, "3"),
        (0.0, "0"),
        (-0.0, "0"),
        (-20.0, "-20"),
        (21.0, "20 to 50"),
        (0.31, "0.2 to 0.5"),
        (0.2, "0.2 to 0.5"),
        (0.19999999999999998, "0.1 to 0.2"),
        (3.7, "2 to 5"),
        (-3.7, "-5 to -2"),
        (1e-9, "1e-09 to 2e-09"),
        (999.0, "500 to 1000"),
        (1e300, "1e+300 to 2e+300"),
    ],
)
def test_a_value_has_one_level(value, level):
    assert level_of(value) == level


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_lies_in_its_bin(value):
    low, high = number_range(level_of(value))
    if low == high:
        assert value == low
    elif value > 0:
        assert low <= value < high or math.isclose(low, value)
    else:
        assert low < value <= high or math.isclose(high, value)


@given(st.floats(min_value=1e-300, max_value=1e307))
def test_bins_are_steps_of_one_two_five(size):
    low, high = bounds(size)
    assert low <= size < high
    assert round(high / low, 6) in (2.0, 2.5)


def test_a_word_stands_for_no_numbers():
    assert number_range("dim") is None
    assert number_range("mug to glass") is None
