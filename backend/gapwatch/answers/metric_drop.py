"""The drop of a metric other than success: means, durations with cut-off attempts, rewards in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Literal

import numpy as np

from gapwatch.answers.answer import Interval
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.durations import restricted_means, sums_of
from gapwatch.answers.populations import ClusterKind, clusters_of_rows
from gapwatch.answers.sides import Sides
from gapwatch.statistics.estimates import (
    drops,
    sketches,
    verdicts,
)
from gapwatch.statistics.estimates.rates import Z_95, likeness_of, t_95
from gapwatch.statistics.estimates.skewed_means import MeanSide, guarded_mean_drop, mean_limits
from gapwatch.store.read.sides import PairRow

Better = Literal["higher", "lower"]
SideMean = tuple[int, float | None, Interval | None]

FEWEST_PAIRS = 10
# Without a word of the project, a loss of 5 % of sim's value is what matters.
RELATIVE_THAT_MATTERS = 0.05
POWER_80 = 0.8416212335729143
# Metrics whose names say that less is better, where the project says nothing.
LESS_IS_BETTER = ("_s", "_ms", "_j", "_wh")
LESS_IS_BETTER_WORDS = ("error", "rmse", "time", "energy", "cost", "force", "violation", "collision", "jerk")


@dataclass(frozen=True)
class MetricDrop:
    value: float | None
    interval: Interval | None
    relative: float | None
    sim: SideMean
    real: SideMean
    verdict: verdicts.Verdict
    smallest: float | None
    episodes_needed: int | None
    better: Better
    direction: Literal["project", "default"]
    method: str
    reason: str | None


def compare_metric(sides: Sides, name: str) -> MetricDrop:
    """Mean of the metric over successes and failures on both sides; of a duration the restricted mean."""
    better, direction = direction_of(sides.options, name)
    mismatch = sides.contract.unit_mismatch(name) if sides.reason is None else None
    if mismatch is not None:
        nothing = (0, None, None)
        few: verdicts.Verdict = "too few episodes"
        return MetricDrop(None, None, None, nothing, nothing, few, None, None, better, direction, "none", mismatch)
    sim, real = _moments(sides.sim, name), _moments(sides.real, name)
    sizes, method = (sim.n, real.n), ""
    censored = restricted_means(sides.sim, sides.real) if name == "duration_s" else None
    if censored is not None:
        sim, real, tau = censored
        method = f"restricted mean up to {tau:g} s, welch"
    # Restricted means have no tails: they end at tau.
    sim_side, real_side = (
        _mean_side(side, name, sums, has_shape=censored is None)
        for side, sums in ((sides.sim, sim), (sides.real, real))
    )
    drop = guarded_mean_drop(sim_side, real_side, "lower" if better == "higher" else "higher")
    method = method if censored is None else f"{method[: -len('welch')]}{drop.method}"
    base = sim.total / sim.n if sim.n else None
    smallest = _smallest(sides, name, base)
    interval = None if drop.low is None or drop.high is None else (drop.low, drop.high)
    word = verdicts.verdict(drop.low, drop.high, drop.value, smallest or 0.0)
    return MetricDrop(
        drop.value,
        interval,
        drop.value / abs(base) if drop.value is not None and base else None,
        _side(sim_side, sizes[0]),
        _side(real_side, sizes[1]),
        word,
        smallest,
        _needed(drop.value, smallest, sim, real) if word == "too few episodes" else 0,
        better,
        direction,
        method or drop.method,
        _reason(name, sides, sizes, drop.reason),
    )


def direction_of(options: Mapping[str, Any], name: str) -> tuple[Better, Literal["project", "default"]]:
    better = options.get("metrics", {}).get(name, {}).get("better")
    if better in ("higher", "lower"):
        return better, "project"
    lower = name.endswith(LESS_IS_BETTER) or any(word in name for word in LESS_IS_BETTER_WORDS)
    return ("lower" if lower else "higher"), "default"


def paired_reward(
    pairs: Sequence[PairRow], better: Better, by: ClusterKind | None = None
) -> tuple[float, Interval | None, int] | None:
    """Mean difference over pairs that both have a reward, with Student's t; None below ten pairs.

    Of the effective number of pairs where differences of one site, robot or session (`by`) are alike.
    """
    sign = 1.0 if better == "higher" else -1.0
    told = [pair for pair in pairs if pair.sim_reward is not None and pair.real_reward is not None]
    lost = np.array([sign * ((pair.sim_reward or 0.0) - (pair.real_reward or 0.0)) for pair in told])
    if lost.size < FEWEST_PAIRS:
        return None
    alike = None if by is None else likeness_of(clusters_of_rows(told, lost.tolist(), by), lost.size / 5)
    effect, freedom = (1.0, lost.size - 1) if alike is None else (alike.design_effect, alike.freedom)
    mean = float(lost.mean())
    half = t_95(min(lost.size - 1, freedom)) * float(lost.std(ddof=1)) * sqrt(effect / lost.size)
    return mean, (mean - half, mean + half) if half > 0 else None, int(lost.size)


def _moments(side: ComparisonSide, name: str) -> drops.MetricSums:
    """Successes and failures together; what a rollup keeps as whole steps becomes the sums that Welch takes."""
    together = sketches.Moments()
    for rollup in side.metrics.get(name, {}).values():
        together = together + rollup.moments
    return sums_of(together.n, together.mean or 0.0, together.variance or 0.0)


def _mean_side(side: ComparisonSide, name: str, sums: drops.MetricSums, *, has_shape: bool) -> MeanSide:
    """With the shape of the values, known within 1 % from sketches, and the likeness of the newest episodes."""
    by = side.describe(side.population).by
    alike = None
    if by is not None:
        values = [row.value for row in side.placed_values]
        alike = likeness_of(clusters_of_rows(side.placed_values, values, by), len(values) / 5)
    if not has_shape:
        return MeanSide(sums, None, None, alike, by or "session")
    shapes = [sketches.values_and_counts(rollup.sketch) for rollup in side.metrics.get(name, {}).values()]
    values_of = np.concatenate([np.empty(0), *(values for values, _ in shapes)])
    counts_of = np.concatenate([np.empty(0), *(counts for _, counts in shapes)])
    return MeanSide(sums, values_of, counts_of.astype(float), alike, by or "session")


def _side(side: MeanSide, n: int) -> SideMean:
    if not side.sums.n:
        return n, None, None
    return n, side.sums.total / side.sums.n, mean_limits(side)


def _smallest(sides: Sides, name: str, base: float | None) -> float | None:
    smallest = sides.options.get("metrics", {}).get(name, {}).get("smallest_that_matters")
    if smallest is not None:
        return float(smallest)
    return None if base is None else RELATIVE_THAT_MATTERS * abs(base)


def _needed(
    value: float | None, smallest: float | None, sim: drops.MetricSums, real: drops.MetricSums
) -> int | None:
    """More real episodes until the verdict is settled in four of five cases, if means and spreads stay."""
    if value is None or smallest is None or real.n < drops.FEWEST_FOR_A_MEAN:
        return None
    to_settle = max(value, smallest - value) / (Z_95 + POWER_80)
    room = to_settle**2 - sim.mean_variance
    if room <= 0:
        return None
    return max(0, ceil(real.mean_variance * real.n / room) - real.n)


def _reason(name: str, sides: Sides, sizes: tuple[int, int], reason: str | None) -> str | None:
    missing = [side for side, n in zip(("sim", "real"), sizes, strict=True) if not n]
    if sides.reason is None and missing:
        return f"No episode in {' and '.join(missing)} has the metric {name}."
    return reason
