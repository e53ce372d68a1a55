"""What a rollup keeps of many numbers: log-bin sketches for quantiles, exact sums for means.

Both are integers only. Adding and subtracting parts gives the same bits in any order, so a replayed or corrected
rollup equals a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cache, cached_property
from math import floor, isqrt, log
from sys import float_info

import numpy as np
from numpy.typing import ArrayLike, NDArray

ACCURACY = 0.01
GRID_BITS = 80
LARGEST_SHIFTED = 2.0**900
_MANTISSA_BITS = 53
_LIMB = (1 << 18) - 1
# Sums of products of two limbs stay below 2^53.
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Sketch:
    """Counts per log-bin: `positive[i]` is the number of values in (γ^(i−1), γ^i], `negative` the same of −x."""

    positive: Mapping[int, int] = field(default_factory=dict)
    negative: Mapping[int, int] = field(default_factory=dict)
    zero: int = 0

    @property
    def n(self) -> int:
        return sum(self.positive.values()) + sum(self.negative.values()) + self.zero

    @cached_property
    def columns(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """`values_and_counts` at the stored accuracy, cached for repeated use."""
        return _columns(self, ACCURACY)


def bin_index(x: float, a: float = ACCURACY) -> int:
    """The log-bin of a positive value.

    Formula: i = ceil(ln x / ln γ), γ = (1 + a) / (1 − a); so γ^(i−1) < x ≤ γ^i.
    Source: DDSketch (Masson, Rim and Lee 2019). x is a positive normal double.
    """
    return int(_indices(np.array([x]), a)[0])


def fold(values: ArrayLike, a: float = ACCURACY) -> Sketch:
    """The sketch of some values; sizes below the smallest normal double (2.2e-308) count as zero.

    Raises ValueError for NaN and infinity: the record refuses them, so they are a fault of the caller.
    """
    x = np.asarray(values, dtype=float).ravel()
    if not np.isfinite(x).all():
        raise ValueError("values must be finite")
    positive, negative = x[x >= float_info.min], -x[x <= -float_info.min]
    return Sketch(_count(positive, a), _count(negative, a), int(x.size - positive.size - negative.size))


def merge(parts: Iterable[Sketch]) -> Sketch:
    """The sketch of all parts together: counts are added, so order and grouping do not matter."""
    positive: dict[int, int] = {}
    negative: dict[int, int] = {}
    zero = 0
    for part in parts:
        _add(positive, part.positive)
        _add(negative, part.negative)
        zero += part.zero
    return Sketch(_tidy(positive), _tidy(negative), zero)


def values_and_counts(sketch: Sketch, a: float = ACCURACY) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The bins' values, ascending, and how many numbers each stands for. Read-only."""
    return sketch.columns if a == ACCURACY else _columns(sketch, a)


