import pytest

from gapwatch.statistics.gates.criteria import (
    FAIL,
    OPEN,
    PASS,
    Reference,
    clean_standing,
    count_standing,
    drop_boundary,
    drop_standing,
    gate_verdict,
    rate_standing,
)

REFERENCE = Reference(900, 1000)


def outcomes(good, bad):
    """Spread evenly."""
    n = good + bad
    return [1.0 if (place + 1) * good // n > place * good // n else 0.0 for place in range(n)]


def test_a_good_candidate_passes_and_is_remembered_for_the_episode_it_passed_at():
    found = drop_standing(REFERENCE, outcomes(360, 40), 0.10, 0.05)
    assert found.verdict == PASS
    assert found.passed_at < found.n == 400
    assert found.measured == pytest.approx(0.0)
    assert found.interval[1] < 0.10 and found.missing is None


def test_a_candidate_that_is_clearly_worse_fails():
    found = drop_standing(REFERENCE, outcomes(180, 120), 0.10, 0.05)
    assert found.verdict == FAIL


def test_too_few_episodes_say_how_many_are_missing():
    found = drop_standing(REFERENCE, outcomes(45, 5), 0.10, 0.05)
    assert found.verdict == OPEN
    assert 40 < found.missing < 120


def test_no_data_is_never_a_pass():
    empty = [
        drop_standing(REFERENCE, [], 0.10, 0.05),
        rate_standing([], 0.05, 0.05, is_most=True),
        rate_standing([], 0.5, 0.05, is_most=False),
        clean_standing([], 0.01, 0.05),
        count_standing(0, 1),
    ]
    assert {found.verdict for found in empty} == {OPEN}
    assert gate_verdict([]) == OPEN


def test_a_canary_with_errors_against_none_does_not_pass():
    """Errors 0, 1, 2, 1, 0, 0 against six zeros; seven of ten values 100 against ten ones."""
    canary = [1.0 if errors == 0 else 0.0 for errors in (0, 1, 2, 1, 0, 0)]
    assert drop_standing(Reference(6, 6), canary, 0.10, 0.05).verdict != PASS
    assert rate_standing([1.0 - good for good in canary], 0.10, 0.05, is_most=True).verdict != PASS
    values = [100] * 7 + [1] * 3
    assert drop_standing(Reference(10, 10), [float(value == 1) for value in values], 0.10, 0.05).verdict != PASS
    assert rate_standing([float(value > 1) for value in values], 0.10, 0.05, is_most=True).verdict != PASS


def test_a_reference_too_small_for_its_margin_lets_nothing_pass():
    found = drop_standing(Reference(18, 20), [1.0] * 1000, 0.05, 0.05)
    assert (found.verdict, found.e_value, found.missing) == (OPEN, None, None)


def test_the_boundary_is_the_upper_limit_of_the_reference_less_the_margin():
    assert drop_boundary(REFERENCE, 0.10, 0.05) == pytest.approx(0.8209, abs=1e-4)


@pytest.mark.parametrize(("events", "verdict"), [(4, PASS), (15, OPEN), (60, FAIL)])
def test_a_rate_is_held_against_its_limit(events, verdict):
    assert rate_standing(outcomes(events, 300 - events), 0.05, 0.05, is_most=True).verdict == verdict


def test_a_rate_above_a_limit():
    assert rate_standing(outcomes(190, 10), 0.85, 0.05, is_most=False).verdict == PASS
    assert rate_standing(outcomes(120, 80), 0.85, 0.05, is_most=False).verdict == FAIL


def test_zero_violations_need_the_number_that_proves_the_limit():
    assert clean_standing([0.0] * 298, 0.01, 0.05).missing == 1
    proven = clean_standing([0.0] * 299, 0.01, 0.05)
    assert proven.verdict == PASS and proven.interval[1] == pytest.approx(0.01, abs=1e-4)
    assert proven.e_value >= 20
    assert clean_standing([0.0] * 5000 + [1.0], 0.01, 0.05).verdict == FAIL


def test_one_fail_fails_the_gate_and_one_open_leaves_it_open():
    assert gate_verdict([PASS, FAIL, OPEN]) == FAIL
    assert gate_verdict([PASS, OPEN]) == OPEN
    assert gate_verdict([PASS, PASS]) == PASS
