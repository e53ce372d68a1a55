import numpy as np
import pytest

from gapwatch.statistics.estimates.drops import Side, rate_drop
from gapwatch.statistics.plans.allocation import Stratum, TrialBudget, allocate
from gapwatch.statistics.plans.forecast import (
    ForecastCell,
    forecast_drop,
    stratified_drop,
    told_apart,
    widest_of,
    widest_wilson,
)

RATES = (0.99, 0.95, 0.9, 0.8, 0.65, 0.5)
WEIGHTS = (0.05, 0.25, 0.12, 0.3, 0.08, 0.2)


def test_one_cell_is_newcombes_interval():
    found = stratified_drop([ForecastCell(1.0, 70, 100, 0, 90, 100)])
    published = rate_drop(Side(90, 100), Side(70, 100))
    assert (found.value, found.low, found.high) == pytest.approx(
        (published.value, published.low, published.high), abs=1e-12
    )


def test_cells_that_say_nothing_are_left_out():
    whole = stratified_drop([ForecastCell(0.5, 7, 10, 0, 9, 10)])
    with_empty = stratified_drop([ForecastCell(0.5, 7, 10, 0, 9, 10), ForecastCell(0.5, 0, 0, 0, 5, 10)])
    assert with_empty == whole
    assert stratified_drop([]).high == 1.0


def test_a_contrast_holds_one_cell_against_others():
    found = stratified_drop([ForecastCell(1.0, 40, 100, 0, 90, 100), ForecastCell(-1.0, 85, 100, 0, 90, 100)])
    assert found.value == pytest.approx(0.45)
    assert found.low > 0.25


def test_sessions_that_resemble_each_other_widen_it():
    cells = [ForecastCell(1.0, 70, 100, 0, 90, 100)]
    assert _width(cells, 2.0) > 1.2 * _width(cells)


def test_more_trials_promise_a_narrower_interval_and_the_same_plan_the_same():
    few, many = (forecast_drop([ForecastCell(1.0, 8, 10, further, 450, 500)]) for further in (20, 200))
    assert many.width < 0.6 * few.width
    assert few.low < few.width < few.high
    assert few == forecast_drop([ForecastCell(1.0, 8, 10, 20, 450, 500)])


def test_the_chance_of_settling_follows_from_the_rates():
    clear = forecast_drop([ForecastCell(1.0, 5, 20, 100, 450, 500)])
    close = forecast_drop([ForecastCell(1.0, 17, 20, 10, 450, 500)])
    assert clear.reaches > 0.99
    assert close.reaches < 0.6
    same = [ForecastCell(1.0, 9, 10, 50, 90, 100), ForecastCell(-1.0, 9, 10, 50, 90, 100)]
    assert forecast_drop(same, reached=told_apart).reaches < 0.4


def test_the_widest_cell_is_the_one_with_the_fewest():
    cells = [ForecastCell(0.5, 50, 60, 0), ForecastCell(0.5, 0, 0, 5)]
    forecast = widest_wilson(cells)
    assert 0.4 < forecast.width < 0.75
    assert widest_of([ForecastCell(1.0, 0, 0, 0)]) == 1.0


def test_the_promise_is_kept_in_most_plans():
    """Short form of `make bench-plans`: three pilot trials a stratum, 200 trials, within a fifth."""
    generator, kept = np.random.default_rng(20), []
    for _ in range(60):
        rates, weights = generator.permutation(RATES), generator.permutation(WEIGHTS)
        pilot, sim = generator.binomial(3, rates), generator.binomial(200, np.minimum(1, rates + 0.08))
        further = allocate([Stratum(w, k, 3) for w, k in zip(weights, pilot, strict=True)], TrialBudget(200))
        found = generator.binomial(further, rates)
        before, after = (
            [
                ForecastCell(w, int(k + done), 3 + (n if is_done else 0), 0 if is_done else n, int(s), 200)
                for w, k, done, n, s in zip(weights, pilot, found * is_done, further, sim, strict=True)
            ]
            for is_done in (False, True)
        )
        kept.append(abs(forecast_drop(before, runs=300).width / _width(after) - 1) <= 0.2)
    assert np.mean(kept) >= 0.93


def _width(cells, effect=1.0):
    found = stratified_drop(cells, effect)
    return found.high - found.low
