"""What a reference, a clean record and two groups of a fixed size prove."""

from __future__ import annotations

from math import ceil, expm1, log, log1p, sqrt

# Of the error of a comparison with a reference, the part that the reference's own limit may cost.
REFERENCE_SHARE = 0.2


def exact_upper(successes: float, n: float, alpha: float) -> float:
    """The one-sided upper limit of a rate that is exceeded with chance alpha (Clopper & Pearson 1934)."""
    from scipy.special import betaincinv

    return 1.0 if successes >= n else float(betaincinv(successes + 1, n - successes, 1 - alpha))


def exact_lower(successes: float, n: float, alpha: float) -> float:
    return 1.0 - exact_upper(n - successes, n, alpha)


def clean_upper(n: int, alpha: float = 0.05) -> float:
    """What n episodes without an event prove: its rate is below 1 − α^(1/n). Nothing for n = 0."""
    return 1.0 if n == 0 else -expm1(log(alpha) / n)


def clean_needed(limit: float, alpha: float = 0.05) -> int:
    """Episodes (or miles) without an event that prove a rate below a limit.

    Formula: the smallest n with 1 − α^(1/n) ≤ limit. Published: 275 million miles for 1.09 per 100 million
    (Kalra & Paddock 2016, RAND RR-1478).
    """
    return ceil(log(alpha) / log1p(-limit) - 1e-9)


def group_size(candidate: float, reference: float, margin: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Episodes in each of two groups for one look at non-inferiority, fixed in advance.

    Formula: (z_α + z_β)² (p₁q₁ + p₂q₂) / (p₁ − p₂ + margin)². Source: Chow, Shao & Wang 2008, section 4.2.2, whose
    example of .85 against .65 with a margin of .10 takes 25.
    """
    spread = candidate * (1 - candidate) + reference * (1 - reference)
    return ceil(_quantiles(alpha, power) ** 2 * spread / (candidate - reference + margin) ** 2)


def single_group_size(
    candidate: float, reference: float, margin: float, alpha: float = 0.05, power: float = 0.8
) -> int:
    """The same against a reference that is known: .5 against .3 with a margin of .1 takes 18 (section 4.1.2)."""
    spread = candidate * (1 - candidate)
    return ceil(_quantiles(alpha, power) ** 2 * spread / (candidate - reference + margin) ** 2)


def _quantiles(alpha: float, power: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(1 - alpha) + ndtri(power))


def relative_change(
    before: tuple[float, float], after: tuple[float, float], alpha: float = 0.05, tuned_for: int = 5000
) -> tuple[float, float, float]:
    """How much a rate changed relative to what it was, with an interval that holds at every look of large samples.

    Formula: δ ± √s² √(2 (nρ² + 1)/(n²ρ²) ln(√(nρ² + 1)/α)), s² the variance of one pair by the delta method and
    ρ tuned to be narrowest at `tuned_for`. Source: Waudby-Smith et al. 2024; gbstats of GrowthBook, whose example
    the test has. Pairs of (successes, n); needs a success before.
    """
    (k_before, n_before), (k_after, n_after) = before, after
    p, q = k_before / n_before, k_after / n_after
    n = n_before + n_after
    variance = n * (q * (1 - q) / (n_after * p**2) + p * (1 - p) * q**2 / (n_before * p**4))
    rho_squared = (-2 * log(alpha) + log(-2 * log(alpha) + 1)) / tuned_for
    half = sqrt(variance) * sqrt(
        2 * (n * rho_squared + 1) / (n**2 * rho_squared) * log(sqrt(n * rho_squared + 1) / alpha)
    )
    value = q / p - 1
    return value, value - half, value + half
