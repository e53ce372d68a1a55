"""Intervals for a success rate, seen once, in sessions or repeatedly; and for combinations of two rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, lgamma, log, pi, sqrt

Z_95 = 1.959963984540054
FEWEST_SESSIONS = 5
# Of sites, robots or sessions, for an interval that knows them: a t quantile says how little two of them are.
FEWEST_CLUSTERS = 2
# The prior for sessions with only a handful of failures: an ICC of 0.2, worth five failures.
PRIOR_ICC = 0.2
PRIOR_WEIGHT = 5.0
# Lower 95 % Poisson limits for one, two and three events: half the 5 % points of χ² with 2, 4 and 6 degrees.
POISSON_LOW = {1: 0.0512932943875505, 2: 0.355361510698662, 3: 0.817691447163953}
FEW_ATTEMPTS = 50


@dataclass(frozen=True)
class Limits:
    """An estimate between its limits."""

    value: float
    low: float
    high: float


def t_95(freedom: float) -> float:
    """The two-sided 95 % quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def wilson(successes: float, n: float, z: float = Z_95) -> tuple[float, float]:
    """Wilson score interval for a rate.

    Formula: (p + z²/2n ± z √(pq/n + z²/4n²)) / (1 + z²/n), with p = successes / n and q = 1 − p.
    Assumes independent attempts with one rate. Source: Wilson 1927; checked against Newcombe 1998a, Table I.
    Smallest n: 1; with n = 0 nothing is known and the interval is [0, 1].
    """
    if n == 0:
        return 0.0, 1.0
    p = min(1.0, successes / n)
    centre = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # Rounding may push a limit past the rate itself at 0 of n and at n of n.
    return max(0.0, min(p, (centre - half) / scale)), min(1.0, max(p, (centre + half) / scale))


