import numpy as np
import pytest

from gapwatch.statistics.causes.failed_episodes import FailedEpisode, batch_of
from gapwatch.statistics.causes.label_balance import even_out
from gapwatch.statistics.causes.ledger import make_ledger
from gapwatch.statistics.causes.weighing import ledger_side, weigh
from gapwatch.taxonomy import Taxonomy

TAXONOMY = Taxonomy()


def failures(*groups):
    """(how many, phase, labels) …"""
    return batch_of([FailedEpisode(phase=phase, labels=labels) for n, phase, labels in groups for _ in range(n)])


def evened(sim, real):
    return even_out(sim, weigh(sim, TAXONOMY), real, weigh(real, TAXONOMY))


def test_unlabelled_failures_are_taken_to_be_like_labelled_ones_of_their_phase():
    sim = failures((30, "lift", ()), (10, "approach", ()))
    real = failures((6, "lift", ["too_heavy"]), (2, "lift", ["slip"]), (2, "lift", ()), (10, "approach", ()))
    of_sim, of_real, balance = evened(sim, real)
    assert balance.side == "sim"
    # Eight of ten are labelled: six heavy, two slipped; the other two, and the approaches, are what they were.
    assert of_sim.of("object_property")[:30] == pytest.approx(np.full(30, 0.6), abs=1e-3)
    assert of_sim.of("contact_dynamics")[:30] == pytest.approx(np.full(30, 0.4), abs=1e-3)
    assert of_sim.of("visual")[30:] == pytest.approx(np.ones(10))
    assert (of_sim.parts.sum(axis=1) == 1024).all()
    assert of_real.of("object_property").sum() == 6


def test_the_same_world_labelled_on_one_side_accuses_nobody():
    sim = failures((60, "lift", ()))
    real = failures((12, "lift", ["too_heavy"]), (6, "lift", ["dropped"]))
    of_sim, of_real, _ = evened(sim, real)
    sides = ledger_side(1000, 60, sim, of_sim), ledger_side(300, 18, real, of_real)
    entries = {e.category: e for e in make_ledger(*sides).entries}
    assert entries["object_property"].contribution == pytest.approx(0, abs=1e-3)
    raw = ledger_side(1000, 60, sim, weigh(sim, TAXONOMY))
    assert {e.category: e.interval[0] > 0 for e in make_ledger(raw, sides[1]).entries}["object_property"]


def test_the_other_way_round_it_is_reality_that_is_evened_out():
    sim, real = failures((20, "lift", ["too_heavy"])), failures((9, "lift", ()))
    of_sim, of_real, balance = evened(sim, real)
    assert balance.side == "real"
    assert of_real.of("object_property").sum() == 9
    assert of_sim.of("object_property").sum() == 20


@pytest.mark.parametrize(
    ("sim", "real"),
    [
        (
            failures((20, "lift", ["slip"]), (10, "lift", ())),
            failures((9, "lift", ["too_heavy"]), (1, "lift", ())),
        ),
        (failures((30, "lift", ())), failures((4, "approach", ["too_heavy"]))),
        (failures((30, "lift", ())), failures((8, "lift", ()))),
        (failures(), failures((8, "lift", ["slip"]))),
    ],
)
def test_alike_labelled_sides_and_other_phases_stay_as_they_are(sim, real):
    of_sim, of_real, _ = evened(sim, real)
    assert (of_sim.parts == weigh(sim, TAXONOMY).parts).all()
    assert (of_real.parts == weigh(real, TAXONOMY).parts).all()


def test_a_category_of_the_projects_own_is_carried_over():
    sim = failures((10, "lift", ()))
    real = batch_of([FailedEpisode(category="glue", phase="lift")] * 6)
    of_sim, _, _ = evened(sim, real)
    assert of_sim.of("glue") == pytest.approx(np.ones(10))
    assert of_sim.names[-1] == "unattributed"
