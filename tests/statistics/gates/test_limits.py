"""Published numbers; STATISTICS, section 11."""

import pytest

from gapwatch.statistics.gates.limits import (
    clean_needed,
    clean_upper,
    exact_lower,
    exact_upper,
    group_size,
    relative_change,
    single_group_size,
)


@pytest.mark.parametrize(("limit", "needed"), [(0.01, 299), (0.005, 598), (0.001, 2995)])
def test_clean_episodes_needed_for_a_rate(limit, needed):
    assert clean_needed(limit) == needed
    assert clean_upper(needed) <= limit < clean_upper(needed - 1)


def test_miles_without_a_fatality_of_the_rand_report():
    assert clean_needed(1.09e-8) == pytest.approx(275e6, rel=1e-3)


def test_nothing_driven_proves_nothing():
    assert clean_upper(0) == 1.0


def test_sample_sizes_of_chow_shao_and_wang():
    assert group_size(0.85, 0.65, 0.10) == 25
    assert single_group_size(0.5, 0.3, 0.1) == 18


def test_sequential_relative_change_of_gbstats():
    found = relative_change((1396, 3000), (2422, 3461), tuned_for=5000)
    assert found == pytest.approx((0.50386, 0.40098, 0.60675), abs=1e-5)


def test_exact_limits_of_clopper_and_pearson():
    assert exact_upper(0, 10, 0.05) == pytest.approx(clean_upper(10))
    assert exact_lower(900, 1000, 0.01) < 0.9 < exact_upper(900, 1000, 0.01) < 0.925
    assert exact_upper(5, 5, 0.05) == 1.0
