import numpy as np
import pytest

from gapwatch.statistics.gates.criteria import Reference
from gapwatch.statistics.gates.mix import in_mix_of

WHOLE, CELLS = Reference(900, 1000), [Reference(760, 800), Reference(140, 200)]


def test_a_reference_in_its_own_mix_is_what_it_was():
    found, rates = in_mix_of(WHOLE, CELLS, [0] * 80 + [1] * 20)
    assert found.value == pytest.approx(0.9)
    # Strata known apart tell a little more than their sum.
    assert found.n == pytest.approx(1000 * 0.09 / (0.8 * 0.95 * 0.05 + 0.2 * 0.7 * 0.3), rel=0.01)
    assert rates.mean() == pytest.approx(0.9) and set(np.round(rates, 6)) == {0.95, 0.7}


def test_a_mix_that_simulation_hardly_had_is_worth_few_episodes():
    found, _ = in_mix_of(WHOLE, CELLS, [0] * 5 + [1] * 95)
    assert found.value == pytest.approx(0.7125)
    assert 190 < found.n < 230


def test_without_cells_or_episodes_the_whole_reference_stands():
    assert in_mix_of(WHOLE, [], [-1] * 5)[0] == WHOLE
    assert in_mix_of(WHOLE, CELLS, [])[0] == WHOLE
    assert in_mix_of(WHOLE, CELLS, [-1] * 5)[0] == WHOLE
    assert in_mix_of(WHOLE, CELLS, [1] * 5)[0] == CELLS[1]
