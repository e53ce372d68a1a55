"""The short version of `bench/attribution.py`; the long one and its figures are in bench/README.md."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from gapwatch.demo.experiment import TAXONOMY, batch_of_side, ledger_of, true_contributions, two_sides
from gapwatch.demo.gaps import GAPS
from gapwatch.statistics.causes.failed_episodes import FailedEpisode, batch_of
from gapwatch.statistics.causes.weighing import weigh

SEEDS = 8


def found_share(labelled, n_real, gaps=tuple(GAPS)):
    hits = [
        ledger_of(*two_sides((gap,), n_real, seed, labelled=labelled)).entries[0].category == GAPS[gap].category
        for gap in gaps
        for seed in range(700, 700 + SEEDS)
    ]
    return sum(hits) / len(hits)


def test_with_labels_the_largest_bar_is_the_cause():
    assert found_share(labelled=True, n_real=100) >= 0.95


def test_without_labels_signals_find_the_cause():
    assert found_share(labelled=False, n_real=100) >= 0.80


def test_with_thirty_real_episodes_and_no_labels_the_cause_is_still_found_more_often_than_not():
    assert found_share(labelled=False, n_real=30) >= 0.6


@pytest.mark.parametrize(("labelled", "in_sim"), [(True, True), (True, False), (False, False)])
def test_without_a_gap_no_category_is_accused(labelled, in_sim):
    # 80 runs: 5 % would be 4; nine or more have a chance of 1 in 50 at 5 %.
    excluded = Counter()
    for seed in range(80):
        sim, real = two_sides((), 100, 40_000 + seed, labelled=labelled)
        ledger = ledger_of(sim if in_sim else replace(sim, labels=None), real)
        for entry in (*ledger.entries, ledger.unattributed):
            if entry.interval and (entry.interval[0] > 0 or entry.interval[1] < 0):
                excluded[entry.category] += 1
    assert max(excluded.values(), default=0) <= 8, excluded


def test_the_truth_of_two_gaps_adds_up_to_what_both_cost():
    alone = {gap: true_contributions((gap,), True) for gap in ("latency", "dim light")}
    both = true_contributions(("latency", "dim light"), True)
    for gap, only in alone.items():
        category = GAPS[gap].category
        # A policy that fails to see never comes to be late, so together they cost less than one by one.
        assert 0.5 * only[category] < both[category] <= only[category] + 1e-9


def test_columns_and_records_are_weighed_alike():
    sim, real = two_sides(("heavy object",), 200, 3, labelled=True)
    found = weigh(batch_of_side(real), TAXONOMY)
    rows = np.flatnonzero(real.run.failed).tolist()
    for row, parts in zip(rows, found.matrix.tolist(), strict=True):
        episode = FailedEpisode(labels=real.labels[row], phase=real.run.phases[real.run.failed_in[row]])
        there = {name: part for name, part in zip(found.names, parts, strict=True) if part}
        assert there == weigh(batch_of([episode]), TAXONOMY).row(0)
    assert len(rows) > 20
    assert not sim.run.causes[~sim.run.failed].any()
