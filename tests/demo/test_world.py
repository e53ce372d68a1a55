from dataclasses import replace

import numpy as np
import pytest

from gapwatch.demo.gaps import GAPS, with_gaps
from gapwatch.demo.labels import CAUSE_LABELS, label_failures
from gapwatch.demo.world import REAL, SIM, draw_scene, run
from gapwatch.taxonomy import CATEGORIES, Taxonomy

TAXONOMY = Taxonomy()


def scene(n=20_000, handover=True, seed=3):
    return draw_scene(n, np.random.default_rng(seed), handover=handover)


def test_without_a_gap_real_differs_in_its_signals_and_not_in_its_outcomes():
    same = scene()
    sim, real = run(SIM, same), run(REAL, same)
    assert (sim.failed == real.failed).mean() > 0.999
    assert 0.92 < 1 - sim.failed.mean() < 0.96
    for name in ("loop_latency_ms_p95", "depth_noise_mm", "image_blur_px", "tracking_rmse_rad"):
        assert np.nanmedian(real.signals[name]) > np.nanquantile(sim.signals[name], 0.8)


@pytest.mark.parametrize("name", GAPS)
def test_each_gap_costs_much_and_most_failures_are_its_own(name):
    same = scene()
    found = run(with_gaps(name), same)
    drop = found.failed.mean() - run(REAL, same).failed.mean()
    assert 0.15 < drop < 0.4
    causes = found.causes[found.failed]
    assert (causes == GAPS[name].category).mean() > 0.7
    assert set(causes.tolist()) <= {*CATEGORIES, "unattributed"}
    assert (found.causes[~found.failed] == "").all()


def test_what_was_not_reached_was_not_measured():
    found = run(with_gaps("dim light"), scene(2000))
    stopped = found.failed_in == 0
    assert np.isnan(found.signals["slip_mm"][stopped]).all()
    assert np.isfinite(found.signals["image_brightness"]).all()
    assert np.isfinite(found.signals["slip_mm"][found.failed_in < 0]).all()


def test_signals_and_labels_speak_the_taxonomys_words():
    found = run(with_gaps(), scene(10))
    pointless = [name for name in found.signals if not TAXONOMY.categories_of("signals", name)]
    assert pointless == []
    for category, label in CAUSE_LABELS.items():
        assert TAXONOMY.categories_of("labels", label) == (category,)


def test_people_mostly_name_the_cause():
    found = run(with_gaps("heavy object"), scene(5000))
    labels = label_failures(found, np.random.default_rng(1))
    assert all(not said for said, failed in zip(labels, found.failed, strict=True) if not failed)
    of_cause = [said for said, cause in zip(labels, found.causes, strict=True) if cause == "object_property"]
    share = sum(said == ["too_heavy"] for said in of_cause) / len(of_cause)
    assert 0.7 < share < 0.8
    assert ["dropped"] in of_cause
    assert [] in of_cause


def test_a_quantity_may_change_from_episode_to_episode():
    same = scene(20_000)
    latency = np.where(np.arange(20_000) % 2 == 0, 7.5, 36.0)
    found = run(replace(REAL, latency_ms=latency), same)
    assert found.failed[1::2].mean() - found.failed[::2].mean() > 0.2
