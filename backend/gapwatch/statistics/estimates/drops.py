"""How much worse real is than sim: a success rate, matched pairs, a mean, a duration that may be cut off.

A drop is positive when reality is worse. Too little data gives a result with a reason, never an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import inf, sqrt

from gapwatch.statistics.estimates import rates
from gapwatch.statistics.estimates.rates import (
    Limits,
    square_and_add,
    wilson,
)

Samples = Sequence[tuple[float, bool]]
Ends = tuple[float | None, float | None, str | None]
# Past this the smaller side alone determines the width, and Wilson's dips near 0 and 1 show through.
LOPSIDED = 10
FEWEST_FOR_A_MEAN = 2


@dataclass(frozen=True)
class Side:
    """The attempts of one side. `clusters`: (successes, n) of each site, robot or session (`by`), if known.

    `worth_one`: where they are not listed, how many attempts are worth one because of them.
    """

    successes: int
    n: int
    clusters: Sequence[tuple[int, int]] | None = None
    by: str = "session"
    worth_one: float = 1.0

    @cached_property
    def clustered(self) -> bool:
        sizes = [n for _, n in self.clusters or () if n]
        return len(sizes) >= rates.FEWEST_CLUSTERS and max(sizes) > 1

    @cached_property
    def clustered_rate(self) -> rates.ClusteredRate:
        """Only for a side whose clusters are known."""
        clusters = self.clusters or ()
        return rates.clustered_rate([k for k, _ in clusters], [n for _, n in clusters], self.by)


@dataclass(frozen=True)
class RateDrop:
    """What is lost of a rate, absolute and relative to sim; None where it is not defined."""

    value: float | None
    low: float
    high: float
    relative: float | None
    relative_low: float | None
    relative_high: float | None
    method: str
    n_sim: int
    n_real: int
    reason: str | None = None


def side_limits(side: Side, other: Side) -> Limits:
    """The limits that `rate_drop` uses for a side."""
    if side.clustered:
        return Limits(side.successes / side.n, side.clustered_rate.low, side.clustered_rate.high)
    if side.worth_one > 1:
        return Limits(side.successes / side.n, *wilson(side.successes / side.worth_one, side.n / side.worth_one))
    interval = rates.modified_wilson if other.n > LOPSIDED * side.n else wilson
    return Limits(side.successes / side.n, *interval(side.successes, side.n))


def rate_drop(sim: Side, real: Side) -> RateDrop:
    """Drop of a success rate: Newcombe's hybrid score interval, and the score interval of the ratio.

    Formula: Δ = p_s − p_r; Δ − √((p_s−l_s)² + (u_r−p_r)²), Δ + √((u_s−p_s)² + (p_r−l_r)²), Wilson limits l, u.
    Relative: 1 − p_r/p_s with Koopman's interval. Source: Newcombe 1998b, method 10; Koopman 1984.
    Two departures, each named in `method`. Two or more sites, robots or sessions: that side's limits come from
    `clustered_rate`, and the ratio's interval from the same limits (Donner & Zou 2012). One side more than ten
    times the other: the smaller side's limits are `modified_wilson`, because the larger side smooths nothing then
    and, without any gap, 99.2 % in sim against 1 failure in 20 would look like a certain loss, in 10 % of cases.
    Assumes independent sides, and independent attempts (or clusters) within a side.
    Smallest n: 1 per side; below that the value is None. The ratio is not defined without sim successes: None.
    """
    if not sim.n or not real.n:
        reason = f"no {'real' if sim.n else 'sim'} episodes"
        return RateDrop(None, -1.0, 1.0, None, None, None, "newcombe", sim.n, real.n, reason)
    s, r = side_limits(sim, real), side_limits(real, sim)
    drop, method = square_and_add(s, r), "newcombe"
    clustered_by = list(dict.fromkeys(side.by for side in (real, sim) if side.clustered or side.worth_one > 1))
    if clustered_by:
        method += f", clustered by {' and '.join(clustered_by)}"
    elif (s.low, s.high, r.low, r.high) != wilson(sim.successes, sim.n) + wilson(real.successes, real.n):
        method += ", modified limits on the small side"
    if not sim.successes:
        reason = "no sim success: the relative drop is not defined"
        return RateDrop(drop.value, drop.low, drop.high, None, None, None, method, sim.n, real.n, reason)
    counts = (real.successes, real.n, sim.successes, sim.n)
    ratio = rates.ratio_from_limits(r, s) if clustered_by else rates.ratio_score(*counts)
    relative = (1 - ratio.value, 1 - ratio.high, 1 - ratio.low)
    return RateDrop(drop.value, drop.low, drop.high, *relative, method, sim.n, real.n)


@dataclass(frozen=True)
class PairedDrop:
    """What is lost over matched pairs."""

    value: float | None
    low: float
    high: float
    pairs: int
    method: str = "newcombe, paired"
    reason: str | None = None


def paired_drop(
    n11: int, n10: int, n01: int, n00: int, *, alike: rates.Likeness | None = None, by: str = "session"
) -> PairedDrop:
    """Drop over matched pairs: n11 succeeded on both sides, n10 in sim only, n01 in real only, n00 on neither.

    Formula: Δ = (n10 − n01)/n with `rate_drop`'s limits and a cross term −2φ(p_s−l_s)(u_r−p_r) under each root;
    φ = (n11 n00 − n10 n01 − c)/√(product of the margins), c = n/2 but not past 0 where that difference is
    positive, else 0; φ = 0 at an empty margin. Source: Newcombe 1998c (Stat Med 17:2635), method 10, preferred to
    Tango's score for its closed form and for being `rate_drop` at φ = 0. Assumes independent pairs, or clusters of
    pairs whose differences are `alike`: then Wilson's limits are those of the effective number of pairs, with a t
    quantile, as in `clustered_rate`. Smallest n: 1.
    """
    n = n11 + n10 + n01 + n00
    if n == 0:
        return PairedDrop(None, -1.0, 1.0, 0, reason="no pairs")
    in_sim, in_real = n11 + n10, n11 + n01
    margins = in_sim * (n - in_sim) * in_real * (n - in_real)
    cross = float(n11 * n00 - n10 * n01)
    if cross > 0:
        cross = max(cross - n / 2, 0.0)
    effect, z = (1.0, rates.Z_95) if alike is None else (alike.design_effect, rates.t_95(alike.freedom))
    sim, real = (
        Limits(successes / n, *wilson(successes / effect, n / effect, z)) for successes in (in_sim, in_real)
    )
    drop = square_and_add(sim, real, cross / sqrt(margins) if margins else 0.0)
    method = PairedDrop.method if alike is None else f"{PairedDrop.method}, clustered by {by}"
    return PairedDrop((n10 - n01) / n, drop.low, drop.high, n, method)


@dataclass(frozen=True)
class MetricSums:
    """Count, sum and sum of squares of a metric."""

    n: int
    total: float
    total_sq: float

    @property
    def mean_variance(self) -> float:
        """Variance of the mean. Rounding residue of a constant metric counts as zero."""
        spread = self.total_sq - self.total * self.total / self.n
        return spread / (self.n - 1) / self.n if self.n > 1 and spread > 1e-12 * self.total_sq else 0.0


@dataclass(frozen=True)
class MeanDrop:
    """What is lost in the metric's own unit; a duration is compared up to `tau`."""

    value: float | None
    low: float | None
    high: float | None
    method: str
    n_sim: int
    n_real: int
    reason: str | None = None
    tau: float | None = None


