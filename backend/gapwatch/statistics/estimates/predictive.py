"""The real rate from few real and many sim episodes: sim predicts, the pairs show how far it is off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.estimates.drops import paired_drop
from gapwatch.statistics.estimates.rates import (
    Z_95,
    Likeness,
    Limits,
    t_95,
    wilson,
)

Numbers = NDArray[np.float64]
FEWEST_PAIRS = 10
# Below this a tuned weight of the predictions is fitted to noise: at n = 10 and p = 0.95 it covers 40 %.
FEWEST_TO_TUNE = 100
# A normal interval is trusted for a rate only with this many successes, failures and disagreeing pairs.
FEWEST_FOR_NORMAL = 10
LEAST_RHO = 0.3


@dataclass(frozen=True)
class Prediction:
    """A real mean made more precise by sim. `effective_n` is what the interval is worth in real episodes."""

    value: float | None
    low: float | None
    high: float | None
    rho: float | None
    weight: float | None
    effective_n: float | None
    n: int
    extra: int
    method: str
    reason: str | None = None


def prediction_powered(
    real: Numbers, predicted: Numbers, extra: Numbers, weight: float
) -> tuple[float, float, float]:
    """The estimate and its two variances, of the predictions' mean and of the correction.

    Formula: θ = λ mean(F_U) + mean(Y − λF); variances λ² Var(F_U)/N and Var(Y − λF)/n, divisors n and N. λ = 1 is
    prediction-powered inference, λ = 0 the plain mean. Source: Angelopoulos et al. 2023. Smallest n: 1.
    """
    correction = real - weight * predicted
    value = float(weight * extra.mean() + correction.mean())
    return value, float(weight**2 * extra.var() / len(extra)), float(correction.var() / len(real))


def tuned_weight(real: Numbers, predicted: Numbers, extra: Numbers) -> float:
    """λ = Cov(Y, F) / ((1 + n/N) Var(F ∪ F_U)), clipped to [0, 1] (PPI++, Angelopoulos, Duchi & Zrnic 2023)."""
    spread = float(np.concatenate([predicted, extra]).var(ddof=1))
    covariance = float(((real - real.mean()) * (predicted - predicted.mean())).mean())
    return min(1.0, max(0.0, covariance / ((1 + len(real) / len(extra)) * spread))) if spread > 0 else 0.0


def best_effective_n(n: int, extra: int, rho: float) -> float:
    """What n pairs and `extra` sim episodes are worth at most: n(n + N)/(n + (1 − ρ²)N) real episodes."""
    return n * (n + extra) / (n + (1 - rho**2) * extra) if n else 0.0


def predicted_mean(
    real: Sequence[float],
    predicted: Sequence[float],
    extra: Sequence[float],
    alike: Likeness | None = None,
) -> Prediction:
    """Mean of a real metric from pairs (real, sim from the same initial state) and further sim episodes.

    Formula: `prediction_powered` with weight 1 below 100 pairs and the tuned one above, t interval. For outcomes 0
    and 1 with fewer than ten successes, failures or disagreeing pairs: weight 1, Wilson's interval for the
    predictions and Newcombe's paired one for the correction, squared and added. The normal interval ignores that
    pairs which all agree do not prove that they always do: it covers 40 % at n = 10, p = agreement = 0.95.
    Where corrections of one site, robot or session are `alike`, their variance is that of the effective number of
    pairs, with a t quantile; so is that of the real episodes alone, which the gain is measured against.
    Source: Angelopoulos et al. 2023; Newcombe 1998. Assumes pairs drawn like the further sim episodes' states.
    Refused, as a result with a reason: fewer than ten pairs, ρ below 0.3, or no gain over the real episodes alone.
    """
    y, f, u = (np.asarray(numbers, dtype=float) for numbers in (real, predicted, extra))
    n, many = len(y), len(u)
    if n < FEWEST_PAIRS or not many:
        reason = f"{n} pairs; ten are needed" if many else "no sim episodes beyond the pairs"
        return Prediction(None, None, None, None, None, None, n, many, "prediction-powered", reason)
    rho = _correlation(y, f)
    binary = set(np.unique(np.concatenate([y, f, u]))) <= {0.0, 1.0}
    seen = min(y.sum(), n - y.sum(), (y != f).sum()) if binary else FEWEST_FOR_NORMAL
    weight = tuned_weight(y, f, u) if n >= FEWEST_TO_TUNE and seen >= FEWEST_FOR_NORMAL else 1.0
    value, of_mean, of_correction = prediction_powered(y, f, u, weight)
    effect, t = (1.0, t_95(n - 1)) if alike is None else (alike.design_effect, t_95(min(n - 1, alike.freedom)))
    half = t * sqrt(of_mean + effect * of_correction * n / (n - 1))
    limits, plain, method = (
        Limits(value, value - half, value + half),
        2 * t * sqrt(effect * y.var() / (n - 1)),
        "t",
    )
    if binary:
        low, high = wilson(float(y.sum()) / effect, n / effect, t if alike is not None else Z_95)
        plain = high - low
        if weight == 1.0:
            limits, method = _from_counts(y, f, u, alike), "newcombe, paired"
    answer = _judged(limits, plain, rho, weight, n, many, f"prediction-powered, {method}")
    if answer.value is None or not binary:
        return answer
    return replace(answer, value=_fraction(limits.value), low=_fraction(limits.low), high=_fraction(limits.high))


def _fraction(x: float) -> float:
    return min(1.0, max(0.0, x))


def _from_counts(y: Numbers, f: Numbers, u: Numbers, alike: Likeness | None) -> Limits:
    """Wilson for the predictions' mean and Newcombe's paired interval for real − sim, squared and added."""
    both, n = int((y * f).sum()), len(y)
    only_real, only_sim = int(y.sum()) - both, int(f.sum()) - both
    correction = paired_drop(both, only_real, only_sim, n - both - only_real - only_sim, alike=alike)
    mean, shift = float(u.mean()), correction.value or 0.0
    low, high = wilson(float(u.sum()), len(u))
    below, above = sqrt((mean - low) ** 2 + (shift - correction.low) ** 2), (high - mean, correction.high - shift)
    return Limits(mean + shift, mean + shift - below, mean + shift + sqrt(above[0] ** 2 + above[1] ** 2))


@dataclass(frozen=True)
class PredictionCell:
    """One task and condition: its sim and real counts and its share of the target mix."""

    sim_successes: int
    sim_n: int
    real_successes: int
    real_n: int
    share: float


def predicted_by_cells(cells: Sequence[PredictionCell], alike: Likeness | None = None) -> Prediction:
    """The real rate over a target mix when no episode is paired: the sim rate of its cell predicts each real one.

    Formula: θ = Σ share·f + mean(Y − f), f the cell's sim rate; v = Var(Y − f)/n + Σ (share − w)² f(1−f)/m its
    variance, w the real episodes' own shares and m the cell's sim episodes; Wilson at θ with Var(Y)/v episodes.
    Source: Angelopoulos et al. 2023, the table of sim rates being the model. Assumes real episodes that follow the
    target mix, and shares that are known. Smallest n: ten real ones; refusals and `alike` as in `predicted_mean`.
    """
    n, many = sum(cell.real_n for cell in cells), sum(cell.sim_n for cell in cells)
    refused = Prediction(None, None, None, None, None, None, n, many, "prediction-powered by cells")
    if n < FEWEST_PAIRS:
        return replace(refused, reason=f"{n} real episodes; ten are needed")
    if any(not cell.sim_n and (cell.real_n or cell.share) for cell in cells):
        return replace(refused, reason="real episodes in cells that sim never saw")
    used = [(cell, cell.sim_successes / cell.sim_n) for cell in cells if cell.sim_n]
    outcomes = [(cell.real_successes, 1.0, f) for cell, f in used]
    outcomes += [(cell.real_n - cell.real_successes, 0.0, f) for cell, f in used]
    times = [count for count, _, _ in outcomes]
    y, f = np.repeat([y for _, y, _ in outcomes], times), np.repeat([f for _, _, f in outcomes], times)
    rho = _correlation(y, f)
    target = sum(cell.share * rate for cell, rate in used)
    value = _fraction(target + float((y - f).mean()))
    mismatch = sum((cell.share - cell.real_n / n) ** 2 * r * (1 - r) / cell.sim_n for cell, r in used)
    effect, t = (1.0, Z_95) if alike is None else (alike.design_effect, t_95(alike.freedom))
    variance = effect * float((y - f).var()) / n + mismatch
    plain_low, plain_high = wilson(float(y.sum()) / effect, n / effect, t)
    worth = float(y.var()) / variance if variance > 0 else 0.0
    limits = Limits(value, *wilson(value * worth, worth, t))
    return _judged(limits, plain_high - plain_low, rho, 1.0, n, many, refused.method)


def _correlation(y: Numbers, f: Numbers) -> float | None:
    """Pearson's ρ, or None when a side does not vary."""
    spread = float(y.var() * f.var())
    covariance = float(((y - y.mean()) * (f - f.mean())).mean())
    return covariance / sqrt(spread) if spread > 1e-18 else None  # noqa: PLR2004


def _judged(
    limits: Limits, plain_width: float, rho: float | None, weight: float, n: int, many: int, method: str
) -> Prediction:
    """The prediction, or the refusal with its reason."""
    width = limits.high - limits.low
    worth = n * (plain_width / width) ** 2 if width > 0 else None
    refused = Prediction(None, None, None, rho, weight, worth, n, many, method)
    if rho is None:
        return replace(refused, reason="real or sim outcomes do not vary")
    if rho < LEAST_RHO:
        return replace(refused, reason=f"ρ is {rho:.2f}, below 0.3: sim says too little about real")
    if worth is None or worth <= n:
        return replace(refused, reason="no gain over the real episodes alone")
    return Prediction(limits.value, limits.low, limits.high, rho, weight, worth, n, many, method)
