import pytest

from gapwatch.taxonomy import BY_ID, CATEGORIES, DEFAULTS, HEADLINE, KINDS, PATTERN_ORDER, Taxonomy


def test_every_category_is_described_once_and_in_order():
    assert tuple(category.id for category in DEFAULTS) == CATEGORIES
    assert sorted(PATTERN_ORDER) == sorted(CATEGORIES)
    assert [category.id for category in DEFAULTS if category.is_headline] == list(HEADLINE)
    for category in DEFAULTS:
        assert all((category.name, category.covers, category.collect))
        assert any(getattr(category, kind) for kind in KINDS)


@pytest.mark.parametrize(
    ("kind", "name", "categories"),
    [
        ("phases", "contact", ("contact_dynamics",)),
        ("phases", "Lift", ("contact_dynamics",)),
        ("phases", "approach", ("visual",)),
        ("phases", "handover", ("human_behavior",)),
        ("phases", "place", ()),
        ("labels", "slip", ("contact_dynamics",)),
        ("labels", "deadline-missed", ("latency_timing",)),
        ("labels", "timeout", ()),
        ("conditions", "lighting", ("visual",)),
        ("conditions", "object", ("object_property",)),
        ("conditions", "clutter", ("environment_complexity",)),
        ("conditions", "human_present", ("human_behavior",)),
        ("conditions", "surface", ("contact_dynamics",)),
        ("conditions", "material", ("contact_dynamics", "object_property")),
        ("conditions", "payload_kg", ("robot_dynamics",)),
        ("signals", "peak_force_n", ("contact_dynamics",)),
        ("signals", "tracking_rmse_rad", ("actuation",)),
        ("signals", "loop_latency_ms_p95", ("latency_timing",)),
        ("signals", "image_brightness", ("visual",)),
        ("signals", "force_bias_n", ("sensor_noise",)),
        ("signals", "camera.latency.ms", ("latency_timing",)),
        ("signals", "depth_invalid_ratio", ("sensor_noise",)),
        ("signals", "calibration_age_days", ("state_estimation",)),
        ("signals", "landmark_offset_mm", ("state_estimation",)),
        ("signals", "ood_score", ("policy_robustness",)),
        ("signals", "wood_moisture", ()),
        ("signals", "penetration_mm", ("sim_numerics",)),
        ("signals", "free_space_trajectory_error", ("robot_dynamics",)),
        ("signals", "cycle_time_s", ()),
    ],
)
def test_words_of_the_design_point_to_their_category(kind, name, categories):
    assert Taxonomy().categories_of(kind, name) == categories


def test_a_projects_own_words_come_first():
    taxonomy = Taxonomy(
        {
            "signals": {"*force*": "sensor_noise", "peak_force_n": ["object_property", "contact_dynamics"]},
            "phases": {"wiggle": "actuation", "lift": None},
        }
    )
    assert taxonomy.categories_of("signals", "mean_force") == ("sensor_noise",)
    assert taxonomy.categories_of("signals", "peak_force_n") == ("object_property", "contact_dynamics")
    assert taxonomy.categories_of("signals", "slip_mm") == ("contact_dynamics",)
    assert taxonomy.categories_of("phases", "wiggle") == ("actuation",)
    assert taxonomy.categories_of("phases", "lift") == ()
    assert taxonomy.categories_of("labels", "slip") == Taxonomy().categories_of("labels", "slip")


@pytest.mark.parametrize("overrides", [{"phases": {"x": "gremlins"}}, {"colours": {"x": "visual"}}])
def test_a_mapping_to_nowhere_is_refused_by_name(overrides):
    with pytest.raises(ValueError, match=r"gremlins|colours"):
        Taxonomy(overrides)


def test_a_flood_of_names_is_not_remembered_for_ever():
    taxonomy = Taxonomy()
    for number in range(20_001):
        taxonomy.categories_of("signals", f"x{number}")
    assert len(taxonomy._categories) <= 10_000


def test_categories_are_found_by_id():
    assert BY_ID["visual"].name == "Visual"


@pytest.mark.parametrize(
    ("signal", "is_symptom"),
    [
        ("slip_mm", True),
        ("peak_force_n", True),
        ("tracking.rmse.rad", True),
        ("ood_score", True),
        ("detection_confidence", True),
        ("image_brightness", False),
        ("loop_latency_ms_p95", False),
        ("object_mass_kg", False),
        ("calibration_residual_mm", False),
        ("contract_fields_differing", False),
        ("bus_voltage_v", False),
    ],
)
def test_what_came_of_a_cause_is_told_from_what_was_met(signal, is_symptom):
    assert Taxonomy().is_symptom(signal) is is_symptom


def test_a_flood_of_signals_is_not_remembered_for_ever_either():
    taxonomy = Taxonomy()
    for number in range(10_001):
        taxonomy.is_symptom(f"x{number}")
    assert len(taxonomy._symptoms) <= 10_000


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("collision_clutter", "environment_complexity"),
        ("obj slipped", "contact_dynamics"),
        ("slipping-out!", "contact_dynamics"),
        ("too dark", "visual"),
        ("ctrl lagging", "latency_timing"),
        ("wrong object here", "visual"),
        ("obj too heavy", "object_property"),
    ],
)
def test_a_teams_own_words_are_known_by_their_parts(label, category):
    assert Taxonomy().categories_of("labels", label) == (category,)


def test_words_without_a_known_part_point_nowhere_and_may_be_nearly_known():
    taxonomy = Taxonomy({"labels": {"too dark": None}})
    assert taxonomy.categories_of("labels", "misc") == ()
    assert taxonomy.suggest("labels", "misc") is None
    assert taxonomy.categories_of("labels", "it slpped") == ()
    assert taxonomy.suggest("labels", "it slpped") == "contact_dynamics"
    # A project's own word comes before the parts.
    assert taxonomy.categories_of("labels", "too dark") == ()


def test_only_one_side_of_some_signals_can_do_harm():
    taxonomy = Taxonomy()
    assert taxonomy.harmful_sides("loop_latency_ms_p95") == ("above",)
    assert taxonomy.harmful_sides("bus_voltage_v") == ("below",)
    assert taxonomy.harmful_sides("image_brightness") == ("above", "below")
