"""The drop of a metric other than success: means by Welch, durations with cut-off attempts, rewards in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Literal

import numpy as np

from gapwatch.answers.answer import Interval
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.durations import restricted_means, sums_of
from gapwatch.answers.sides import Sides
from gapwatch.statistics.estimates import (
    drops,
    sketches,
    verdicts,
)
from gapwatch.statistics.estimates.rates import Z_95, t_95
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
    sizes, method = (sim.n, real.n), "welch"
    censored = restricted_means(sides.sim, sides.real) if name == "duration_s" else None
    if censored is not None:
        sim, real, tau = censored
        method = f"restricted mean up to {tau:g} s, welch"
    drop = drops.mean_drop(sim, real, "lower" if better == "higher" else "higher")
    base = sim.total / sim.n if sim.n else None
    smallest = _smallest(sides, name, base)
    interval = None if drop.low is None or drop.high is None else (drop.low, drop.high)
    word = verdicts.verdict(drop.low, drop.high, drop.value, smallest or 0.0)
    return MetricDrop(
        drop.value,
        interval,
        drop.value / abs(base) if drop.value is not None and base else None,
        _side(sim, sizes[0]),
        _side(real, sizes[1]),
        word,
        smallest,
        _needed(drop.value, smallest, sim, real) if word == "too few episodes" else 0,
        better,
        direction,
        method,
        _reason(name, sides, sizes, drop.reason),
    )


def direction_of(options: Mapping[str, Any], name: str) -> tuple[Better, Literal["project", "default"]]:
    better = options.get("metrics", {}).get(name, {}).get("better")
    if better in ("higher", "lower"):
        return better, "project"
    lower = name.endswith(LESS_IS_BETTER) or any(word in name for word in LESS_IS_BETTER_WORDS)
    return ("lower" if lower else "higher"), "default"


def paired_reward(pairs: Sequence[PairRow], better: Better) -> tuple[float, Interval | None, int] | None:
    """Mean difference over pairs that both have a reward, with Student's t; None below ten pairs."""
    sign = 1.0 if better == "higher" else -1.0
    lost = np.array(
        [
            sign * (pair.sim_reward - pair.real_reward)
            for pair in pairs
            if pair.sim_reward is not None and pair.real_reward is not None
        ]
    )
    if lost.size < FEWEST_PAIRS:
        return None
    mean, half = float(lost.mean()), t_95(lost.size - 1) * float(lost.std(ddof=1)) / sqrt(lost.size)
    return mean, (mean - half, mean + half) if half > 0 else None, int(lost.size)


def _moments(side: ComparisonSide, name: str) -> drops.MetricSums:
    """Successes and failures together; what a rollup keeps as whole steps becomes the sums that Welch takes."""
    together = sketches.Moments()
    for rollup in side.metrics.get(name, {}).values():
        together = together + rollup.moments
    return sums_of(together.n, together.mean or 0.0, together.variance or 0.0)


def _side(moments: drops.MetricSums, n: int) -> SideMean:
    if not moments.n:
        return n, None, None
    mean = moments.total / moments.n
    if moments.n < drops.FEWEST_FOR_A_MEAN or moments.mean_variance <= 0:
        return n, mean, None
    half = t_95(moments.n - 1) * sqrt(moments.mean_variance)
    return n, mean, (mean - half, mean + half)


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
