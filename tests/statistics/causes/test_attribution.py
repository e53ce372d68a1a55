import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.causes.attribution import (
    FailedEpisode,
    Strengths,
    UsualRange,
    attribute,
    unusual,
)
from gapwatch.taxonomy import CATEGORIES, Taxonomy

steady = settings(deadline=None, derandomize=True, database=None)
TAXONOMY = Taxonomy()
FORCE = UsualRange(low=5, median=15, high=25, n=400)
USUAL = {
    "peak_force_n": FORCE,
    "mean_force_n": FORCE,
    "image_brightness": UsualRange(low=0.4, median=0.6, high=0.8, n=400),
    "camera_latency_ms": UsualRange(low=4, median=5, high=6, n=50),
    "loop_latency_ms_p95": UsualRange(low=4, median=5, high=6, n=20),
}


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
    found = attribute(episode, TAXONOMY, USUAL, {("lighting", "dim"), ("object", "glass")})
    assert dict(found.weights) == pytest.approx(weights, abs=1 / 1024)


def test_the_page_is_told_why():
    episode = FailedEpisode(labels=["slip"], signals={"peak_force_n": 31.2}, conditions={"lighting": "dim"})
    found = attribute(episode, TAXONOMY, USUAL, {("lighting", "dim")})
    assert [str(line) for line in found.evidence] == [
        "label slip → contact_dynamics",
        "signal peak_force_n 31.2 is above 99 % of sim successes → contact_dynamics",
        "lighting dim, where real fails more → visual",
    ]
    assert [line.strength for line in found.evidence] == [1, 0, 0]


def test_a_signal_that_never_moves_in_sim_is_unusual_at_any_other_value():
    still = UsualRange(low=0, median=0, high=0, n=1000)
    assert unusual(0, still) is None
    assert unusual(3, still) == (0.8, "above")
    assert unusual(-0.001, still) == (0.8, "below")
    assert unusual(9, UsualRange(0, 0, 0, n=49)) is None


def test_a_value_weighs_as_much_as_it_can_be_blamed_for():
    usual = {"image_brightness": UsualRange(low=0.4, median=0.6, high=0.8, n=400, above=0.25, below=0)}
    bright, dark = (FailedEpisode(phase="lift", signals={"image_brightness": x}) for x in (2, 0.01))
    assert attribute(bright, TAXONOMY, usual).weights == {"visual": 0.25, "contact_dynamics": 0.75}
    found = attribute(dark, TAXONOMY, usual)
    assert found.weights == {"contact_dynamics": 1}
    assert str(found.evidence[0]) == "signal image_brightness 0.01 is below 99 % of sim successes → visual"


def test_a_project_may_trust_a_phase_less():
    found = attribute(FailedEpisode(phase="lift"), TAXONOMY, strengths=Strengths(phase=0.5))
    assert found.weights == {"contact_dynamics": 0.5, "unattributed": 0.5}


episodes = st.builds(
    FailedEpisode,
    category=st.none() | st.sampled_from(CATEGORIES),
    labels=st.lists(st.sampled_from(["slip", "glare", "ood", "lag", "what", "wrong_frame"]), max_size=5),
    phase=st.none() | st.sampled_from(["lift", "approach", "handover", "place", "first_step"]),
    signals=st.none()
    | st.dictionaries(st.sampled_from([*USUAL, "imu_bias"]), st.floats(-1e9, 1e9, allow_subnormal=False)),
    conditions=st.none()
    | st.dictionaries(
        st.sampled_from(["lighting", "object", "material", "clutter"]),
        st.sampled_from(["dim", "glass", 3.0, True, None]),
    ),
)
SUSPECTS = {("lighting", "dim"), ("material", "glass"), ("object", None), ("clutter", 3.0)}


@steady
@given(episodes)
def test_weights_sum_to_exactly_one_and_are_whole_parts(episode):
    found = attribute(episode, TAXONOMY, USUAL, SUSPECTS)
    assert sum(found.weights.values()) == 1
    assert all(weight > 0 and (weight * 1024).is_integer() for weight in found.weights.values())
    assert set(found.weights) <= {*CATEGORIES, "unattributed"}


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
    first, second = (attribute(e, TAXONOMY, USUAL, SUSPECTS).weights for e in (episode, again))
    assert dict(first) == dict(second)


def test_sums_of_weights_are_exact_in_any_order():
    chance = random.Random(5)
    episodes = [
        FailedEpisode(labels=chance.sample(["slip", "glare", "ood", "lag"], 3), phase="lift") for _ in range(1000)
    ]
    weights = [attribute(episode, TAXONOMY).weights.get("visual", 0.0) for episode in episodes]
    sums = set()
    for _ in range(20):
        chance.shuffle(weights)
        sums.add((sum(weights), sum(w * w for w in weights)))
    assert len(sums) == 1
