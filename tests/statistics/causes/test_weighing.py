import numpy as np
import pytest
from failed_batches import batch_of
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.causes.attribution import (
    FailedEpisode,
    Strengths,
    UsualRange,
    attribute,
)
from gapwatch.statistics.causes.ledger import make_ledger
from gapwatch.statistics.causes.weighing import (
    ledger_side,
    usual_ranges,
    weigh,
)
from gapwatch.statistics.estimates.sketches import fold
from gapwatch.taxonomy import CATEGORIES, Taxonomy

steady = settings(deadline=None, derandomize=True, database=None, max_examples=300)
TAXONOMY = Taxonomy({"signals": {"shared_*": ["visual", "sensor_noise", "actuation"]}})
USUAL = {
    "peak_force_n": UsualRange(5, 15, 25, n=400),
    "mean_force_n": UsualRange(5, 15, 25, n=400, above=0.37),
    "image_brightness": UsualRange(0.4, 0.6, 0.8, n=400, below=0.9),
    "loop_latency_ms_p95": UsualRange(4, 5, 6, n=20),
    "imu_bias": UsualRange(0, 0, 0, n=90),
    "shared_figure": UsualRange(-1, 0, 1, n=50),
}
SUSPECTS = {("lighting", "dim"), ("material", "glass"), ("object", None), ("clutter", 3.0), ("surface", True)}

episodes = st.builds(
    FailedEpisode,
    category=st.none() | st.none() | st.sampled_from([*CATEGORIES, "our_own_word", "unattributed"]),
    labels=st.lists(st.sampled_from(["slip", "glare", "ood", "lag", "what", "wrong_frame"]), max_size=5),
    phase=st.none() | st.sampled_from(["lift", "approach", "handover", "place", "first_step"]),
    signals=st.none()
    | st.dictionaries(
        st.sampled_from([*USUAL, "imu_noise"]), st.floats(-40, 40) | st.floats(-1e9, 1e9, allow_subnormal=False)
    ),
    conditions=st.none()
    | st.dictionaries(
        st.sampled_from(["lighting", "object", "material", "clutter", "surface"]),
        st.sampled_from(["dim", "glass", 3.0, True, None]),
    ),
)


def rows_of(weights):
    return [
        {name: part / 1024 for name, part in zip(weights.names, row, strict=True) if part}
        for row in weights.parts.tolist()
    ]


@steady
@given(st.lists(episodes, max_size=12), st.sampled_from([Strengths(), Strengths(0.7, 0.9, 0.35, 0.3)]))
def test_all_rows_at_once_get_the_weights_of_each_alone(some, strengths):
    # A condition the episode lacks is None in its row; suspects name None only where the episode may have it.
    suspects = SUSPECTS - {("object", None)}
    found = weigh(batch_of(some), TAXONOMY, USUAL, suspects, strengths)
    alone = [dict(attribute(e, TAXONOMY, USUAL, suspects, strengths).weights) for e in some]
    assert rows_of(found) == alone
    assert (found.parts.sum(axis=1) == 1024).all()


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


def test_the_usual_range_is_the_middle_98_percent_of_sim_successes():
    values = np.random.default_rng(2).normal(10, 1, 5000)
    ranges = usual_ranges({"from_numbers": values, "from_sketch": fold(values), "few": values[:49]})
    assert set(ranges) == {"from_numbers", "from_sketch"}
    for found in ranges.values():
        assert (found.low, found.median, found.high) == pytest.approx(
            np.quantile(values, [0.01, 0.5, 0.99]), rel=0.01
        )
        assert found.n == 5000
