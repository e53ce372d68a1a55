from gapwatch.statistics.gates.criteria import Reference, drop_bets
from gapwatch.statistics.gates.evidence import clean_bets
from gapwatch.statistics.plans.gate_forecast import EvidenceSoFar, forecast_evidence

BETS = drop_bets(Reference(900, 1000), 0.10, 0.05)
NOTHING = {"good": 0, "n": 0}


def test_an_equal_policy_passes_after_the_published_number_of_episodes():
    """STATISTICS: 136 episodes are the median without any drop; the rate is known here, as good as."""
    so_far = EvidenceSoFar(**NOTHING, expected_good=9000, expected_n=10000)
    chances = [forecast_evidence(BETS, so_far, further, 0.04).chance for further in (40, 136, 400)]
    assert chances[0] < 0.2
    assert 0.35 < chances[1] < 0.65
    assert chances[2] > 0.95


def test_what_was_seen_counts():
    so_far = EvidenceSoFar(110, 120, expected_good=110, expected_n=120)
    fresh = EvidenceSoFar(**NOTHING, expected_good=110, expected_n=120)
    assert forecast_evidence(BETS, so_far, 60, 0.04).chance > forecast_evidence(BETS, fresh, 60, 0.04).chance
    assert (
        forecast_evidence(BETS, so_far, 60, 0.04).e_range[0] <= forecast_evidence(BETS, so_far, 60, 0.04).e_value
    )


def test_nothing_further_leaves_what_is():
    so_far = EvidenceSoFar(10, 10, expected_good=10, expected_n=10)
    now = forecast_evidence(BETS, so_far, 0, 0.04)
    assert now.chance == 0.0
    assert now.e_range[0] == now.e_range[1]
    assert forecast_evidence(BETS, so_far, 0, 0.04, has_passed=True).chance == 1.0


def test_a_clean_record_takes_the_published_number():
    """299 clean episodes prove a rate below 1 %."""
    so_far = EvidenceSoFar(**NOTHING, expected_good=1e6, expected_n=1_000_000)
    assert forecast_evidence(clean_bets(0.01), so_far, 298, 0.05).chance == 0.0
    assert forecast_evidence(clean_bets(0.01), so_far, 300, 0.05).chance > 0.95