def _welch(value: float, sim: tuple[float, int], real: tuple[float, int]) -> Ends:
    """The interval from each side's variance of the mean and n, or the reason for none."""
    variance = sim[0] + real[0]
    if min(sim[1], real[1]) < FEWEST_FOR_A_MEAN:
        return None, None, "fewer than two episodes on a side"
    if variance <= 0:
        return None, None, "no spread on either side"
    # As shares of the variance, so that tiny units do not underflow when squared.
    freedom = 1 / sum((v / variance) ** 2 / (n - 1) for v, n in (sim, real))
    half = rates.t_95(freedom) * sqrt(variance)
    return value - half, value + half, None


def restricted_mean(samples: Samples, tau: float) -> tuple[float, float]:
    """Mean of min(duration, tau) and its variance, from (duration, was it cut off) samples.

    Formula: area under the Kaplan–Meier curve up to tau; variance Σ (area right of tᵢ)² dᵢ / (Yᵢ (Yᵢ − dᵢ)) over
    the completion times tᵢ ≤ tau, dᵢ completing of Yᵢ under way. Source: Kaplan & Meier 1958; checked on Miller's
    leukaemia data. Assumes that being cut off says nothing about how long it would have taken. Smallest n: 1.
    """
    survival, area, previous, under_way = 1.0, 0.0, 0.0, len(samples)
    steps = []
    for time, group in groupby(sorted(samples), key=lambda sample: sample[0]):
        if time > tau:
            break
        cut_off = [cut for _, cut in group]
        done = cut_off.count(False)
        area, previous = area + survival * (time - previous), time
        if 0 < done < under_way:
            steps.append((area, done / (under_way * (under_way - done))))
        survival *= 1 - done / under_way
        under_way -= len(cut_off)
    area += survival * (tau - previous)
    return area, sum((area - so_far) ** 2 * weight for so_far, weight in steps)


def duration_drop(sim: Samples, real: Samples, tau: float | None = None) -> MeanDrop:
    """Time lost, real − sim, when some episodes were cut off (timeouts); never the mean over successes alone.

    Formula: difference of the restricted means up to tau; Welch's interval on their variances times m/(m − 1) with
    m − 1 degrees, m the completions of a side; without cut-offs these are plain means. tau: the given one or the
    smaller of the longest durations, never past what both sides observed. Source: Royston & Parmar 2013.
    Assumes what `restricted_mean` assumes. Smallest n: two completions per side.
    """
    method, sizes = "restricted mean, welch", (len(sim), len(real))
    if not sim or not real:
        return MeanDrop(None, None, None, method, *sizes, f"no {'real' if sim else 'sim'} episodes")
    # A side whose longest episode was completed has no later unknowns: nothing is left under way.
    longest = [max(sim), max(real)]
    known = min(time if cut else inf for time, cut in longest)
    tau = min(known, min(time for time, _ in longest) if tau is None else tau)
    (sim_mean, sim_var), (real_mean, real_var) = restricted_mean(sim, tau), restricted_mean(real, tau)
    value, done = real_mean - sim_mean, [sum(t <= tau and not cut for t, cut in side) for side in (sim, real)]
    if min(done) < FEWEST_FOR_A_MEAN:
        return MeanDrop(value, None, None, method, *sizes, "fewer than two completed episodes on a side", tau)
    wider = [m / (m - 1) for m in done]
    low, high, reason = _welch(value, (sim_var * wider[0], done[0]), (real_var * wider[1], done[1]))
    return MeanDrop(value, low, high, method, *sizes, reason, tau)
