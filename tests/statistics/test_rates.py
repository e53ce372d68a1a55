import pytest
from statsmodels.stats.proportion import proportion_confint

from gapwatch.statistics.rates import wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_agrees_with_newcombes_table(successes, n, low, high):
    """Newcombe 1998a, Table I, method 3."""
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_wilson_agrees_with_statsmodels_at_every_count(n):
    for successes in range(0, n + 1, max(1, n // 10)):
        expected = proportion_confint(successes, n, method="wilson")
        assert wilson(successes, n) == pytest.approx(expected, abs=1e-12)


def test_nothing_is_known_without_attempts():
    assert wilson(0, 0) == (0.0, 1.0)