def modified_wilson(successes: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's interval with Poisson limits where one to three attempts differ from all the others.

    Formula: with x successes, x ≤ 2 (≤ 3 above n = 50), the lower limit is at most ½ χ²(0.05; 2x) / n; without
    any, the upper limit is at least the exact 1 − 0.025^(1/n); both mirrored for failures. Sources: Brown, Cai &
    DasGupta 2001, section 4.1.1; Clopper and Pearson 1934. Plain Wilson takes one failure in 20 as proof that the
    rate is below 0.9911, although a robot of that rate shows it in 16 % of such samples; and ten of ten as proof
    that it is above 0.7225, which at 0.7 happens in 2.8 % of samples of its own and leaves 92.4 % covered.
    Assumes what Wilson assumes. Smallest n: 1.
    """
    low, high = wilson(successes, n, z)
    most = 2 if n <= FEW_ATTEMPTS else 3
    if 0 < successes <= most:
        low = min(low, POISSON_LOW[successes] / n)
    if 0 < n - successes <= most:
        high = max(high, 1 - POISSON_LOW[n - successes] / n)
    if successes == 0:
        high = max(high, 1 - 0.025 ** (1 / n))
    if successes == n:
        low = min(low, 0.025 ** (1 / n))
    return low, high


@dataclass(frozen=True)
class ClusteredRate:
    """A rate whose interval accounts for the similarity of attempts of one site, robot or session."""

    value: float | None
    low: float
    high: float
    n: int
    clusters: int
    icc: float | None
    design_effect: float
    method: str
    # Wilson's limits depend on z²/n alone: at z = 1.96 and n by this they are the same as with t at n by d.
    worth_one: float = 1.0


@dataclass
class SessionSums:
    """Sums over whole sessions: all that their ICC and their rate are computed from."""

    sessions: int = 0
    n: int = 0
    total: float = 0.0
    # Σnᵢ² and Σkᵢ²/nᵢ.
    squares: float = 0.0
    parts: float = 0.0

    def add(self, total: float, n: int) -> None:
        self.sessions += 1
        self.n += n
        self.total += total
        self.squares += n * n
        self.parts += total * total / n

    def add_alone(self, total: float, n: int) -> None:
        """Attempts outside any session, each a session of one."""
        self.sessions += n
        self.n += n
        self.total += total
        self.squares += n
        self.parts += total

    def likeness(self) -> Likeness:
        """How alike attempts of one session are; see `clustered_rate`. Needs a session of two attempts."""
        value, size = self.total / self.n, self.squares / self.n
        between = max(0.0, self.parts - value * self.total) / (self.sessions - 1)
        within = (self.total - self.parts) / (self.n - self.sessions)
        spread = between + ((self.n - size) / (self.sessions - 1) - 1) * within
        measured = min(1.0, max(0.0, (between - within) / spread)) if spread > 0 else 0.0
        rarer = min(self.total, self.n - self.total)
        icc = (PRIOR_WEIGHT * PRIOR_ICC + rarer * measured) / (PRIOR_WEIGHT + rarer)
        freedom = (self.sessions - 1) * (1 + (1 - icc) / (icc * size)) ** 2
        return Likeness(icc, 1 + (size - 1) * icc, freedom)


@dataclass(frozen=True)
class Likeness:
    """An ICC, how many attempts equal one independent one because of it, and how well that is known."""

    icc: float
    design_effect: float
    freedom: float


@dataclass(frozen=True)
class Cluster:
    """Of the values of one site, robot or session: how many, their sum and the sum of their squares."""

    n: int
    total: float
    squares: float


def likeness_of(clusters: Sequence[Cluster], events: float) -> Likeness | None:
    """How alike values of one cluster are; None with fewer than two clusters, or one value in each.

    Formula: `clustered_rate`'s, for any values: the ANOVA estimate of the ICC, shrunk towards 0.2 as if five more
    `events` had shown it; of rates these are the rarer outcomes, of other values a fifth of them.
    """
    held = [cluster for cluster in clusters if cluster.n > 0]
    n, k = sum(cluster.n for cluster in held), len(held)
    if k < FEWEST_CLUSTERS or n == k:
        return None
    total, size = sum(cluster.total for cluster in held), sum(cluster.n**2 for cluster in held) / n
    parts = sum(cluster.total**2 / cluster.n for cluster in held)
    between = max(0.0, parts - total * total / n) / (k - 1)
    within = max(0.0, sum(cluster.squares for cluster in held) - parts) / (n - k)
    spread = between + ((n - size) / (k - 1) - 1) * within
    measured = min(1.0, max(0.0, (between - within) / spread)) if spread > 0 else 0.0
    icc = (PRIOR_WEIGHT * PRIOR_ICC + events * measured) / (PRIOR_WEIGHT + events)
    return Likeness(icc, 1 + (size - 1) * icc, (k - 1) * (1 + (1 - icc) / (icc * size)) ** 2)


def clustered_rate(
    successes_by_cluster: Sequence[int], n_by_cluster: Sequence[int], by: str = "session"
) -> ClusteredRate:
    """Wilson interval at the effective number of attempts, with a t quantile for few sites, robots or sessions.

    Formula: ρ = (MSB − MSW) / (MSB + (n₀ − 1) MSW) clipped to [0, 1], the one-way ANOVA estimate with
    n₀ = (n − Σnᵢ²/n)/(k − 1); shrunk towards 0.2 as if five more failures had shown it,
    ρ* = (5·0.2 + x ρ)/(5 + x) with x = min(successes, failures); design effect d = 1 + (Σnᵢ²/n − 1) ρ*;
    Wilson at n/d with the t quantile of (k − 1)(1 + (1 − ρ*)/(ρ* Σnᵢ²/n))² degrees of freedom (Satterthwaite).
    Assumes independent clusters, drawn from those that the rate is to speak for, whose size does not depend on how
    they went. An attempt that belongs to no session is a session of one.
    Sources: Fleiss, Levin & Paik 2003, chapter 15 (the ICC); Franco et al. 2019 (Wilson at the effective n).
    Why not t on session means: at 95 % nominal it covers 43 to 96 % where sessions are small, unequal or nearly
    all perfect, and has no width when all are perfect. This one covered 91 % or more in each of 400 settings
    (5–20 sessions of 1–40 attempts, p 0.5–0.95, ICC 0–0.3) and 97 % on average; the tests repeat part of it. With
    two to five clusters of 60 to 100 it covers 93 % or more (bench/populations).
    With every session perfect nothing is measured and ρ* is the 0.2 itself.
    Smallest n: two clusters; below that, and with one attempt in each, plain Wilson, and the method says so.
    """
    pairs = [(k, n) for k, n in zip(successes_by_cluster, n_by_cluster, strict=True) if n > 0]
    clusters, n, k = len(pairs), sum(n for _, n in pairs), sum(k for k, _ in pairs)
    value = k / n if n else None
    if clusters < FEWEST_CLUSTERS or clusters == n or value is None:
        low, high = wilson(k, n)
        return ClusteredRate(value, low, high, n, clusters, None, 1.0, "wilson")
    sums = SessionSums()
    for j, m in pairs:
        sums.add(j, m)
    alike = sums.likeness()
    t = t_95(alike.freedom)
    low, high = wilson(k / alike.design_effect, n / alike.design_effect, t)
    # Dividing both counts by the design effect may move the rate by a rounding error.
    low, high = min(low, value), max(high, value)
    worth_one = alike.design_effect * (t / Z_95) ** 2
    method = f"wilson, clustered by {by}"
    return ClusteredRate(value, low, high, n, clusters, alike.icc, alike.design_effect, method, worth_one)


def confidence_sequence(successes: float, n: float, alpha: float = 0.05) -> tuple[float, float]:
    """An interval that may be looked at after every attempt: the chance that it ever misses is at most alpha.

    Formula: {p : ln B(k+½, n−k+½) − ln B(½, ½) − k ln p − (n−k) ln(1−p) < ln(1/α)}, the Beta(½, ½) mixture
    (Robbins 1970; prior-posterior ratio of Waudby-Smith & Ramdas 2020). Assumes attempts whose chance of success,
    given the past, is always p. About 1.6 times as wide as Wilson at n = 50, the price of looking at any time.
    Smallest n: 1; with n = 0 the interval is [0, 1].
    """
    if n == 0:
        return 0.0, 1.0
    failures = n - successes
    evidence = lgamma(successes + 0.5) + lgamma(failures + 0.5) - lgamma(n + 1) - log(pi)

    def outside(p: float) -> bool:
        cost = (successes * log(p) if successes else 0.0) + (failures * log(1 - p) if failures else 0.0)
        return evidence - cost >= log(1 / alpha)

    rate = successes / n
    return _edge(outside, 0.0, rate) if successes else 0.0, _edge(outside, 1.0, rate) if failures else 1.0


def _edge(outside: Callable[[float], bool], far: float, inside: float) -> float:
    """Where a set that contains `inside` ends towards `far`, by bisection; the outer side of the last step."""
    for _ in range(60):
        middle = (far + inside) / 2
        if middle in (far, inside):
            break
        far, inside = (middle, inside) if outside(middle) else (far, middle)
    return far


def square_and_add(first: Limits, second: Limits, correlation: float = 0.0) -> Limits:
    """The interval of a difference from the intervals of its terms (Newcombe 1998; Zou & Donner 2008)."""

    def reach(a: float, b: float) -> float:
        return sqrt(max(0.0, a * a - 2 * correlation * a * b + b * b))

    value = first.value - second.value
    low = value - reach(first.value - first.low, second.high - second.value)
    high = value + reach(first.high - first.value, second.value - second.low)
    return Limits(value, max(-1.0, low), min(1.0, high))


@lru_cache(maxsize=8192)
def ratio_score(top: int, n_top: int, bottom: int, n_bottom: int) -> Limits:
    """Score interval for the ratio of two independent rates.

    Formula: all φ with (p₁ − φ p₂)² ≤ z² (p̃₁ q̃₁/n₁ + φ² p̃₂ q̃₂/n₂), p̃ the most likely rates of ratio φ
    (p̃₁ = φ p̃₂ solves a quadratic). Source: Koopman 1984, example 36/40 against 16/80. Assumes independent
    attempts. Smallest n: 1 per side, and one success below the line.
    """

    def outside(log_phi: float) -> bool:
        phi = exp(log_phi)
        a, c = (n_top + n_bottom) * phi, top + bottom
        b = n_top * phi + top + n_bottom + bottom * phi
        p_bottom = min(1.0, 2 * c / (b + sqrt(max(0.0, b * b - 4 * a * c))))
        p_top = min(1.0, phi * p_bottom)
        variance = p_top * (1 - p_top) / n_top + phi * phi * p_bottom * (1 - p_bottom) / n_bottom
        return (top / n_top - phi * bottom / n_bottom) ** 2 > Z_95**2 * variance

    value = (top / n_top) / (bottom / n_bottom)
    if not value:
        # Then only very small ratios are surely inside; the interval starts at none of sim's rate.
        return Limits(0.0, 0.0, exp(_edge(outside, 30.0, -30.0)))
    return Limits(value, exp(_edge(outside, -30.0, log(value))), exp(_edge(outside, 30.0, log(value))))


def ratio_from_limits(top: Limits, bottom: Limits) -> Limits:
    """The interval of a ratio from the intervals of its terms (Donner & Zou 2012), in a form without 0/0."""
    product = top.value * bottom.value
    a, c = bottom.high * (2 * bottom.value - bottom.high), top.low * (2 * top.value - top.low)
    low = c / (product + sqrt(max(0.0, product * product - a * c))) if c > 0 else 0.0
    a, c = bottom.low * (2 * bottom.value - bottom.low), top.high * (2 * top.value - top.high)
    high = (product + sqrt(max(0.0, product * product - a * c))) / a
    return Limits(top.value / bottom.value, low, high)
