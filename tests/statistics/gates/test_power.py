from gapwatch.statistics.gates.criteria import Reference
from gapwatch.statistics.gates.power import power_of_drop, power_of_rate


def test_the_power_card_of_a_usual_plan():
    rows = power_of_drop(Reference(900, 1000), 0.10, 0.05)
    assert [row.true_drop for row in rows] == [0.0, 0.02, 0.05]
    equal, two, five = (row.median_episodes for row in rows)
    assert 100 < equal < 140 < two < 260 < five


def test_a_margin_within_the_doubt_about_the_reference_cannot_be_decided():
    assert {row.median_episodes for row in power_of_drop(Reference(90, 100), 0.02, 0.05)} == {None}


def test_half_of_a_small_limit_takes_longer():
    assert power_of_rate(0.10, 0.05, is_most=True) < power_of_rate(0.02, 0.05, is_most=True)