def _columns(sketch: Sketch, a: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    down, up = sorted(sketch.negative, reverse=True), sorted(sketch.positive)
    middle = [sketch.zero] if sketch.zero else []
    values = np.concatenate([-_values(down, a), np.zeros(len(middle)), _values(up, a)])
    counts = [*(sketch.negative[i] for i in down), *middle, *(sketch.positive[i] for i in up)]
    return values, np.array(counts, dtype=np.int64)


def quantile(sketch: Sketch, q: float, a: float = ACCURACY) -> float | None:
    """The value at rank floor(q (n − 1)) of the sorted values, within a · |value|; None without values.

    The bin's value 2γ^i / (γ + 1) = (1 + a) γ^(i−1) is at most a · x from every x in the bin.
    """
    values, counts = values_and_counts(sketch, a)
    if not values.size:
        return None
    rank = floor(q * (int(counts.sum()) - 1))
    return float(values[np.searchsorted(np.cumsum(counts), rank, side="right")])


def cdf(sketch: Sketch, x: float, a: float = ACCURACY) -> float | None:
    """The share of values at or below x, exact up to the values in x's own bin; None without values."""
    values, counts = values_and_counts(sketch, a)
    if not values.size:
        return None
    own = fold([x], a)
    edge = values_and_counts(own, a)[0][0]
    return float(counts[values <= edge].sum() / counts.sum())


def ecdf(sketch: Sketch, most: int = 200, a: float = ACCURACY) -> list[tuple[float, float]]:
    """Points (value, share at or below) for drawing, ascending, thinned to at most `most` with both ends kept."""
    values, counts = values_and_counts(sketch, a)
    if not values.size:
        return []
    shares = np.cumsum(counts) / counts.sum()
    wanted = np.linspace(shares[0], 1, max(2, most))
    keep = np.unique(np.minimum(np.searchsorted(shares, wanted), values.size - 1))
    return [(float(values[i]), float(shares[i])) for i in keep]


@dataclass(frozen=True)
class Moments:
    """n, Σx and Σx² as exact integers: x is counted in steps of 2^−80, x² in steps of 2^−160.

    Sums of doubles depend on their order; sums of integers do not, and can be undone. Every double of size
    3.8e-9 or more is a whole number of steps, so its sum is exact; smaller ones are rounded once, to 4e-25. In
    Postgres both are `numeric` without a fraction: about 26 and 50 digits for values around 1.
    """

    n: int = 0
    total: int = 0
    total_sq: int = 0

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.total + other.total, self.total_sq + other.total_sq)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.n - other.n, self.total - other.total, self.total_sq - other.total_sq)

    @property
    def mean(self) -> float | None:
        """Σx / n, rounded once; finite for any finite values. None without values."""
        return self.total / (self.n << GRID_BITS) if self.n > 0 else None

    @property
    def sd(self) -> float | None:
        """√((Σx² − (Σx)²/n) / (n − 1)) without cancellation; always finite. None below two values."""
        if self.n < 2:  # noqa: PLR2004
            return None
        spread = max(0, self.n * self.total_sq - self.total**2)
        root = isqrt((spread << 128) // (self.n * (self.n - 1)))
        return root / (1 << (GRID_BITS + 64))

    @property
    def variance(self) -> float | None:
        """sd²; None below two values, and where it is above the largest double (sd is still given)."""
        if self.sd is None or self.sd > float_info.max**0.5:
            return None
        return self.sd**2


def moments(values: ArrayLike) -> Moments:
    """The moments of some values; raises ValueError for NaN and infinity, as `fold` does."""
    steps = whole_steps(values)
    return Moments(len(steps), sum(steps), sum(s * s for s in steps))


def whole_steps(values: ArrayLike) -> list[int]:
    """Each value as a whole number of steps of 2^−80, in order; raises ValueError for NaN and infinity."""
    x = np.asarray(values, dtype=float).ravel()
    if not np.isfinite(x).all():
        raise ValueError("values must be finite")
    huge = np.abs(x) >= LARGEST_SHIFTED
    # A shift by 80 bits is exact for these doubles, rint rounds alike everywhere, and int() of it is exact.
    steps = [int(y) for y in np.rint(np.ldexp(np.where(huge, 0.0, x), GRID_BITS)).tolist()]
    for index in np.flatnonzero(huge).tolist():
        steps[index] = int(x[index]) << GRID_BITS
    return steps


def step_sums(
    values: NDArray[np.float64], group: NDArray[np.int64], groups: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Σ and Σ² in whole steps for each group and column of a matrix: what `whole_steps` would add up to.

    A double is a whole number of 53 bits times a power of two. The numbers are added in limbs of 18 bits, each
    power separately, where doubles are exact, and combined as integers: no Python step per value.
    """
    columns = values.shape[1]
    totals = [[0] * columns for _ in range(groups)]
    squares = [[0] * columns for _ in range(groups)]
    if not np.isfinite(values).all():
        raise ValueError("values must be finite")
    for start in range(0, len(values), _ROWS_AT_ONCE):
        part = values[start : start + _ROWS_AT_ONCE]
        fraction, exponent = np.frexp(part)
        shift = exponent + (GRID_BITS - _MANTISSA_BITS)
        with np.errstate(over="ignore"):  # large values use the other branch
            small = np.rint(np.ldexp(part, GRID_BITS))
        whole = np.where(shift >= 0, np.ldexp(fraction, _MANTISSA_BITS), small)
        shift = np.maximum(shift, 0)
        shifts = np.flatnonzero(np.bincount(shift.ravel()))
        code = np.searchsorted(shifts, np.arange(shifts[-1] + 1))[shift]
        cell = group[start : start + _ROWS_AT_ONCE, None] * columns + np.arange(columns)
        key = (cell * len(shifts) + code).ravel()
        size = np.abs(whole).astype(np.int64)
        sign = np.sign(whole)
        low, middle, high = (limb.astype(float) for limb in (size & _LIMB, size >> 18 & _LIMB, size >> 36))
        limb_sums = [
            np.bincount(key, weights=weights.ravel(), minlength=groups * columns * len(shifts))
            for weights in (
                *(low * sign, middle * sign, high * sign),
                *(low * low, 2 * low * middle, 2 * low * high + middle * middle, 2 * middle * high, high * high),
            )
        ]
        filled = np.flatnonzero(limb_sums[3] + limb_sums[5] + limb_sums[7])
        rows = zip(
            filled.tolist(), *(column[filled].astype(np.int64).tolist() for column in limb_sums), strict=True
        )
        for at, t0, t1, t2, s0, s1, s2, s3, s4 in rows:
            where, power = divmod(at, len(shifts))
            number, column = divmod(where, columns)
            bits = int(shifts[power])
            totals[number][column] += t0 + (t1 << 18) + (t2 << 36) << bits
            squares[number][column] += s0 + (s1 << 18) + (s2 << 36) + (s3 << 54) + (s4 << 72) << 2 * bits
    return totals, squares


def signed_bins(values: NDArray[np.float64], a: float = ACCURACY) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sign (−1, 0, 1) and log-bin of each value; sizes below the smallest normal double are zero, bin 0."""
    size = np.abs(values)
    sign = np.where(size >= float_info.min, np.sign(values), 0).astype(np.int64)
    index = np.zeros(values.shape, dtype=np.int64)
    some = sign != 0
    index[some] = _indices(size[some], a)
    return sign, index


@cache
def _edges(a: float) -> tuple[NDArray[np.float64], int]:
    """Upper bin edges γ^i for every double, and the i of the first.

    Correctly rounded from 60 decimal digits, not from `exp`: the logarithms of two processors or two releases of
    numpy differ in the last bit, and then a value would be subtracted from another bin than it was added to.
    """
    context = Context(prec=60)
    gamma = context.divide(1 + Decimal(repr(a)), 1 - Decimal(repr(a)))
    width = log(gamma)
    first, last = floor(log(float_info.min) / width) - 2, floor(log(float_info.max) / width) + 2
    edge = context.power(gamma, first)
    edges = []
    for _ in range(first, last + 1):
        edges.append(float(edge))
        edge = context.multiply(edge, gamma)
    return np.array(edges), first


def _indices(x: NDArray[np.float64], a: float) -> NDArray[np.int64]:
    """Estimate the bin with a logarithm; the table of edges decides."""
    edges, first = _edges(a)
    index = np.ceil(np.log(x) / log((1 + a) / (1 - a))).astype(np.int64) - first
    index = index - (x <= edges[index - 1])
    return index + (x > edges[index]) + first


def _values(indices: Sequence[int], a: float) -> NDArray[np.float64]:
    edges, first = _edges(a)
    with np.errstate(over="ignore"):
        return np.minimum(edges[np.array(indices, dtype=np.int64) - 1 - first] * (1 + a), float_info.max)


def _count(x: NDArray[np.float64], a: float) -> dict[int, int]:
    if not x.size:
        return {}
    index, counts = np.unique(_indices(x, a), return_counts=True)
    return dict(zip(index.tolist(), counts.tolist(), strict=True))


def _add(into: dict[int, int], part: Mapping[int, int]) -> None:
    for index, count in part.items():
        into[index] = into.get(index, 0) + count


def _tidy(counts: Mapping[int, int]) -> dict[int, int]:
    """Without empty bins and in order, so that equal sketches are equal byte for byte when written."""
    return {index: counts[index] for index in sorted(counts) if counts[index]}
