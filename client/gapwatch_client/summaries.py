"""Streaming summaries of what a control loop observes: a few numbers per episode instead of every sample."""

from __future__ import annotations

from math import ceil, exp, log, sqrt

# Two values in one bin differ by at most two per cent, so a quantile is wrong by at most one.
_BINS_PER_E = 1 / log(1.02)
_SMALLEST = 1e-12
_QUANTILE = 0.95


class Summary:
    """Peak, p95, rms and mean of a stream, in constant time per value and memory that grows only with its decades.

    Peak and p95 are of the magnitude, since a force of −30 N is as hard as one of 30 N; the mean keeps its sign.
    The p95 is read from bins of geometric width and is within 1 % of the exact one (nearest rank).
    """

    __slots__ = ("_bins", "_square", "_sum", "count", "least", "peak", "refused", "tiny")

    def __init__(self) -> None:
        self.count = 0
        self.refused = 0
        self.peak = 0.0
        self.least = float("inf")
        self.tiny = 0
        self._sum = 0.0
        self._square = 0.0
        self._bins: dict[int, int] = {}

    def add(self, value: float) -> None:
        """Add a value. One that is not finite is counted and left out."""
        magnitude = value if value >= 0.0 else -value
        # A number minus itself is not zero for infinity and NaN; cheaper than calling isfinite.
        if magnitude - magnitude != 0.0:
            self.refused += 1
            return
        self.count += 1
        self._sum += value
        self._square += value * value
        self.peak = max(self.peak, magnitude)
        self.least = min(self.least, magnitude)
        if magnitude < _SMALLEST:
            self.tiny += 1
            return
        bin_index = int(log(magnitude) * _BINS_PER_E + 2000.0)  # the offset keeps truncation a floor
        bins = self._bins
        bins[bin_index] = bins.get(bin_index, 0) + 1

    def p95(self) -> float:
        rank = ceil(_QUANTILE * self.count)
        passed = self.tiny
        if passed >= rank:
            return 0.0
        for bin_index in sorted(self._bins):
            passed += self._bins[bin_index]
            if passed >= rank:
                middle = exp((bin_index - 2000.0 + 0.5) / _BINS_PER_E)
                return min(max(middle, self.least), self.peak)
        return self.peak

    def signals(self, name: str) -> dict[str, float]:
        """The signals written into the episode: force_n becomes force_n_peak, _p95, _rms and _mean."""
        if not self.count:
            return {}
        return {
            f"{name}_peak": self.peak,
            f"{name}_p95": self.p95(),
            f"{name}_rms": sqrt(self._square / self.count),
            f"{name}_mean": self._sum / self.count,
        }
