"""Failed episodes with evidence of every kind, at random, and what they are weighed with."""

from hypothesis import strategies as st

from gapwatch.statistics.causes.failed_episodes import FailedEpisode
from gapwatch.statistics.causes.signal_ranges import UsualRange
from gapwatch.taxonomy import CATEGORIES, Taxonomy

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
