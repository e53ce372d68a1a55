import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tally.made import steady

from gapwatch.tally.values import ValueSum, add_values, pack_values, unpack_values

whole = st.integers(-(2**300), 2**300)
bins = st.dictionaries(st.integers(-40_000, 40_000), st.integers(1, 10**12), max_size=5)
sums = st.builds(ValueSum, st.integers(1, 10**12), whole, whole.map(abs), st.integers(0, 10**9), bins, bins)
named = st.dictionaries(st.sampled_from(["force_n", "slip_mm", "ü"]), sums)


def added(parts):
    found = {}
    for part in parts:
        add_values(found, part)
    return found


def test_parts_are_added_member_by_member():
    one = ValueSum(2, 10, 100, 1, {5: 1}, {})
    one.add(ValueSum(3, -4, 20, 0, {5: 2, 6: 1}, {7: 1}))
    assert one == ValueSum(5, 6, 120, 1, {5: 3, 6: 1}, {7: 1})
    one.add(ValueSum(1, 1, 1, 1, {6: 1}, {7: 1}), -1)
    assert one == ValueSum(4, 5, 119, 0, {5: 3, 6: 0}, {7: 0})


@steady
@given(st.lists(named, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_parts_does_not_show_in_the_bytes(parts, chance: random.Random):
    shuffled = list(parts)
    chance.shuffle(shuffled)
    assert pack_values(added(parts)) == pack_values(added(shuffled))


@steady
@given(named, named)
def test_what_is_added_and_taken_away_leaves_what_was_there(before, part):
    found = added([before, part])
    add_values(found, part, -1)
    assert pack_values(found) == pack_values(before)


@steady
@given(named)
def test_a_part_that_is_taken_away_first_and_added_later_leaves_nothing(part):
    found = {}
    add_values(found, part, -1)
    assert all(found[name].n == -value.n for name, value in part.items())
    add_values(found, part)
    assert pack_values(found) is None


@steady
@given(named)
def test_what_is_written_is_read_again(values):
    body = pack_values(values)
    assert (unpack_values(body) if body else {}) == values


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 2**63, -(2**63) - 1, 2**2200])
def test_sums_may_outgrow_every_integer_of_a_database(number):
    [found] = unpack_values(pack_values({"x": ValueSum(1, number, number * number)})).values()
    assert (found.total, found.total_sq) == (number, number * number)


@pytest.mark.parametrize(
    ("value", "is_empty"),
    [
        (ValueSum(), True),
        (ValueSum(bins={4: 0}, negative={9: 0}), True),
        (ValueSum(n=1), False),
        (ValueSum(total=-1), False),
        (ValueSum(total_sq=1), False),
        (ValueSum(zero=1), False),
        (ValueSum(bins={4: 1}), False),
        (ValueSum(negative={4: -1}), False),
    ],
)
def test_a_sum_is_empty_when_nothing_is_left_of_it(value, is_empty):
    assert value.is_empty == is_empty
    assert (pack_values({"x": value}) is None) == is_empty


def test_empty_names_and_empty_bins_are_not_written():
    written = pack_values({"gone": ValueSum(), "there": ValueSum(1, 2, 4, 0, {3: 0, 1: 1})})
    assert unpack_values(written) == {"there": ValueSum(1, 2, 4, 0, {1: 1})}


def test_a_part_is_copied_and_not_shared():
    """A month that held the bins of its first day would change the day with its second."""
    day = {"force_n": ValueSum(1, 2, 4, 0, {3: 1}, {5: 1})}
    month = added([day, day])
    assert day == {"force_n": ValueSum(1, 2, 4, 0, {3: 1}, {5: 1})}
    assert month == {"force_n": ValueSum(2, 4, 8, 0, {3: 2}, {5: 2})}
