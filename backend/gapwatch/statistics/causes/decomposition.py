"""A drop between aggregates split into off-support, mix and rate, with what else must be said beside it.

A stratum is a task, a condition level or a cell. Its counts are successes and episodes in sim, then in real.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, exp, sqrt

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.estimates.rates import Z_95, wilson

Counts = tuple[float, float, float, float]
Strata = Mapping[Hashable, Counts]
Interval = tuple[float, float]
Tree = Mapping[Hashable, Hashable]
Array = NDArray[np.float64]

SMALLEST_STRATUM = 5
CRUDE, RATE = 0, 3
OTHERS, DEEPEST_TREE = "(others)", 32


@dataclass(frozen=True)
class MantelHaenszel:
    """Effects pooled over strata: the odds of success, sim to real, and the drop in points."""

    odds_ratio: float | None
    odds_interval: Interval | None
    difference: float
    p_value: float | None


@dataclass(frozen=True)
class Decomposition:
    """`off_support` + `mix` + `rate` = `crude`, sim − real. None, with a reason, where a side has no episodes."""

    crude: float | None
    off_support: float | None
    mix: float | None
    rate: float | None
    n_sim: float
    n_real: float
    common: tuple[Hashable, ...] = ()
    sim_only: tuple[Hashable, ...] = ()
    real_only: tuple[Hashable, ...] = ()
    pooled: Tree | None = None
    reverses: bool = False
    mantel_haenszel: MantelHaenszel | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Intervals:
    """One interval a component, and how they were made."""

    crude: Interval
    off_support: Interval
    mix: Interval
    rate: Interval
    method: str


def decompose(strata: Strata, tree: Tree | None = None, smallest: int = SMALLEST_STRATUM) -> Decomposition:
    """The drop sim − real as off-support + mix + rate.

    Formula, on strata that both sides have, with shares w and rates r: mix = Σ (w_sim − w_real)(r_sim + r_real)/2,
    rate = Σ (w_sim + w_real)/2 · (r_sim − r_real); off_support = crude drop − drop on the common strata, never
    filled in. `reverses` (Simpson): crude and rate have opposite signs; then read the rate and `mantel_haenszel`.
    Common strata with fewer than `smallest` episodes on a side are put together under their parent in `tree` (of a
    tuple: all but its last part), again and again until large enough; `pooled` says which.
    Assumes nothing; it is arithmetic. Source: Kitagawa 1955. Smallest n: one episode a side, otherwise a reason.
    """
    cells, pooled = _pool(strata, tree, smallest)
    _, n_sim, _, n_real = rates = _rates(cells.values())
    sizes = sum(c[1] for c in strata.values()), sum(c[3] for c in strata.values())
    if min(sizes) == 0:
        return Decomposition(None, None, None, None, *sizes, reason="One side has no episodes.")
    both = (n_sim > 0) & (n_real > 0)
    crude, off, mix, rate = (float(x) for x in _components(*rates, both))
    common = tuple(key for key, kept in zip(cells, both, strict=True) if kept)
    return Decomposition(
        crude, off, mix, rate, *sizes, common,
        tuple(key for key, c in cells.items() if c[1] > 0 and c[3] == 0),
        tuple(key for key, c in cells.items() if c[1] == 0 and c[3] > 0),
        pooled, crude * rate < 0, mantel_haenszel([cells[key] for key in common]),
        None if common else "No stratum has episodes on both sides.",
    )  # fmt: skip


def mantel_haenszel(tables: Sequence[Counts]) -> MantelHaenszel | None:
    """The effect pooled over strata that both sides have; None without any.

    Formulas, with a, b successes and failures in sim, c, d in real, n their sum: odds ratio Σ ad/n / Σ bc/n, its
    interval after Robins, Breslow and Greenland 1986; difference Σ (a n_real − c n_sim)/n / Σ n_sim n_real/n; p
    without continuity correction. Source: Mantel and Haenszel 1959. Assumes one odds ratio in all strata. The
    ratio is None where it is 0 or infinite, p where no stratum has both outcomes.
    """
    usable = [t for t in tables if t[1] > 0 and t[3] > 0]
    if not usable:
        return None
    a, n_sim, c, n_real = np.array(usable, dtype=float).T
    b, d, n = n_sim - a, n_real - c, n_sim + n_real
    same, cross = a * d / n, b * c / n
    difference = float(((a * n_real - c * n_sim) / n).sum() / (n_sim * n_real / n).sum())
    spread = (n_sim * n_real * (a + c) * (b + d) / n**2 / np.maximum(n - 1, 1)).sum()
    p_value = erfc(abs((a - n_sim * (a + c) / n).sum()) / sqrt(2 * spread)) if spread > 0 else None
    top, bottom = float(same.sum()), float(cross.sum())
    if top == 0 or bottom == 0:
        return MantelHaenszel(None, None, difference, p_value)
    p, q = (a + d) / n, (b + c) / n
    variance = float((p * same).sum() / top**2 + (q * cross).sum() / bottom**2) / 2
    variance += float((p * cross + q * same).sum()) / (2 * top * bottom)
    ratio, half = top / bottom, Z_95 * sqrt(variance)
    return MantelHaenszel(ratio, (ratio * exp(-half), ratio * exp(half)), difference, p_value)


def part_intervals(
    strata: Strata, *, design_effects: tuple[float, float] = (1.0, 1.0), smallest: int = SMALLEST_STRATUM
) -> Intervals | None:
    """95 % intervals of the components of `decompose`; None where a side has no episodes.

    Formula: sizes of strata are multinomial, successes binomial; a component varies by the delta method, with how
    much it moves with each share and each rate. A rate's variance is p(1 − p)/(n − 1), with p the rate pulled
    towards the side's by one episode: a stratum with only successes would not vary at all. In crude and rate a
    side's rates enter by a mean; it has Wilson's limits for as many episodes as have its variance. Limits of the
    sides are √-added (Newcombe's way).
    Sessions: a side (sim, real) whose episodes resemble one another within a sitting has n / design effect
    independent ones (`rates.clustered_rate`). Common strata stay as observed. Assumes that sittings differ alike
    in every stratum. Sources: Cramér 1946; Newcombe 1998; Kish 1965 (the design effect). Smallest n: 1.
    Measured: docs/decisions/0017.
    """
    cells, _ = _pool(strata, None, smallest)
    r_sim, n_sim, r_real, n_real = _rates(cells.values())
    if n_sim.sum() == 0 or n_real.sum() == 0:
        return None
    both = (n_sim > 0) & (n_real > 0)
    sim, real = (
        _moving(rate, size, both, max(1.0, effect))
        for rate, size, effect in zip((r_sim, r_real), (n_sim, n_real), design_effects, strict=True)
    )
    (sim_below, sim_above), (real_below, real_above) = _reach(sim, real), _reach(real, sim)
    parts = _components(r_sim, n_sim, r_real, n_real, both)
    low, high = parts - np.hypot(sim_below, real_above), parts + np.hypot(sim_above, real_below)
    limits = np.clip([low, high], -1, 1)
    crude, off, mix, rate = ((float(low), float(high)) for low, high in limits.T)
    grouped = [side for side, effect in zip(("sim", "real"), design_effects, strict=True) if effect > 1]
    method = "delta method" + (f", sessions of {' and '.join(grouped)}" if grouped else "")
    return Intervals(crude, off, mix, rate, method)


@dataclass(frozen=True)
class _Moving:
    """A side's strata, and how far their rates and shares vary.

    `step`: by how much a share of all strata moves `within`, the share of the common ones.
    """

    n: float
    rate: Array
    pulled: Array
    share: Array
    within: Array
    step: Array
    rate_variance: Array


def _moving(rate: Array, size: Array, both: NDArray[np.bool_], effect: float) -> _Moving:
    total = size.sum()
    share = size / total
    step = both / max(float((share * both).sum()), 1e-300)
    overall = ((rate * size).sum() + 0.5) / (total + 1)
    p = (rate * size + overall) / (size + 1)
    variance = np.where(size > 0, p * (1 - p) / np.maximum(size / effect - 1, 1), 0)
    return _Moving(total / effect, rate, p, share, share * step, step, variance)


def _reach(own: _Moving, other: _Moving) -> Array:
    """How far down and up one side's episodes may move crude, off-support, mix and rate."""
    mix, rate = (own.within - other.within) / 2, (own.within + other.within) / 2
    by_rate = np.array([own.share, own.share - mix - rate, mix, rate])
    mix, rate = (
        own.step * (mean - (own.within * mean).sum())
        for mean in ((own.rate + other.rate) / 2, (own.rate - other.rate) / 2)
    )
    by_share = np.array([own.rate, own.rate - mix - rate, mix, rate])
    spread = (own.share * (by_share - (by_share @ own.share)[:, None]) ** 2).sum(axis=1)
    by_shares = Z_95**2 * spread / own.n
    variances = by_rate**2 @ own.rate_variance
    by_rates = np.tile(Z_95 * np.sqrt(variances), (2, 1))
    for part in (CRUDE, RATE):
        if variances[part] > 0:
            by_rates[:, part] = _wilson_reach(
                by_rate[part] @ own.rate, by_rate[part] @ own.pulled, variances[part]
            )
    return np.asarray(np.sqrt(by_rates**2 + by_shares))


def _wilson_reach(mean: float, pulled: float, variance: float) -> tuple[float, float]:
    n = pulled * (1 - pulled) / variance
    low, high = wilson(mean * n, n)
    return mean - low, high - mean


def _pool(
    strata: Strata, tree: Tree | None, smallest: int
) -> tuple[dict[Hashable, Counts], dict[Hashable, Hashable]]:
    """Strata with the small common ones put together, and where each of those went."""
    cells = dict(strata)
    small = {key for key, c in cells.items() if min(c[1], c[3]) > 0 and min(c[1], c[3]) < smallest}
    place: dict[Hashable, Hashable] = {}
    for _ in range(DEEPEST_TREE):
        risen: dict[Hashable, list[Hashable]] = {}
        for key in sorted(small, key=repr):
            risen.setdefault(_parent(key, tree), []).append(key)
        small = set()
        for parent, children in risen.items():
            if parent in children:
                continue
            parts = [cells.pop(child) for child in children] + ([cells[parent]] if parent in cells else [])
            k_sim, n_sim, k_real, n_real = (sum(column) for column in zip(*parts, strict=True))
            cells[parent] = (k_sim, n_sim, k_real, n_real)
            place |= {old: parent for old, new in place.items() if new in children}
            place |= {child: parent for child in children if child in strata}
            if min(cells[parent][1], cells[parent][3]) < smallest:
                small.add(parent)
    members = Counter(place.values())
    for key in [key for key, label in place.items() if members[label] == 1 and label not in strata]:
        cells[key] = cells.pop(place.pop(key))  # Nothing to be put together with: it stays what it was.
    return cells, place


def _parent(key: Hashable, tree: Tree | None) -> Hashable:
    if tree is not None and key in tree:
        return tree[key]
    return key[:-1] if isinstance(key, tuple) and len(key) > 1 else OTHERS


def _rates(cells: Iterable[Counts]) -> tuple[Array, Array, Array, Array]:
    k_sim, n_sim, k_real, n_real = np.array(list(cells), dtype=float).reshape(-1, 4).T
    return k_sim / np.where(n_sim > 0, n_sim, 1), n_sim, k_real / np.where(n_real > 0, n_real, 1), n_real


def _components(r_sim: Array, n_sim: Array, r_real: Array, n_real: Array, both: NDArray[np.bool_]) -> Array:
    """Crude, off-support, mix and rate; strata on the last axis, replicates on those before."""
    all_sim, all_real, w, v = (n / np.maximum(n.sum(axis=-1, keepdims=True), 1e-300)
                               for n in (n_sim, n_real, n_sim * both, n_real * both))  # fmt: skip
    crude = (all_sim * r_sim).sum(axis=-1) - (all_real * r_real).sum(axis=-1)
    mix = ((w - v) * (r_sim + r_real)).sum(axis=-1) / 2
    rate = ((w + v) * (r_sim - r_real)).sum(axis=-1) / 2
    # Not as what is left: without a stratum of one side only it is exactly nothing.
    off = ((all_sim - w) * r_sim).sum(axis=-1) - ((all_real - v) * r_real).sum(axis=-1)
    return np.array([crude, off, mix, rate])
