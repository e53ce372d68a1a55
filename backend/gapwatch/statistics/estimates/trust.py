"""How far a simulator's ranking of policies can be trusted, and what trusting it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, sqrt, tanh
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapwatch.statistics.estimates.rates import Z_95

Interval = tuple[float, float]
Verdict = Literal["trustworthy", "untrustworthy", "undecided", "too few policies"]
CONVENTION = (
    "MMRV takes the gap on the real side: mean over i of max over j of |real_i − real_j| where sim misorders"
)
FEWEST_POLICIES = 4
LARGEST_CHANGE = 0.10
# Verdict: real points that a misranking may cost, and the correlation that must be ruled out to deny trust.
TOLERABLE_MMRV = 0.10
WEAK_PEARSON = 0.5
DRAWS = 2000


@dataclass(frozen=True)
class PolicyPoint:
    """One policy (not a checkpoint, not a task cell): its success rate on both sides."""

    policy: str
    sim: float
    real: float
    n_sim: int
    n_real: int


@dataclass(frozen=True)
class WithoutOne:
    """The measures when one policy is left out."""

    policy: str
    pearson: float | None
    mmrv: float


@dataclass(frozen=True)
class SimulatorTrust:
    """The measures over `policies` policies; None where a measure is not defined."""

    policies: int
    pearson: float | None
    pearson_interval: Interval | None
    spearman: float | None
    mmrv: float | None
    mmrv_interval: Interval | None
    regret: float | None
    leave_one_out: tuple[WithoutOne, ...]
    largest_change: float | None
    fragile: bool
    convention: str
    verdict: Verdict
    reason: str | None = None


def mmrv(*, sim: ArrayLike, real: ArrayLike) -> float:
    """Mean maximum rank violation.

    Formula: (1/N) Σ_i max_j |real_i − real_j| · 1[(sim_i > sim_j) ≠ (real_i > real_j)], strict on both sides, so
    a tie on one side counts in one direction. Not symmetric, hence the keywords: numbers computed in either order
    have been published. Source: Li et al. 2024 (SIMPLER). Smallest n: 2 policies; with fewer it is 0.
    """
    s, r = np.asarray(sim, dtype=float), np.asarray(real, dtype=float)
    if not s.shape[-1]:
        return 0.0
    return float(_mmrv(s, r))


def _mmrv(s: NDArray[np.float64], r: NDArray[np.float64]) -> NDArray[np.float64]:
    wrong = (s[..., :, None] > s[..., None, :]) != (r[..., :, None] > r[..., None, :])
    gap = np.abs(r[..., :, None] - r[..., None, :])
    return np.asarray((gap * wrong).max(axis=-1).mean(axis=-1))


def pearson(x: ArrayLike, y: ArrayLike) -> float | None:
    """Sample correlation (SRCC of Kadian et al. 2020); None when a side does not vary or has one point."""
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(a) < 2 or np.ptp(a) < 1e-12 or np.ptp(b) < 1e-12:  # noqa: PLR2004
        return None
    a, b = a - a.mean(), b - b.mean()
    return min(1.0, max(-1.0, float((a * b).sum() / sqrt((a * a).sum() * (b * b).sum()))))


def fisher_interval(r: float | None, policies: int) -> Interval | None:
    """95 % interval of a correlation, tanh(atanh r ± 1.96/√(k − 3)); needs k ≥ 4 and |r| < 1 (Fisher 1921)."""
    if r is None or policies < FEWEST_POLICIES or abs(r) >= 1 - 1e-12:
        return None
    reach = Z_95 / sqrt(policies - 3)
    return tanh(atanh(r) - reach), tanh(atanh(r) + reach)


def simulator_trust(policies: Sequence[PolicyPoint], seed: int = 0) -> SimulatorTrust:
    """What the policies measured on both sides say about a simulator.

    Formula: Pearson, Spearman (Pearson of mid-ranks) and MMRV with the intervals of `drawn_measures`, Pearson and
    MMRV without each policy in turn (`fragile` where Pearson moves by more than 0.10), and the regret: real rate
    of the really best policy minus that of sim's favourite (the worst of them on a tie). Verdict: trustworthy when
    Pearson's interval lies above 0, MMRV's below 0.10 and no single policy carries it; untrustworthy when
    Pearson's lies below 0.5 or MMRV's above 0.10; else undecided. Source: Kadian et al. 2020; Li et al. 2024.
    Assumes policies that are independent of one another, which checkpoints of one training are not, and
    independent episodes. Smallest n: four policies; below that nothing is measured, with a reason.
    """
    k = len(policies)
    sim, real = np.array([p.sim for p in policies], float), np.array([p.real for p in policies], float)
    if not k:
        nothing = (None, None, None, None, None, None, (), None, False)
        return SimulatorTrust(0, *nothing, CONVENTION, "too few policies", "no policy has run on both sides")
    if k < FEWEST_POLICIES:
        nothing = (None, None, None, None, None, None, (), None, False)
        return SimulatorTrust(
            k,
            *nothing,
            CONVENTION,
            "too few policies",
            f"{k} policies; nothing is measured below {FEWEST_POLICIES}",
        )
    r = pearson(sim, real)
    violation = mmrv(sim=sim, real=real)
    without = tuple(
        WithoutOne(
            point.policy,
            pearson(np.delete(sim, i), np.delete(real, i)),
            mmrv(sim=np.delete(sim, i), real=np.delete(real, i)),
        )
        for i, point in enumerate(policies)
    )
    changes = [abs(left_out.pearson - r) for left_out in without if r is not None and left_out.pearson is not None]
    largest = max(changes, default=None)
    fragile = largest is not None and largest > LARGEST_CHANGE
    regret = float(real.max() - real[sim == sim.max()].min())
    drawn = drawn_measures(policies, seed)
    correlation, spread = (fisher_interval(r, k), None) if drawn is None else (drawn.pearson, drawn.mmrv)
    verdict, reason = _verdict(r, correlation, spread, fragile)
    return SimulatorTrust(
        k, r, correlation, pearson(_ranks(sim), _ranks(real)), violation, spread,
        regret, without, largest, fragile, CONVENTION, verdict, reason,
    )  # fmt: skip


def _verdict(
    r: float | None, correlation: Interval | None, spread: Interval | None, fragile: bool
) -> tuple[Verdict, str | None]:
    if r is None:
        return "undecided", "all policies are alike on one side"
    if correlation is None or spread is None:
        return "undecided", "no interval: a perfect line, or rates without counts"
    if correlation[1] < WEAK_PEARSON or spread[0] > TOLERABLE_MMRV:
        return "untrustworthy", None
    if correlation[0] > 0 and spread[1] <= TOLERABLE_MMRV and not fragile:
        return "trustworthy", None
    return "undecided", "one policy carries the correlation" if fragile else "the intervals are too wide"


@dataclass(frozen=True)
class DrawnMeasures:
    """95 % intervals: MMRV of these policies, and the correlation over policies like them."""

    mmrv: Interval
    pearson: Interval | None


def drawn_measures(policies: Sequence[PolicyPoint], seed: int = 0) -> DrawnMeasures | None:
    """What the true rates may be, drawn 2000 times, and the measures of each draw.

    Formula: sim's rates from Beta(k + ½, n − k + ½). Real's from an empirical-Bayes line of real on sim: residual
    variance σ² = (k − 2)s²/χ²(k − 2), the line given it, τ² = σ² less the mean sampling variance v, not below 0;
    and of each rate the normal posterior between its own count (v) and the line (τ²). Redrawing each count alone
    adds noise to noise: no draw of a perfect ranking is ever perfect, and 37 % of such MMRVs were covered. The
    correlation of a draw is moved by Fisher's error 1/√(k − 3) on the scale of atanh, for policies that were not
    tried. Source: Efron & Morris 1975; Gelman et al. 2013, chapter 5. Measured (bench/populations) at eight
    policies of 20 real episodes. Assumes independent episodes. Smallest n: four policies; None without counts, or
    for other metrics.
    """
    counted = all(
        min(p.n_sim, p.n_real) >= 1 and 0 <= min(p.sim, p.real) <= max(p.sim, p.real) <= 1 for p in policies
    )
    k = len(policies)
    if k < FEWEST_POLICIES or not counted:
        return None
    random = np.random.default_rng(seed)
    n_sim, n_real = np.array([p.n_sim for p in policies]), np.array([p.n_real for p in policies])
    s, y = np.array([p.sim for p in policies]), np.array([p.real for p in policies])
    sim = random.beta(s * n_sim + 0.5, (1 - s) * n_sim + 0.5, (DRAWS, k))
    # Two more successes and failures, so that none of n and all of n have a variance too.
    smoothed = (y * n_real + 2) / (n_real + 4)
    own = smoothed * (1 - smoothed) / n_real
    line, total = _line_draws(random, s, y)
    rest = np.maximum(total - own.mean(), 1e-9)[:, None]
    posterior = 1 / (1 / own + 1 / rest)
    centre = posterior * (y / own + line / rest)
    real = np.clip(centre + np.sqrt(posterior) * random.standard_normal((DRAWS, k)), 0.0, 1.0)
    low, high = np.quantile(_mmrv(sim, real), [0.025, 0.975])
    return DrawnMeasures((float(low), float(high)), _drawn_correlation(random, sim, real))


def _line_draws(
    random: np.random.Generator, s: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lines of y on s that the points allow, at each s; and the residual variance of each."""
    k, centred = len(s), s - s.mean()
    square = float(centred @ centred)
    slope = float(centred @ y) / square if square > 1e-12 else 0.0  # noqa: PLR2004
    residual = y - y.mean() - slope * centred
    total = float(residual @ residual) / random.chisquare(k - 2, DRAWS)
    slopes = slope + np.sqrt(total / square) * random.standard_normal(DRAWS) if square > 1e-12 else np.zeros(DRAWS)  # noqa: PLR2004
    levels = y.mean() + np.sqrt(total / k) * random.standard_normal(DRAWS)
    return levels[:, None] + slopes[:, None] * centred, total


def _drawn_correlation(
    random: np.random.Generator, sim: NDArray[np.float64], real: NDArray[np.float64]
) -> Interval | None:
    a, b = sim - sim.mean(axis=1, keepdims=True), real - real.mean(axis=1, keepdims=True)
    spread = (a * a).sum(axis=1) * (b * b).sum(axis=1)
    held = spread > 1e-18  # noqa: PLR2004
    if not held.any():
        return None
    r = (a * b).sum(axis=1)[held] / np.sqrt(spread[held])
    z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    z = z + random.standard_normal(z.size) / sqrt(sim.shape[1] - 3)
    low, high = np.tanh(np.quantile(z, [0.025, 0.975]))
    return float(low), float(high)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mid-ranks."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
