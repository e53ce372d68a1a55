import random
import time

import numpy as np
import pytest
from failed_episodes import SUSPECTS, TAXONOMY, USUAL, episodes
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.causes.failed_episodes import FailedBatch, FailedEpisode, batch_of
from gapwatch.statistics.causes.ledger import make_ledger
from gapwatch.statistics.causes.signal_ranges import UsualRange
from gapwatch.statistics.causes.weighing import LABELS_ONLY, Strengths, ledger_side, weigh

steady = settings(deadline=None, derandomize=True, database=None, max_examples=300)
FORCE = UsualRange(low=5, median=15, high=25, n=400)
RULE_USUAL = {
    "peak_force_n": FORCE,
    "mean_force_n": FORCE,
    "image_brightness": UsualRange(low=0.4, median=0.6, high=0.8, n=400),
    "camera_latency_ms": UsualRange(low=4, median=5, high=6, n=50),
    "loop_latency_ms_p95": UsualRange(low=4, median=5, high=6, n=20),
}


def weights_of(episode, *more, **named):
    return weigh(batch_of([episode]), *more, **named).row(0)


@pytest.mark.parametrize(
    ("episode", "weights"),
    [
        (FailedEpisode(), {"unattributed": 1}),
        (FailedEpisode(category="actuation", labels=["slip"], phase="lift"), {"actuation": 1}),
        (FailedEpisode(labels=["slip"], phase="approach"), {"contact_dynamics": 1}),
        (FailedEpisode(labels=["slip", "glare"]), {"contact_dynamics": 0.5, "visual": 0.5}),
        (FailedEpisode(labels=["slip", "dropped", "slip", "glare"]), {"contact_dynamics": 2 / 3, "visual": 1 / 3}),
        (FailedEpisode(labels=["timeout"], phase="lift"), {"contact_dynamics": 1}),
        (FailedEpisode(phase="place"), {"unattributed": 1}),
        (FailedEpisode(signals={"peak_force_n": 31.2}), {"contact_dynamics": 0.8, "unattributed": 0.2}),
        (FailedEpisode(signals={"peak_force_n": 27.5}), {"contact_dynamics": 0.4, "unattributed": 0.6}),
        (FailedEpisode(signals={"peak_force_n": 24}), {"unattributed": 1}),
        (
            FailedEpisode(signals={"peak_force_n": 99, "mean_force_n": 99, "image_brightness": 0.1}),
            {"visual": 0.8, "contact_dynamics": 0.16, "unattributed": 0.04},
        ),
        (
            FailedEpisode(signals={"camera_latency_ms": 99, "image_brightness": 0.1}),
            {"latency_timing": 0.4, "visual": 0.4, "unattributed": 0.2},
        ),
        (
            FailedEpisode(phase="grasp", signals={"image_brightness": 0.1}),
            {"visual": 0.8, "contact_dynamics": 0.2},
        ),
        (FailedEpisode(signals={"loop_latency_ms_p95": 900, "unheard_of": 1}), {"unattributed": 1}),
        (FailedEpisode(conditions={"lighting": "dim"}), {"visual": 0.5, "unattributed": 0.5}),
        (FailedEpisode(conditions={"lighting": "bright"}), {"unattributed": 1}),
        (
            FailedEpisode(phase="lift", conditions={"object": "glass", "lighting": "dim"}),
            {"contact_dynamics": 1 / 2, "object_property": 1 / 4, "visual": 1 / 4},
        ),
        (
            FailedEpisode(phase="lift", signals={"image_brightness": 0.35}, conditions={"lighting": "dim"}),
            {"visual": 0.4 + 0.3, "contact_dynamics": 0.3},
        ),
    ],
)
def test_evidence_is_weighed_in_the_order_of_the_rule(episode, weights):
    suspects = {("lighting", "dim"), ("object", "glass")}
    assert weights_of(episode, TAXONOMY, RULE_USUAL, suspects) == pytest.approx(weights, abs=1 / 1024)


def test_a_value_weighs_as_much_as_it_can_be_blamed_for():
    usual = {"image_brightness": UsualRange(low=0.4, median=0.6, high=0.8, n=400, above=0.25, below=0)}
    bright, dark = (FailedEpisode(phase="lift", signals={"image_brightness": x}) for x in (2, 0.01))
    assert weights_of(bright, TAXONOMY, usual) == {"visual": 0.25, "contact_dynamics": 0.75}
    assert weights_of(dark, TAXONOMY, usual) == {"contact_dynamics": 1}


def test_a_signal_that_never_moves_in_sim_is_unusual_at_any_other_value():
    still = {"imu_bias": UsualRange(0, 0, 0, n=1000)}
    for value, share in ((0, 0), (3, 0.8), (-0.001, 0.8)):
        weights = weights_of(FailedEpisode(signals={"imu_bias": value}), TAXONOMY, still)
        assert weights.get("sensor_noise", 0) == pytest.approx(share, abs=1 / 1024)
    few = {"imu_bias": UsualRange(0, 0, 0, n=49)}
    assert weights_of(FailedEpisode(signals={"imu_bias": 9}), TAXONOMY, few) == {"unattributed": 1}


