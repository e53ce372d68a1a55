from __future__ import annotations

from gapwatch.statistics.estimates.odd_ones import Member, odd_ones


def found(*members: tuple[str, int, int]) -> dict[str, str]:
    judged = odd_ones([Member(*one) for one in members])
    return {one.name: one.stands_out for one in judged if one.stands_out is not None}


def test_one_far_below_the_others_stands_out() -> None:
    assert found(("a", 93, 100), ("b", 70, 100), ("c", 92, 100), ("d", 94, 100)) == {"b": "below"}


def test_two_below_are_both_found() -> None:
    odd = found(("a", 95, 100), ("b", 60, 100), ("c", 62, 100), ("d", 96, 100), ("e", 94, 100), ("f", 95, 100))
    assert odd == {"b": "below", "c": "below"}


def test_equal_ones_and_few_episodes_give_nobody() -> None:
    assert found(("a", 93, 100), ("b", 91, 100), ("c", 92, 100)) == {}
    assert found(("a", 93, 100), ("b", 2, 19)) == {}
    assert found(("a", 93, 100)) == {}


def test_of_two_the_worse_one_is_named() -> None:
    assert found(("a", 95, 100), ("b", 70, 100)) == {"b": "below"}


def test_clustered_episodes_are_worth_less() -> None:
    members = [Member("a", 95, 100), Member("b", 80, 100)]
    assert not any(one.stands_out for one in odd_ones(members, design_effect=10.0))


def test_without_episodes_there_is_no_value() -> None:
    (one,) = odd_ones([Member("a", 0, 0)])
    assert (one.value, one.interval, one.stands_out) == (None, None, None)
