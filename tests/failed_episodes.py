"""Failed episodes with evidence of every kind, at random, and the words they are weighed with."""

from hypothesis import strategies as st

from gapwatch.statistics.causes.failed_episodes import FailedEpisode
from gapwatch.taxonomy import CATEGORIES, Taxonomy

TAXONOMY = Taxonomy({"signals": {"shared_*": ["visual", "sensor_noise", "actuation"]}})
SIGNALS = ("peak_force_n", "image_brightness", "loop_latency_ms_p95", "imu_bias", "shared_figure", "imu_noise")

episodes = st.builds(
    FailedEpisode,
    category=st.none() | st.none() | st.sampled_from([*CATEGORIES, "our_own_word", "unattributed"]),
    labels=st.lists(st.sampled_from(["slip", "glare", "ood", "lag", "what", "wrong_frame"]), max_size=5),
    phase=st.none() | st.sampled_from(["lift", "approach", "handover", "place", "first_step"]),
    signals=st.none()
    | st.dictionaries(st.sampled_from(SIGNALS), st.floats(-40, 40) | st.floats(-1e9, 1e9, allow_subnormal=False)),
    conditions=st.none()
    | st.dictionaries(
        st.sampled_from(["lighting", "object", "material", "clutter", "surface"]),
        st.sampled_from(["dim", "glass", 3.0, True, None]),
    ),
)
