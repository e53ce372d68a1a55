"""Durations from sketches: failed attempts are cut off, and the number of attempts must not matter."""

from __future__ import annotations

from typing import Literal

import numpy as np

from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.statistics.estimates import drops, sketches

OUTCOMES: tuple[Literal["success", "failure"], ...] = ("success", "failure")


def restricted_means(
    sim: ComparisonSide, real: ComparisonSide
) -> tuple[drops.MetricSums, drops.MetricSums, float] | None:
    """Both sides' restricted means as moments of the same mean and variance, and tau; None without cut-offs.

    A failed attempt is one whose time to success was cut off. `drops.duration_drop` does the same for listed
    attempts; here each duration is known within 1 %, as sketches keep it. tau is never past what both observed.
    """
    curves = [_Curve(side) for side in (sim, real)]
    if not any(curve.cut.sum() for curve in curves) or not all(curve.times.size for curve in curves):
        return None
    tau = min(*(float(curve.times[-1]) for curve in curves), *(curve.known_until for curve in curves))
    first, second = (curve.restricted(tau) for curve in curves)
    return first, second, tau


def sums_of(n: int, mean: float, variance: float) -> drops.MetricSums:
    """n, Σx and Σx² of values with this mean and variance."""
    total = mean * n
    return drops.MetricSums(n, total, total * mean + variance * max(0, n - 1))


class _Curve:
    """The Kaplan–Meier curve of one side: at each bin's time, how many completed and how many were cut off."""

    def __init__(self, side: ComparisonSide) -> None:
        rollups = side.metrics.get("duration_s", {})
        table: dict[float, list[int]] = {}
        for index, outcome in enumerate(OUTCOMES):
            if outcome in rollups:
                values, counts = sketches.values_and_counts(rollups[outcome].sketch)
                for value, count in zip(values.tolist(), counts.tolist(), strict=True):
                    table.setdefault(value, [0, 0])[index] += count
        self.times = np.array(sorted(table))
        both = np.array([table[time] for time in self.times.tolist()], dtype=float).reshape(-1, 2)
        self.done, self.cut = both[:, 0], both[:, 1]

    @property
    def known_until(self) -> float:
        """A side whose longest attempt was completed is known for ever after."""
        return float(self.times[-1]) if self.cut[-1] else float("inf")

    def restricted(self, tau: float) -> drops.MetricSums:
        """Mean and variance as in `drops.restricted_mean`, in a form that gives Welch m − 1 degrees of freedom."""
        kept = self.times <= tau
        times, done, cut = self.times[kept], self.done[kept], self.cut[kept]
        gone = np.concatenate([[0.0], np.cumsum(done + cut)])[:-1]
        under_way = (self.done + self.cut).sum() - gone
        survival = np.cumprod(1 - done / under_way)
        until = np.cumsum(np.concatenate([[1.0], survival[:-1]]) * np.diff(np.concatenate([[0.0], times])))
        area = float(until[-1] + survival[-1] * (tau - times[-1])) if times.size else tau
        steps = (done > 0) & (done < under_way)
        weights = done[steps] / (under_way[steps] * (under_way[steps] - done[steps]))
        variance = float((area - until[steps]) ** 2 @ weights)
        m = int(done.sum())
        # The variance of a mean of m values is their variance by m; wider by m/(m − 1), as `duration_drop` is.
        return sums_of(m, area, variance * m * m / (m - 1) if m > 1 else 0.0)
