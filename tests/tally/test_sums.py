from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tally.made import DAY, NAMES, rows, steady

from gapwatch.tally.aggregate import Episodes
from gapwatch.tally.sums import DAY_S, CellContent, EpisodeGroup, Sums, month_of, without
from gapwatch.tally.values import ValueSum

SCOPE = EpisodeGroup("real", 1, 2, 3)
OTHER = EpisodeGroup("sim", 1, 2, 4)


@pytest.mark.parametrize(
    ("day", "month"),
    [
        ("1970-01-01", "1970-01-01"),
        ("2024-02-29", "2024-02-01"),
        ("2024-03-01", "2024-03-01"),
        ("2026-10-31", "2026-10-01"),
        ("2026-12-31", "2026-12-01"),
        ("2000-01-31", "2000-01-01"),
    ],
)
def test_a_day_is_in_one_month(day, month):
    seconds = [int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) for text in (day, month)]
    assert month_of(seconds[0]) == seconds[1]


@steady
@given(st.integers(0, 40_000))
def test_a_month_begins_at_most_thirty_days_before_its_day_and_is_its_own(number):
    day = number * DAY_S
    assert 0 <= day - month_of(day) <= 30 * DAY_S
    assert month_of(month_of(day)) == month_of(day)


def filled() -> Sums:
    cell = (1, None, "full", (("lighting", "dim"), ("mass_kg", "1")))
    return Sums(
        hours={(SCOPE, DAY): [5, 1, 0, 2]},
        cells={(SCOPE, DAY, cell): [5, 1, 0, 2]},
        failures={(SCOPE, DAY, cell, ("lift", ("slip",), None)): 1},
        values={(SCOPE, DAY, "signal", "success"): {"force_n": ValueSum(5, 7, 11, 0, {3: 5})}},
        sessions={(SCOPE, DAY, "a"): [5, 1]},
        contracts={(SCOPE, DAY, 8): 8},
    )


def test_adding_doubles_every_kind_and_taking_away_empties_it():
    sums = filled()
    sums.add(filled())
    assert [list(part.values()) for part in (sums.hours, sums.cells, sums.sessions)] == [
        [[10, 2, 0, 4]],
        [[10, 2, 0, 4]],
        [[10, 2]],
    ]
    assert (*sums.failures.values(), *sums.contracts.values()) == (2, 16)
    assert sums.values[SCOPE, DAY, "signal", "success"] == {"force_n": ValueSum(10, 14, 22, 0, {3: 10})}
    sums.add(filled(), -1)
    sums.add(filled(), -1)
    assert not any(any(counts) for part in (sums.hours, sums.cells, sums.sessions) for counts in part.values())
    assert (*sums.failures.values(), *sums.contracts.values()) == (0, 0)
    assert sums.values[SCOPE, DAY, "signal", "success"]["force_n"].is_empty


def test_adding_leaves_the_other_as_it_was():
    sums, other = Sums(), filled()
    sums.add(other)
    sums.add(other)
    assert other == filled()


def test_what_is_alike_apart_from_what_is_left_out_becomes_one_cell():
    bright, dim = (
        CellContent(1, None, None, (("lighting", level), ("scene", "9"))) for level in ("bright", "dim")
    )
    said = ("lift", (), None)
    sums = Sums(
        cells={
            (SCOPE, DAY, bright): [1, 2, 3, 4],
            (SCOPE, DAY, dim): [10, 0, 0, 1],
            (OTHER, DAY, dim): [7, 0, 0, 0],
        },
        failures={(SCOPE, DAY, bright, said): 2, (SCOPE, DAY, dim, said): 5, (OTHER, DAY, dim, said): 1},
    )
    sums.leave_out({(1, 2): {"lighting"}, (1, 99): {"scene"}})
    rest = (1, None, None, (("scene", "9"),))
    assert sums.cells == {(SCOPE, DAY, rest): [11, 2, 3, 5], (OTHER, DAY, rest): [7, 0, 0, 0]}
    assert sums.failures == {(SCOPE, DAY, rest, said): 7, (OTHER, DAY, rest, said): 1}


@steady
@given(st.sets(st.sampled_from(["lighting", "gripper", "mass_kg", "clutter"])), st.lists(rows, max_size=12))
def test_leaving_out_afterwards_and_beforehand_is_the_same(left_out, episodes):
    """Pooling may be decided in any step; a recomputation knows it from the start."""
    pooled = {(policy, 2): frozenset(left_out) for policy in (1, 5)}
    afterwards, beforehand = (
        Episodes(episodes, NAMES).sums(),
        Episodes(episodes, NAMES._replace(pooled=pooled)).sums(),
    )
    afterwards.leave_out(pooled)
    assert afterwards == beforehand


def test_a_cell_without_some_conditions():
    cell = CellContent(1, 2, "full", (("a", "x"), ("b", "y"), ("c", "z")))
    assert without({"a", "c", "d"}, cell) == (1, 2, "full", (("b", "y"),))
    assert without((), cell) == cell


def test_only_real_episodes_have_a_deployment():
    sums = Sums(
        hours={
            (SCOPE, DAY): [1, 0, 0, 0],
            (OTHER, DAY): [1, 0, 0, 0],
            (EpisodeGroup("real", 1, 2, 6), 0): [0, 1, 0, 0],
        }
    )
    assert sums.deployments() == {3, 6}
