import pytest
from hypothesis import given
from hypothesis import strategies as st
from tally.made import DAY, HOUR_S, packed, row, steady

from gapwatch.tally.rows import Columns, numbered, unpack
from gapwatch.tally.sums import DAY_S


def test_arrays_of_postgres_become_a_matrix():
    found = unpack([packed(1.5, -2.0, 3e300), packed(0.0, 5e-324, 7.0)], 3)
    assert found.tolist() == [[1.5, -2.0, 3e300], [0.0, 5e-324, 7.0]]


def test_arrays_without_elements_are_a_matrix_without_columns():
    assert unpack([packed(), packed()], 0).shape == (2, 0)


@steady
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[st.floats(allow_nan=False)] * n), min_size=1)))
def test_any_numbers_are_read_as_they_were_written(values):
    assert [tuple(one) for one in unpack([packed(*one) for one in values], len(values[0])).tolist()] == values


@pytest.mark.parametrize("width", [1, 3])
def test_an_array_of_another_length_is_refused(width):
    with pytest.raises(ValueError, match="size"):
        unpack([packed(1.0, 2.0)], width)


@steady
@given(st.lists(st.sampled_from(["a", "b", ("c", 1), None])))
def test_keys_are_numbered_in_the_order_in_which_they_come(keys):
    different, numbers = numbered(keys)
    assert [different[number] for number in numbers] == keys
    assert len(set(different)) == len(different)
    assert list(dict.fromkeys(numbers)) == list(range(len(different)))


def test_rows_of_a_scope_on_one_day_of_utc_share_an_index():
    found = Columns(
        [
            row(hour=DAY),
            row(hour=DAY + 23 * HOUR_S),
            row(hour=DAY + DAY_S),
            row(hour=DAY - HOUR_S),
            row(hour=DAY, task_id=9),
        ]
    )
    scope = ("real", 1, 2, 3)
    assert found.scopes == [(scope, DAY), (scope, DAY + DAY_S), (scope, DAY - DAY_S), (("real", 1, 9, 3), DAY)]
    assert found.scope_index == [0, 0, 1, 2, 3]
    assert found.of.task_id == (2, 2, 2, 2, 9)
