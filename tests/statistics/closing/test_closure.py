import numpy as np
import pytest

from bench.closing import measure, run
from bench.closing_worlds import WORLDS, World, play
from gapwatch.statistics.closing.closure import (
    PeriodCounts,
    design_effect,
    matched_change,
    measure_closure,
    verdict_of,
)
from gapwatch.statistics.closing.regression_to_mean import Peer


def counts(before, after, *, weights=None) -> PeriodCounts:
    """Successes and episodes of each condition, before and after."""
    strata = {(name,): (*before[name], *after[name]) for name in before}
    return PeriodCounts(strata, weights=weights or {})


def test_a_change_of_the_mix_alone_closes_nothing():
    one = counts({"easy": (180, 200), "hard": (50, 100)}, {"easy": (90, 100), "hard": (100, 200)})
    change = matched_change(one)
    assert change is not None and change.value == pytest.approx(0.0)
    assert change.mix == pytest.approx(190 / 300 - 230 / 300)
    assert measure_closure({"here": one}, {}).verdict == "too few episodes"


def test_what_the_controls_gained_too_is_not_the_fix():
    mine = counts({"": (60, 100)}, {"": (80, 100)})
    others = counts({"": (600, 1000)}, {"": (720, 1000)})
    alone = measure_closure({"r1": mine}, {})
    against = measure_closure({"r1": mine}, {"r2": others})
    assert alone.points == pytest.approx(0.2) and alone.verdict == "closed"
    assert against.control_change is not None and against.control_change.value == pytest.approx(0.12)
    assert against.points == pytest.approx(0.08, abs=0.01)
    assert against.verdict == "too few episodes"


def test_categories_add_up_to_the_change_at_matched_conditions():
    strata = {"": (70, 100), "x": (30, 50)}
    after = {"": (170, 200), "x": (60, 80)}
    weights = {
        "contact_dynamics": {("",): (20.0, 10.0), ("x",): (15.0, 12.0)},
        "visual": {("",): (4.0, 11.0), ("x",): (2.5, 3.0)},
        "unattributed": {("",): (6.0, 9.0), ("x",): (2.5, 5.0)},
    }
    change = matched_change(counts(strata, after, weights=weights))
    assert change is not None
    assert sum(one.value for one in change.by_category.values()) == pytest.approx(change.value, abs=1e-12)
    closed = measure_closure({"here": counts(strata, after, weights=weights)}, {}, aimed_at="visual")
    assert closed.per_category[0].category == "visual"
    assert closed.per_category[0].regression_subtracted is None, "contact cost more, so visual was not the worst"


def test_a_category_that_cost_most_has_its_regression_subtracted():
    weights = {
        name: {("",): (before, before)}
        for name, before in (("contact_dynamics", 8.0), ("visual", 4.0), ("actuation", 3.0), ("sensor_noise", 5.0))
    }
    closed = measure_closure(
        {"here": counts({"": (30, 50)}, {"": (30, 50)}, weights=weights)}, {}, aimed_at="contact_dynamics"
    )
    aimed = closed.per_category[0]
    assert aimed.regression_subtracted is not None and aimed.regression_subtracted > 0
    assert aimed.points == pytest.approx(-aimed.regression_subtracted)


def test_the_worst_of_its_kind_has_its_regression_subtracted_and_another_has_not():
    mine = counts({"": (15, 30)}, {"": (24, 30)})
    peers = [Peer(24, 30)] * 11
    picked = measure_closure({"dim": mine}, {}, others=peers)
    assert picked.was_worst and picked.regression_subtracted is not None and picked.regression_subtracted > 0.1
    assert picked.points == pytest.approx(0.3 - picked.regression_subtracted)
    another = measure_closure({"dim": mine}, {}, others=[Peer(9, 30), *peers])
    assert not another.was_worst and another.regression_subtracted is None
    assert another.points == pytest.approx(0.3)


def test_too_few_episodes_are_a_result_with_a_reason():
    nothing = measure_closure({"r1": counts({"": (3, 4)}, {"": (40, 50)})}, {})
    assert (nothing.points, nothing.verdict) == (None, "too few episodes")
    assert nothing.reason == "Fewer than 5 real episodes before the fix."
    apart = PeriodCounts({("a",): (5, 10, 0, 0), ("b",): (0, 0, 5, 10)})
    assert measure_closure({"r1": apart}, {}).reason == "No condition was tried both before and after."
    assert measure_closure({}, {}).verdict == "too few episodes"


@pytest.mark.parametrize(
    ("points", "interval", "expected", "verdict"),
    [
        (0.14, (0.08, 0.2), 0.15, "closed"),
        (-0.1, (-0.2, -0.01), 0.15, "worse"),
        (0.01, (-0.02, 0.04), None, "did nothing"),
        (0.02, (-0.02, 0.06), 0.15, "did nothing"),
        (0.02, (-0.02, 0.06), None, "too few episodes"),
        (0.07, (-0.01, 0.15), 0.15, "too few episodes"),
    ],
)
def test_that_nothing_was_done_needs_evidence_too(points, interval, expected, verdict):
    assert verdict_of(points, interval, expected) == verdict


def test_clusters_widen_and_one_cluster_says_nothing():
    alike = [(10, 10), (0, 10), (10, 10), (0, 10), (10, 10)]
    assert design_effect([alike]) > 5
    assert design_effect([[(15, 50)]]) == design_effect([]) == 1.0
    assert design_effect([[(8, 10)] * 5, alike]) == design_effect([alike])


def test_controls_that_change_apart_widen_the_interval():
    mine = counts({"": (300, 400)}, {"": (300, 400)})
    alike = {name: counts({"": (300, 400)}, {"": (300, 400)}) for name in "abcd"}
    apart = {
        name: counts({"": (300, 400)}, {"": (k, 400)})
        for name, k in zip("abcd", (360, 240, 350, 250), strict=True)
    }
    narrow, wide = (measure_closure({"r": mine}, one).interval for one in (alike, apart))
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])


def test_placebos_are_not_credited_and_a_true_fix_is():
    """A short run of bench/closing, whose thousand a world are in bench/README.md."""
    rows = [run(world, 7, seed=7 + number) for number, world in enumerate(WORLDS)]
    assert np.mean([row.covers_zero for row in rows]) >= 0.93
    assert abs(np.mean([row.true_credited for row in rows]) - 15) < 5


def test_a_placebo_on_the_worst_slice_would_be_credited_without_the_regression():
    world = World("worst of 12 slices × 30", 12, days=1, each=30, mix=(0.0, 0.0), picked=True)
    random = np.random.default_rng(3)
    trials = [play(world, random) for _ in range(60)]
    assert 0.09 < np.mean([trial.regained for trial in trials]) < 0.16
    assert abs(np.mean([measure(world, trial).points for trial in trials])) < 0.06
