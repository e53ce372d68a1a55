import pytest

from gapwatch.statistics.closing.experience import MeasuredFix, pool_experience


def test_points_per_hour_are_of_the_fixes_that_say_their_hours():
    fixes = [
        MeasuredFix(0.14, (0.08, 0.2), "closed", 10.0),
        MeasuredFix(0.02, (-0.02, 0.04), "did nothing", 30.0),
        MeasuredFix(0.1, (0.05, 0.15), "closed", None),
        MeasuredFix(None, None, "too few episodes", 5.0),
    ]
    pooled = pool_experience(fixes)
    assert (pooled.fixes, pooled.decided, pooled.did_nothing) == (4, 3, 1)
    assert pooled.robot_hours == 40 and pooled.per_hour == pytest.approx(0.16 / 40)
    assert pooled.per_hour_interval[0] < pooled.per_hour < pooled.per_hour_interval[1]
    assert pooled.points == pytest.approx(0.26 / 3)
    assert pooled.did_nothing_share == pytest.approx(1 / 3)
    assert pooled.did_nothing_interval[0] < 1 / 3 < pooled.did_nothing_interval[1]


def test_one_fix_has_the_width_of_its_measurement_and_two_that_differ_more():
    one = pool_experience([MeasuredFix(0.1, (0.06, 0.14), "closed", 10.0)])
    assert one.per_hour_interval == pytest.approx((0.006, 0.014))
    two = pool_experience(
        [MeasuredFix(0.2, (0.16, 0.24), "closed", 10.0), MeasuredFix(0.0, (-0.04, 0.04), "did nothing", 10.0)]
    )
    assert two.per_hour_interval[1] - two.per_hour_interval[0] > 0.05


def test_nothing_decided_is_nothing_known():
    pooled = pool_experience([MeasuredFix(None, None, "too few episodes", 4.0)])
    assert (pooled.points, pooled.per_hour, pooled.did_nothing_share, pooled.robot_hours) == (None, None, None, 0)
