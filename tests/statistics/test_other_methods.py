"""Published figures of methods that the product does not show, each written down here from its formula: they
reproduce their tables, and then judge ours, which answers the same question."""

from math import log, sqrt

import pytest
from scipy.optimize import brentq
from scipy.special import betaln
from scipy.stats import beta, norm
from statsmodels.stats.proportion import confint_proportions_2indep

from gapwatch.statistics.causes.slices import newcombe
from gapwatch.statistics.estimates.rates import confidence_sequence, wilson


def miettinen_nurminen(k1, n1, k2, n2):
    """Where the score statistic with rates estimated under the difference d, times N/(N − 1), reaches 1.96²."""

    def likeliest(d):
        """The rate of the second group under p1 − p2 = d, by search: the log-likelihood has one top."""
        low, high = max(0.0, -d) + 1e-12, min(1.0, 1.0 - d) - 1e-12

        def slope(p):
            return k1 / (p + d) - (n1 - k1) / (1 - p - d) + k2 / p - (n2 - k2) / (1 - p)

        return low if slope(low) < 0 else high if slope(high) > 0 else brentq(slope, low, high, xtol=1e-14)

    def statistic(d):
        p2 = likeliest(d)
        p1, n = p2 + d, n1 + n2
        variance = (p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2) * n / (n - 1)
        return (k1 / n1 - k2 / n2 - d) ** 2 / variance - norm.ppf(0.975) ** 2

    middle = k1 / n1 - k2 / n2
    return brentq(statistic, -1 + 1e-9, middle - 1e-9), brentq(statistic, middle + 1e-9, 1 - 1e-9)


def test_miettinen_and_nurminen_agree_with_newcombe():
    """Newcombe 1998b, Table II, method 9."""
    assert miettinen_nurminen(56, 70, 48, 80) == pytest.approx((0.0528, 0.3382), abs=5e-5)
    assert miettinen_nurminen(9, 10, 3, 10) == pytest.approx((0.1700, 0.8406), abs=5e-5)
    for counts in ((56, 70, 48, 80), (9, 10, 3, 10), (6, 7, 2, 7), (5, 56, 0, 29), (190, 200, 60, 100)):
        low, high = miettinen_nurminen(*counts)
        _, (ours_low, ours_high) = newcombe(*counts)
        assert (ours_low, ours_high) == pytest.approx((low, high), abs=0.05)
        assert ours_high - ours_low == pytest.approx(high - low, rel=0.1)


def test_agresti_and_caffo_leave_the_possible_range_and_newcombe_does_not():
    _, high = confint_proportions_2indep(10, 10, 0, 20, compare="diff", method="agresti-caffo")
    assert high == pytest.approx(1.0502, abs=5e-5)
    _, (low, ours) = newcombe(10, 10, 0, 20)
    assert (low, ours) == pytest.approx((0.6791, 1.0), abs=5e-5)
    assert ours <= 1


def test_a_uniform_prior_says_nearly_what_wilson_says():
    """41 of 50, the prior of TRI: mean 0.8077, 95 % 0.6913 to 0.9018; better than 22 of 50 with 0.99996."""
    posterior = beta(1 + 41, 1 + 50 - 41)
    assert posterior.mean() == pytest.approx(0.8077, abs=5e-5)
    limits = posterior.ppf([0.025, 0.975])
    assert limits == pytest.approx((0.6913, 0.9018), abs=5e-5)
    assert wilson(41, 50) == pytest.approx(tuple(limits), abs=0.012)
    other = beta(1 + 22, 1 + 50 - 22)
    better = posterior.expect(other.cdf)
    assert better == pytest.approx(0.99996, abs=5e-6)
    _, (low, _) = newcombe(41, 50, 22, 50)
    assert low > 0


def howard(k, n, t_opt, alpha=0.05):
    """The beta-binomial mixture bound of Howard and others 2021, tightest after `t_opt` attempts."""

    def excess(p):
        spread = p * (1 - p)
        wide = 2 * log(1 / alpha)
        rho = max(t_opt * spread / (wide + log(1 + wide)) - spread, 1e-3 * spread)
        a, b = rho / (1 - p), rho / p
        return betaln(a + k, b + n - k) - betaln(a, b) - k * log(p) - (n - k) * log(1 - p) - log(1 / alpha)

    rate = min(max(k / n, 1e-9), 1 - 1e-9)
    return brentq(excess, 1e-9, rate), brentq(excess, rate, 1 - 1e-9)


@pytest.mark.parametrize(
    ("k", "n", "t_opt", "limits"),
    [
        (700, 1000, 100, (0.651629, 0.745949)),
        (15, 50, 50, (0.129556, 0.511896)),
        (5, 50, 50, (0.013021, 0.269264)),
        (100, 200, 1, (0.328923, 0.671076)),
    ],
)
def test_a_confidence_sequence_tuned_to_one_size_is_hardly_narrower_than_ours(k, n, t_opt, limits):
    assert howard(k, n, t_opt) == pytest.approx(limits, abs=5e-6)
    low, high = confidence_sequence(k, n)
    assert high - low < 1.25 * (limits[1] - limits[0])
    assert low <= k / n <= high
    assert sqrt(n) * (high - low) > sqrt(n) * (wilson(k, n)[1] - wilson(k, n)[0])
