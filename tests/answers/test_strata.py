"""In which strata sim and real are compared like with like, by hand."""

import pytest
from answers.cells import cell, some_cells, steady
from hypothesis import given

from gapwatch.answers.cell_table import CellTable
from gapwatch.answers.comparison_side import ComparisonSide, SideData, outcomes_of
from gapwatch.answers.strata import (
    LARGEST_HOLE,
    MOST_CROSSED,
    condition_strata,
    level_counts,
    pair_counts,
    task_strata,
)
from gapwatch.store.read.selection import (
    CellFilter,
    Scope,
    Window,
)

TASKS = {1: "pick", 2: "place", 3: "pour"}


def side(domain, cells) -> ComparisonSide:
    outcomes = outcomes_of(cells)
    return ComparisonSide(Scope(domain, (1,)), Window(), CellFilter(), outcomes, outcomes.n, SideData(cells=cells))


def test_tasks_are_strata_and_what_only_one_side_tried_has_none_of_the_other():
    sim = [cell(8, 2, task_id=1), cell(5, 0, task_id=1, robot="r1"), cell(3, 1, task_id=2), cell(0, 0, task_id=3)]
    real = [cell(1, 4, task_id=1), cell(0, 2, task_id=3)]
    found = task_strata(side("sim", sim), side("real", real), TASKS)
    assert (found.names, found.left_out) == (("task",), ())
    assert found.counts == {("pick",): (13, 15, 1, 5), ("place",): (3, 4, 0, 0), ("pour",): (0, 0, 0, 2)}


def test_conditions_that_one_side_does_not_report_are_not_crossed():
    sim = [cell(9, 1, lighting="dim", seed="1"), cell(10, 0, lighting="bright", seed="2")]
    real = [cell(3, 2, lighting="dim", operator="ann"), cell(4, 1, lighting="bright", operator="bob")]
    found = condition_strata(CellTable(sim, real))
    assert (found.names, found.left_out) == (("lighting",), ())
    assert found.counts == {("dim",): (9, 10, 3, 5), ("bright",): (10, 10, 4, 5)}


@pytest.mark.parametrize(
    ("p_rate", "q_rate", "names"), [(0.9, 0.5, ("a", "b")), (0.9, 0.2, ("a", "b")), (1.0, 0.0, ("b", "a"))]
)
def test_the_most_telling_condition_is_crossed_first(p_rate, q_rate, names):
    """By a, 0.4 of the episodes lie elsewhere in real; by b, success differs from the mean by half of p − q."""

    def side(xs, ys):
        return [
            cell(round(n * rate), n - round(n * rate), a=a, b=b)
            for a, n in (("x", xs), ("y", ys))
            for b, rate in (("p", p_rate), ("q", q_rate))
        ]

    assert condition_strata(CellTable(side(70, 30), side(30, 70))).names == names


def test_conditions_that_tell_alike_come_in_the_order_of_their_names():
    both = [cell(5, 5, b="x", a="x"), cell(5, 5, b="y", a="x"), cell(5, 5, b="x", a="y"), cell(5, 5, b="y", a="y")]
    assert condition_strata(CellTable(both, both)).names == ("a", "b")


def with_hole(lacking: int) -> CellTable:
    """Of a hundred sim episodes so many are in a combination of a and b that real lacks, though it has each level."""
    sim = [cell(30, 0, a="x", b="u"), cell(70 - lacking, 0, a="y", b="v"), cell(0, lacking, a="y", b="u")]
    return CellTable(sim, [cell(30, 20, a="x", b="u"), cell(20, 30, a="y", b="v")])


@pytest.mark.parametrize(
    ("lacking", "crossed", "left_out"), [(0, 2, 0), (5, 2, 0), (6, 1, 1), (30, 1, 1)], ids=str
)
def test_a_condition_is_crossed_in_while_the_hole_is_small(lacking, crossed, left_out):
    assert LARGEST_HOLE == 0.05
    found = condition_strata(with_hole(lacking))
    assert (len(found.names), len(found.left_out)) == (crossed, left_out)
    assert sorted(found.names + found.left_out) == ["a", "b"]


def test_a_thin_condition_does_not_keep_the_next_from_being_crossed():
    """a is the second most telling and too thin beside b; c tells next to nothing and is crossed all the same."""
    sim, real = [], []
    for c, good in (("p", 9), ("q", 8)):
        sim += [cell(good, 1, a="x", b="u", c=c), cell(good, 31, a="y", b="v", c=c), cell(5, 5, a="y", b="u", c=c)]
        real += [cell(good, 1, a="x", b="u", c=c), cell(good, 31, a="y", b="v", c=c)]
    found = condition_strata(CellTable(sim, real))
    assert (found.names, found.left_out) == (("b", "c"), ("a",))


def test_at_most_six_conditions_are_crossed():
    names = [f"n{number}" for number in range(MOST_CROSSED + 2)]
    both = [cell(9, 1, **dict.fromkeys(names, "x")), cell(1, 9, **dict.fromkeys(names, "y"))]
    found = condition_strata(CellTable(both, both))
    assert (found.names, found.left_out) == (tuple(names[:6]), tuple(names[6:]))


def test_without_a_shared_condition_there_is_one_stratum():
    found = condition_strata(CellTable([cell(9, 1, a="x")], [cell(3, 2)]))
    assert (found.names, found.counts, found.left_out) == ((), {(): (9, 10, 3, 5)}, ())


@steady
@given(some_cells, some_cells)
def test_strata_hold_every_judged_episode_once(sim, real):
    totals = tuple(
        sum(part)
        for cells in (sim, real)
        for part in ([c.successes for c in cells], [c.successes + c.failures for c in cells])
    )
    table = CellTable(sim, real)
    found = condition_strata(table)
    assert not found.names or table.hole(found.names) <= LARGEST_HOLE
    tasks = task_strata(side("sim", sim), side("real", real), TASKS)
    for counts in (found.counts, tasks.counts):
        assert tuple(sum(c[place] for c in counts.values()) for place in range(4)) == totals
    levels = level_counts(table)
    for name in {name for name, _ in levels}:
        mine = [c for (of, _), c in levels.items() if of == name]
        assert tuple(sum(c[place] for c in mine) for place in range(4)) == totals
    assert {name for name, _ in levels} == table.reported[0] | table.reported[1]


def test_levels_of_every_condition_that_either_side_reports():
    table = CellTable(
        [cell(9, 1, lighting="dim", seed="1")], [cell(3, 2, lighting="dim"), cell(1, 0, lighting="bright")]
    )
    assert level_counts(table) == {
        ("lighting", "dim"): (9, 10, 3, 5),
        ("lighting", "bright"): (0, 0, 1, 1),
        ("seed", "1"): (9, 10, 0, 0),
        ("seed", "missing"): (0, 0, 4, 6),
    }


def test_each_two_of_the_named_conditions_are_written_crossed():
    table = CellTable(
        [cell(9, 1, a="x", b="u", c="p")], [cell(3, 2, a="x", b="u", c="p"), cell(1, 0, a="y", b="u", c="p")]
    )
    assert pair_counts(table, ["b", "a", "c"]) == {
        ("b × a", "u × x"): (9, 10, 3, 5),
        ("b × a", "u × y"): (0, 0, 1, 1),
        ("b × c", "u × p"): (9, 10, 4, 6),
        ("a × c", "x × p"): (9, 10, 3, 5),
        ("a × c", "y × p"): (0, 0, 1, 1),
    }
    assert pair_counts(table, ["a"]) == {}
