"""Both sides by the levels of any conditions, counted by hand."""

from collections import defaultdict

import pytest
from answers.cells import cell, some_cells, steady
from hypothesis import given
from hypothesis import strategies as st

from gapwatch.answers.cell_table import CellTable
from gapwatch.levels import MISSING

NAMES = ["lighting", "object", "surface", "never named"]
SIM = [
    cell(90, 10, lighting="dim", object="mug"),
    cell(50, 0, lighting="bright", object="mug"),
    cell(7, 3, lighting="bright", object="glass", robot="r1"),
    cell(1, 1, lighting="bright", object="glass", robot="r2"),
]
REAL = [
    cell(6, 4, lighting="dim", object="mug"),
    cell(2, 0, lighting="dim"),
    cell(0, 5, lighting="bright", object="glass"),
]


def by_hand(sim, real, names):
    """Successes and episodes of both sides, one cell after the other."""
    found = defaultdict(lambda: [0, 0, 0, 0])
    for place, cells in ((0, sim), (2, real)):
        for one in cells:
            if one.successes + one.failures:
                counts = found[tuple(one.cell.levels.get(name, MISSING) for name in names)]
                counts[place] += one.successes
                counts[place + 1] += one.successes + one.failures
    return {key: tuple(counts) for key, counts in found.items()}


def test_one_condition_is_counted_over_all_others():
    assert CellTable(SIM, REAL).count(["lighting"]) == {("dim",): (90, 100, 8, 12), ("bright",): (58, 62, 0, 5)}


def test_a_condition_that_is_not_named_is_a_level():
    assert CellTable(SIM, REAL).count(["object"]) == {
        ("mug",): (140, 150, 6, 10),
        ("glass",): (8, 12, 0, 5),
        (MISSING,): (0, 0, 2, 2),
    }


def test_two_conditions_are_crossed_in_the_order_in_which_they_are_asked_for():
    found = CellTable(SIM, REAL).count(["object", "lighting"])
    assert found == {
        ("mug", "dim"): (90, 100, 6, 10),
        ("mug", "bright"): (50, 50, 0, 0),
        ("glass", "bright"): (8, 12, 0, 5),
        (MISSING, "dim"): (0, 0, 2, 2),
    }
    assert list(found) == [("mug", "dim"), ("mug", "bright"), ("glass", "bright"), (MISSING, "dim")]


def test_no_condition_is_one_group_of_everything():
    assert CellTable(SIM, REAL).count([]) == {(): (148, 162, 8, 17)}


def test_counts_are_plain_integers_for_json():
    [counts] = CellTable(SIM, REAL).count([]).values()
    assert {type(count) for count in counts} == {int}


def test_cells_in_which_nothing_was_judged_are_not_there():
    table = CellTable([cell(0, 0, lighting="dim", object="mug")], [cell(1, 0, lighting="bright")])
    assert table.count(["lighting"]) == {("bright",): (0, 0, 1, 1)}
    assert table.reported == (set(), {"lighting"})


def test_without_cells_there_is_nothing_to_count():
    table = CellTable([], [])
    assert (table.count([]), table.count(["lighting"]), table.reported, table.hole([])) == (
        {},
        {},
        (set(), set()),
        0,
    )


def test_each_side_reports_the_conditions_that_its_episodes_name():
    sim, real = [cell(1, 0, lighting="dim"), cell(1, 0)], [cell(0, 1, object="mug"), cell(2, 0, lighting="dim")]
    assert CellTable(sim, real).reported == ({"lighting"}, {"lighting", "object"})


@pytest.mark.parametrize(
    ("sim", "real", "names", "hole"),
    [
        # Both have each level and each combination.
        ([cell(5, 5, a="x"), cell(5, 5, a="y")], [cell(1, 0, a="x"), cell(1, 0, a="y")], ["a"], 0),
        # A level that one side lacks is off-support, not a hole.
        ([cell(5, 5, a="x"), cell(5, 5, a="y")], [cell(1, 0, a="x")], ["a"], 0),
        # Of sim's 40 episodes 10 are in a combination that real lacks though it has x and v.
        (
            [
                cell(10, 0, a="x", b="u"),
                cell(5, 5, a="x", b="v"),
                cell(10, 0, a="y", b="u"),
                cell(10, 0, a="y", b="v"),
            ],
            [cell(1, 0, a="x", b="u"), cell(1, 0, a="y", b="u"), cell(1, 1, a="y", b="v")],
            ["a", "b"],
            0.25,
        ),
        # Three of real's four, and one of sim's three: the larger share counts.
        (
            [cell(1, 0, a="x", b="u"), cell(1, 0, a="y", b="v"), cell(1, 0, a="x", b="v")],
            [cell(3, 0, a="y", b="u"), cell(1, 0, a="x", b="v")],
            ["a", "b"],
            0.75,
        ),
        # z is sim's alone and counts for neither side: what remains has no hole.
        (
            [cell(10, 0, a="x", b="u"), cell(90, 0, a="z", b="u")],
            [cell(1, 0, a="x", b="u")],
            ["a", "b"],
            0,
        ),
        # Nothing in common at all.
        ([cell(1, 0, a="x")], [cell(1, 0, a="y")], ["a"], 0),
    ],
)
def test_a_hole_is_what_one_side_lacks_though_it_has_each_level(sim, real, names, hole):
    assert CellTable(sim, real).hole(names) == pytest.approx(hole)
    assert CellTable(real, sim).hole(names) == pytest.approx(hole)


@steady
@given(some_cells, some_cells, st.lists(st.sampled_from(NAMES), unique=True))
def test_any_conditions_are_counted_as_one_by_one(sim, real, names):
    assert CellTable(sim, real).count(names) == by_hand(sim, real, names)


@steady
@given(some_cells, some_cells, st.permutations(NAMES[:3]))
def test_the_parts_of_a_group_add_up_to_it_whatever_was_asked_before(sim, real, names):
    """Groups are kept from one question to the next: no answer may depend on which came first."""
    table = CellTable(sim, real)
    for width in (3, 1, 2, 0):
        asked = names[:width]
        whole = table.count(asked)
        added = defaultdict(lambda: [0, 0, 0, 0])
        for key, counts in table.count(names).items():
            for place, count in enumerate(counts):
                added[key[:width]][place] += count
        assert whole == {key: tuple(counts) for key, counts in added.items()}
        assert 0 <= table.hole(asked) <= 1


@steady
@given(some_cells, some_cells, st.randoms(use_true_random=False))
def test_the_order_of_cells_changes_no_number(sim, real, chance):
    before = CellTable(sim, real)
    shuffled = [list(sim), list(real)]
    for cells in shuffled:
        chance.shuffle(cells)
    after = CellTable(*shuffled)
    assert after.count(NAMES) == before.count(NAMES)
    assert after.reported == before.reported
    assert after.hole(["lighting", "object"]) == pytest.approx(before.hole(["lighting", "object"]))


def test_cells_that_share_their_levels_are_added_and_equal_ones_too():
    """Cells of a side share one mapping where they are read from one row; equal ones may still be two objects."""
    shared = cell(1, 2, lighting="dim", object="mug")
    other = shared._replace(cell=shared.cell._replace(robot="r9"))
    equal = cell(10, 0, object="mug", lighting="dim")
    assert other.cell.levels is shared.cell.levels
    assert CellTable([shared, other, equal], [shared]).count(["lighting", "object"]) == {
        ("dim", "mug"): (12, 16, 1, 3)
    }