def test_a_project_may_trust_a_phase_less():
    weights = weights_of(FailedEpisode(phase="lift"), TAXONOMY, strengths=Strengths(phase=0.5))
    assert weights == {"contact_dynamics": 0.5, "unattributed": 0.5}


@steady
@given(st.lists(episodes, max_size=12), st.sampled_from([Strengths(), Strengths(0.7, 0.9, 0.35, 0.3)]))
def test_all_rows_at_once_get_the_weights_of_each_alone(some, strengths):
    # A condition the episode lacks is None in its row; suspects name None only where the episode may have it.
    suspects = SUSPECTS - {("object", None)}
    weights = weigh(batch_of(some), TAXONOMY, USUAL, suspects, strengths)
    alone = [weights_of(episode, TAXONOMY, USUAL, suspects, strengths) for episode in some]
    assert [weights.row(row) for row in range(len(some))] == alone
    assert (weights.parts.sum(axis=1) == 1024).all()
    assert (weights.parts >= 0).all()


@steady
@given(episodes, st.randoms())
def test_the_order_in_which_evidence_is_written_does_not_matter(episode, chance):
    def shuffled(items):
        items = list(items)
        chance.shuffle(items)
        return items

    again = FailedEpisode(
        episode.category,
        shuffled(episode.labels),
        episode.phase,
        dict(shuffled((episode.signals or {}).items())),
        dict(shuffled((episode.conditions or {}).items())),
    )
    first, second = (weights_of(one, TAXONOMY, USUAL, SUSPECTS) for one in (episode, again))
    assert first == second


@steady
@given(st.lists(episodes, max_size=12))
def test_what_people_and_labels_decide_is_the_same_by_labels_only(some):
    whole, by_labels = (
        weigh(batch_of(some), TAXONOMY, USUAL, SUSPECTS, strengths) for strengths in (Strengths(), LABELS_ONLY)
    )
    assert (whole.decided == by_labels.decided).all()
    assert (whole.parts[whole.decided] == by_labels.parts[whole.decided]).all()
    # Nothing is said of the others.
    assert (by_labels.of("unattributed")[~whole.decided] == 1).all()


def test_sums_of_weights_are_exact_in_any_order():
    chance = random.Random(5)
    some = [
        FailedEpisode(labels=chance.sample(["slip", "glare", "ood", "lag"], 3), phase="lift") for _ in range(1000)
    ]
    weights = weigh(batch_of(some), TAXONOMY).of("visual").tolist()
    sums = set()
    for _ in range(20):
        chance.shuffle(weights)
        sums.add((sum(weights), sum(w * w for w in weights)))
    assert len(sums) == 1


def test_a_side_adds_up_and_counts_rows_that_stand_for_several():
    some = [FailedEpisode(labels=["slip"]), FailedEpisode(phase="perceive"), FailedEpisode()]
    batch = batch_of(some, counts=[4, 2, 3])
    side = ledger_side(100, 9, batch, weigh(batch, TAXONOMY))
    assert side.totals == {"contact_dynamics": 4, "visual": 2}
    assert side.squares == {"contact_dynamics": 4, "visual": 2, "unattributed": 3}
    nothing = batch_of([])
    ledger = make_ledger(ledger_side(50, 0, nothing, weigh(nothing, TAXONOMY)), side)
    assert ledger.drop == pytest.approx(0.09)
    assert sum(e.contribution for e in ledger.entries) + ledger.unattributed.contribution == pytest.approx(0.09)


def test_sessions_carry_their_own_sums():
    some = [FailedEpisode(labels=["slip"]), FailedEpisode(labels=["slip"]), FailedEpisode(labels=["glare"])]
    batch = batch_of(some, sessions=["am", "pm", "pm"])
    side = ledger_side(30, 3, batch, weigh(batch, TAXONOMY), {"am": (10, 1), "pm": (10, 2), "night": (10, 0)})
    assert [(s.n, s.failures, dict(s.totals)) for s in side.sessions] == [
        (10, 1, {"contact_dynamics": 1}),
        (10, 2, {"contact_dynamics": 1, "visual": 1}),
        (10, 0, {}),
    ]


def test_two_thousand_failed_episodes_are_weighed_in_twenty_milliseconds():
    chance = np.random.default_rng(4)
    n = 2000
    names = ["peak_force_n", "image_brightness", "loop_latency_ms", "imu_bias", "payload_kg", "depth_noise_mm",
             "tracking_rmse_rad", "calibration_residual_mm", "slip_mm", "clutter_count", "ood_score", "jitter_ms"]  # fmt: skip
    batch = FailedBatch(
        np.ones(n),
        [None] * n,
        [["slip"] if x else [] for x in chance.random(n) < 0.3],
        chance.choice(["lift", "approach", "place"], n).tolist(),
        {c: chance.choice(["a", "b", "c"], n).tolist() for c in ("lighting", "object", "surface", "clutter")},
        {name: chance.normal(size=n) for name in names},
    )
    usual = {name: UsualRange(-1.5, 0, 1.5, n=500) for name in names}
    suspects = {("lighting", "a"), ("object", "b")}
    best = min(_timed(lambda: weigh(batch, TAXONOMY, usual, suspects)) for _ in range(7))
    assert best < 0.02


def _timed(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
