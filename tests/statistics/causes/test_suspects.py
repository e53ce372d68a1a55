"""With one cause among conditions that come together, the others are told as going together with it."""

from itertools import product

import numpy as np
import pytest

from gapwatch.statistics.causes.slices import slice_drops
from gapwatch.statistics.causes.suspects import adjust_suspects

CONDITIONS = ("c0", "c1", "c2", "c3")


def world(generator, correlation, n_real, n_sim=1000):
    """Four yes-or-no conditions; real loses 30 points where the first is yes. Counted by any of them."""

    def drawn(n):
        shared = generator.normal(size=(n, 1)) * np.sqrt(correlation)
        return (shared + generator.normal(size=(n, 4)) * np.sqrt(1 - correlation) > 0.5).astype(int)

    sim, real = drawn(n_sim), drawn(n_real)
    sides = ((sim, generator.random(n_sim) < 0.9), (real, generator.random(n_real) < 0.9 - 0.3 * real[:, 0]))

    def count(names):
        columns = [CONDITIONS.index(name) for name in names]
        counts = {}
        for key in product("01", repeat=len(names)):
            cell = []
            for levels, success in sides:
                here = np.all(levels[:, columns] == [int(level) for level in key], axis=1)
                cell += [int(success[here].sum()), int(here.sum())]
            counts[key] = tuple(cell)
        return counts

    return count


@pytest.mark.parametrize("correlation", [0.5, 0.8])
def test_suspects_are_guilty_where_conditions_are_correlated(correlation):
    generator = np.random.default_rng(1)
    innocent, suspects, found = 0, 0, 0
    for _ in range(40):
        count = world(generator, correlation, 400)
        levels = {(name, level): c for name in CONDITIONS for (level,), c in count([name]).items()}
        slices = adjust_suspects(slice_drops(levels), count)
        suspected = {(one.condition, one.level) for one in slices if one.is_suspect}
        innocent += len(suspected - {("c0", "1")})
        suspects += len(suspected)
        found += ("c0", "1") in suspected
        told = {one.goes_with for one in slices if one.goes_with is not None}
        assert told <= {f"{name} = {level}" for name, level in suspected} or innocent
    assert found >= 38
    assert innocent / suspects <= 0.1
