from itertools import pairwise

import pytest

from gapwatch.statistics.plans.allocation import (
    FEWEST_A_CELL,
    Stratum,
    TrialBudget,
    allocate,
    neyman,
    smoothed_rate,
    variance,
    whole,
)

SIZES, SPREADS = (3000, 4000, 5000, 2000), (48, 79, 76, 16)
PRODUCTS = [size * spread for size, spread in zip(SIZES, SPREADS, strict=True)]


def test_neyman_of_the_published_strata():
    """Wesołowski, Wieczorkowski & Wójciak, `stratallo`."""
    assert neyman(PRODUCTS, 190) == pytest.approx([31.376147, 68.853211, 82.798165, 6.972477], abs=1e-6)
    upper = neyman(PRODUCTS, 190, highest=[100, 90, 70, 80])
    assert upper == pytest.approx([35.121951, 77.073171, 70, 7.804878], abs=1e-6)
    assert neyman(PRODUCTS, 190, lowest=[50, 120, 1, 2]) == pytest.approx([50, 120, 18, 2], abs=1e-9)


def test_the_published_whole_numbers():
    """Särndal, Swensson & Wretman's municipalities."""
    products = [5234 * 251, 2586 * 1165, 649 * 8035, 157 * 24725]
    assert whole(neyman(products, 500), 500) == [49, 112, 194, 145]


def test_bounds_on_both_sides_are_met_and_the_total_too():
    sizes = neyman(PRODUCTS, 190, [10, 10, 90, 10], [20, 200, 200, 200])
    assert sizes[0] == pytest.approx(20)
    assert sizes[2] == pytest.approx(90)
    assert sum(sizes) == pytest.approx(190)


def test_what_cannot_be_met_gives_the_bounds():
    assert neyman([1, 1], 3, lowest=[2, 2]) == [2, 2]
    assert neyman([1, 1], 9, highest=[2, 2]) == [2, 2]


def test_strata_without_spread_are_split_evenly():
    assert neyman([0, 0], 10) == pytest.approx([5, 5])


def test_a_clean_pilot_is_not_taken_for_a_rate_of_one():
    assert smoothed_rate(3, 3) == pytest.approx(0.8)
    strata = [Stratum(0.5, 3, 3), Stratum(0.5, 2, 3)]
    first, second = allocate(strata, TrialBudget(100))
    assert first >= 0.4 * second


def test_at_least_five_a_cell_and_all_of_the_budget():
    strata = [Stratum(0.02, 9, 10), Stratum(0.49, 5, 10), Stratum(0.49, 8, 10)]
    further = allocate(strata, TrialBudget(60))
    assert sum(further) == 60
    assert all(n == 0 or n >= FEWEST_A_CELL for n in further)


def test_a_budget_for_no_cell_plans_nothing():
    assert allocate([Stratum(1.0, 0, 0)], TrialBudget(4)) == [0]


def test_empty_cells_come_first_however_small_their_share():
    strata = [Stratum(0.9, 50, 100), *(Stratum(0.02, 0, 0, is_urgent=True) for _ in range(5))]
    further = allocate(strata, TrialBudget(25))
    assert further == [0, 5, 5, 5, 5, 5]
    assert allocate(strata, TrialBudget(12))[0] == 0


def test_set_up_costs_reduce_how_many_cells_are_visited():
    strata = [Stratum(0.1, 5, 10) for _ in range(10)]
    budgets = [TrialBudget(None, 600.0, setup, 2.0) for setup in (0.0, 45.0, 120.0)]
    plans = [allocate(strata, budget) for budget in budgets]
    visits = [sum(n > 0 for n in further) for further in plans]
    assert visits[0] == 10
    assert all(more > fewer for more, fewer in pairwise(visits))
    for budget, further, count in zip(budgets, plans, visits, strict=True):
        assert budget.minutes_of(sum(further), count) <= 600
    in_trials = [allocate(strata, TrialBudget(300, None, setup, 2.0)) for setup in (0.0, 100.0)]
    assert [sum(further) for further in in_trials] == [300, 300]
    assert [sum(n > 0 for n in further) for further in in_trials] == [10, 6]


def test_the_plan_is_better_than_an_even_split():
    strata = [Stratum(0.6, 30, 60), Stratum(0.3, 59, 60), Stratum(0.1, 59, 60)]
    further = allocate(strata, TrialBudget(90))
    assert variance(strata, further) < variance(strata, [30, 30, 30])
