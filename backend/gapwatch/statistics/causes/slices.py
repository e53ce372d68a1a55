"""The drop per condition level: which levels are worse, with false-discovery control, and which stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, hypot, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.estimates.multiplicity import benjamini_hochberg
from gapwatch.statistics.estimates.rates import Z_95, t_95, wilson
from gapwatch.statistics.estimates.worst_first import is_few, is_shared, surest_first

Array = NDArray[np.float64]
Counts = tuple[int, int, int, int]
Interval = tuple[float, float]
Verdict = Literal["worse", "better", "none", "too few episodes"]

SMALLEST_EXPECTED = 5
FEW_TABLES, MOST_TABLES = 10_000, 300_000
RELEVANT = 0.05
# Equal tables must count as ties although their statistics are rounded differently.
TIE = 1e-9


@dataclass(frozen=True)
class Slice:
    """One level of one condition. `drop` is sim − real there, `excess` that minus the drop at the other levels.

    `sure_loss` is the lower end of the drop; at a level that sim never tried, of the drop from the whole of sim.
    """

    condition: str
    level: str
    n_sim: int
    n_real: int
    verdict: Verdict
    drop: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    test: str | None = None
    q_value: float | None = None
    excess: float | None = None
    excess_interval: Interval | None = None
    excess_q: float | None = None
    is_suspect: bool = False
    reason: str | None = None
    sure_loss: float | None = None
    is_few: bool = False
    is_shared: bool = False
    # The suspect that explains it (`suspects.adjust_suspects`).
    goes_with: str | None = None

    @property
    def may_lead(self) -> bool:
        return not (self.is_few or self.is_shared)


@dataclass(frozen=True)
class Crowding:
    """Of the sites, robots or sessions of a side: how alike their episodes are, and how many each holds.

    `size` is that of the cluster that an episode is found in, Σn²/Σn; `freedom` says how well the ICC is known.
    """

    icc: float
    size: float
    freedom: float

    def effect(self, n: int) -> float:
        """How many of n episodes are worth one independent, a t quantile in place of the normal one included."""
        return (1 + (max(1.0, min(self.size, n)) - 1) * self.icc) * (t_95(self.freedom) / Z_95) ** 2


def slice_drops(
    counts: Mapping[tuple[str, str], Counts],
    relevant: float = RELEVANT,
    level: float = 0.05,
    crowding: tuple[Crowding | None, Crowding | None] = (None, None),
) -> list[Slice]:
    """Every (condition, level) with (k_sim, n_sim, k_real, n_real), the surest loss first.

    `worse` or `better`: the drop is at least `relevant` and its q, Benjamini and Hochberg's over all levels, at
    most `level`. `none`: the whole interval lies within ± `relevant`. Otherwise `too few episodes`. So at given
    rates more episodes can only settle a verdict, never turn one settled verdict into another.
    A suspect is worse and stands out: its excess over the other levels of its condition is at least `relevant`,
    with q at most `level`. Where everything is equally worse there is none, and a level that nearly all episodes
    share is none. Such levels, and those of fewer than 20 episodes, come last (`worst_first`).
    Assumes independent episodes, or sessions (robots, sites) of each side that are as alike at every level as they
    are altogether (`crowding`): then tests and intervals see n by the design effect of a level that lasts for
    whole sessions, the worst case. For the tests see `rate_test` and `excess_tests`. Smallest n: 1 a side, level.
    """
    worth = {key: _worth(c, crowding) for key, c in counts.items()}
    known = [key for key, c in counts.items() if c[1] > 0 and c[3] > 0]
    tests = {key: rate_test(*worth[key]) for key in known}
    q_values = dict(zip(known, benjamini_hochberg([tests[key][0] for key in known]), strict=True))
    rests = {key: _rest(worth, key) for key in known}
    compared = {key: rest for key, rest in rests.items() if rest is not None}
    excesses = excess_tests([(worth[key], rest) for key, rest in compared.items()])
    standing = dict(zip(compared, excesses, strict=True))
    adjusted = benjamini_hochberg([p for _, _, p in standing.values()])
    excess_q = dict(zip(standing, adjusted, strict=True))
    totals = _totals(counts)
    slices = []
    for key, c in counts.items():
        k_sim, all_sim, all_real = totals[key[0]]
        few, shared = is_few(c[1], c[3]), is_shared(c[1], all_sim, c[3], all_real)
        if key not in q_values:
            side = "sim" if c[1] == 0 else "real"
            sure_loss = newcombe(k_sim, all_sim, c[2], c[3])[1][0] if c[3] and all_sim else None
            reason = f"No episodes in {side}."
            slices.append(
                Slice(*key, c[1], c[3], "too few episodes", reason=reason, sure_loss=sure_loss, is_few=few,
                      is_shared=shared)
            )  # fmt: skip
            continue
        drop = c[0] / c[1] - c[2] / c[3]
        interval = newcombe(*_scaled(c, crowding))[1]
        verdict = _verdict(drop, interval, q_values[key], relevant, level)
        excess, around, _ = standing.get(key, (None, None, None))
        stands_out = excess is not None and excess >= relevant and excess_q[key] <= level
        suspect = stands_out and verdict == "worse" and not shared
        slices.append(
            Slice(*key, c[1], c[3], verdict, drop, interval, *tests[key], q_values[key], excess, around,
                  excess_q.get(key), suspect, sure_loss=interval[0], is_few=few, is_shared=shared)
        )  # fmt: skip
    return sorted(slices, key=lambda s: (surest_first(s.sure_loss, leads=s.may_lead), s.condition, s.level))


def newcombe(k_sim: float, n_sim: float, k_real: float, n_real: float, z: float = Z_95) -> tuple[float, Interval]:
    """The drop p_sim − p_real and its hybrid score interval.

    Formula: Δ − √((p1 − l1)² + (u2 − p2)²), Δ + √((u1 − p1)² + (p2 − l2)²), l and u Wilson's limits.
    Source: Newcombe 1998b, method 10. Smallest n: 1 a side.
    """
    p1, p2 = k_sim / n_sim, k_real / n_real
    (l1, u1), (l2, u2) = wilson(k_sim, n_sim, z), wilson(k_real, n_real, z)
    return p1 - p2, (p1 - p2 - hypot(p1 - l1, u2 - p2), p1 - p2 + hypot(u1 - p1, p2 - l2))


def rate_test(k_sim: int, n_sim: int, k_real: int, n_real: int) -> tuple[float, str]:
    """Two-sided p of equal rates, and the name of the test.

    Score test (χ²) where every expected count is 5 or more and n_sim · n_real is above 10 000. Otherwise Barnard's
    exact unconditional test on the same statistic: p = sup over the common rate of P(|z| ≥ |z observed|); above
    300 000 Fisher's exact test, for speed. Source: Barnard 1947, Fisher 1935. Computed size at 5 %, for n_real
    15–300, n_sim 50–1000 and rates of 0.2–50 %: at most 5.05 %. Smallest n: 1 a side.
    """
    pooled = (k_sim + k_real) / (n_sim + n_real)
    z = _score(np.array(float(k_sim)), n_sim, np.array(float(k_real)), n_real)
    if min(n_sim, n_real) * min(pooled, 1 - pooled) >= SMALLEST_EXPECTED and n_sim * n_real > FEW_TABLES:
        return erfc(abs(float(z)) / sqrt(2)), "score"
    if n_sim * n_real <= MOST_TABLES:
        return _barnard(abs(float(z)), n_sim, n_real), "Barnard"
    return _fisher(k_sim, n_sim, k_real, n_real), "Fisher"


def excess_tests(pairs: Sequence[tuple[Counts, Counts]]) -> list[tuple[float, Interval, float]]:
    """Of each (here, rest): the drop here minus the drop at the other levels, its interval, the p of no excess.

    Formula: Newcombe's limits of both drops, combined once more by √ of squares; p is the level at which the
    interval touches zero. Source: Zou and Donner 2008 (MOVER). Smallest n: 1 in each of the four rates.
    """
    if not pairs:
        return []
    # Here and elsewhere, in sim and in real: all four rates of all pairs in one array.
    counts = np.array(pairs, dtype=float).reshape(-1, 2, 2, 2).transpose(3, 1, 2, 0)
    low, high = np.zeros(len(pairs)), np.full(len(pairs), 40.0)
    for _ in range(32):
        middle = (low + high) / 2
        _, below, above = _excess(counts, middle)
        apart = (below > 0) | (above < 0)
        low, high = np.where(apart, middle, low), np.where(apart, high, middle)
    excesses = zip(*(column.tolist() for column in (*_excess(counts, Z_95), low)), strict=True)
    return [(value, (below, above), erfc(z / sqrt(2))) for value, below, above, z in excesses]


def _excess(counts: Array, z: Array | float) -> tuple[Array, Array, Array]:
    """Newcombe's interval of both drops, and the same of their difference. Axes: k and n, here and rest, side."""
    rates, low, high = _wilson(counts[0], counts[1], z)
    (here, rest), below, above = _apart(rates, rates - low, high - rates)
    return here - rest, here - rest - np.hypot(below[0], above[1]), here - rest + np.hypot(above[0], below[1])


def _apart(values: Array, below: Array, above: Array) -> tuple[Array, Array, Array]:
    """First minus second on the second axis, with how far down and up it reaches."""
    return (
        values[:, 0] - values[:, 1],
        np.hypot(below[:, 0], above[:, 1]),
        np.hypot(above[:, 0], below[:, 1]),
    )


def _wilson(k: Array, n: Array, z: Array | float) -> tuple[Array, Array, Array]:
    """The rate and `rates.wilson` of many at once."""
    p = k / n
    square = np.square(z)
    half = z * np.sqrt(p * (1 - p) / n + square / (4 * n * n))
    centre, scale = p + square / (2 * n), 1 + square / n
    return (
        p,
        np.maximum(0.0, np.minimum(p, (centre - half) / scale)),
        np.minimum(1.0, np.maximum(p, (centre + half) / scale)),
    )


def _verdict(drop: float, interval: Interval, q: float, relevant: float, level: float) -> Verdict:
    if q <= level and abs(drop) >= relevant:
        return "worse" if drop > 0 else "better"
    return "none" if -relevant < interval[0] and interval[1] < relevant else "too few episodes"


def _scaled(c: Counts, crowding: tuple[Crowding | None, Crowding | None]) -> tuple[float, float, float, float]:
    """The counts that as many independent episodes would be."""
    sim, real = (1.0 if one is None else one.effect(n) for one, n in zip(crowding, (c[1], c[3]), strict=True))
    return c[0] / sim, c[1] / sim, c[2] / real, c[3] / real


def _worth(c: Counts, crowding: tuple[Crowding | None, Crowding | None]) -> Counts:
    """The same in whole episodes, for exact tests."""
    if crowding == (None, None):
        return c
    whole = [
        (round(k * max(1, round(worth)) / n), max(1, round(worth))) if n else (0, 0)
        for k, n, worth in zip(c[::2], c[1::2], _scaled(c, crowding)[1::2], strict=True)
    ]
    return (*whole[0], *whole[1])


def _totals(counts: Mapping[tuple[str, str], Counts]) -> dict[str, tuple[int, int, int]]:
    """Of each condition, over its levels: the successes and the episodes in sim, and the episodes in real."""
    totals: dict[str, tuple[int, int, int]] = {}
    for (condition, _), c in counts.items():
        k_sim, n_sim, n_real = totals.get(condition, (0, 0, 0))
        totals[condition] = (k_sim + c[0], n_sim + c[1], n_real + c[3])
    return totals


def _rest(counts: Mapping[tuple[str, str], Counts], key: tuple[str, str]) -> Counts | None:
    others = [c for other, c in counts.items() if other[0] == key[0] and other != key]
    k_sim, n_sim, k_real, n_real = (sum(c[i] for c in others) for i in range(4))
    return (k_sim, n_sim, k_real, n_real) if n_sim > 0 and n_real > 0 else None


def _score(k1: NDArray[np.float64], n1: int, k2: NDArray[np.float64], n2: int) -> NDArray[np.float64]:
    pooled = (k1 + k2) / (n1 + n2)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    return np.asarray((k1 / n1 - k2 / n2) / np.where(spread > 0, spread, 1))


def _barnard(z: float, n1: int, n2: int) -> float:
    if z < TIE:
        return 1.0
    score = _score(np.arange(n1 + 1.0)[:, None], n1, np.arange(n2 + 1.0)[None, :], n2)
    # The score rises with k1, so at each k2 the tables as extreme are two tails of k1.
    low, high = (score <= TIE - z).sum(axis=0), (score >= z - TIE).sum(axis=0)
    first = np.pad(_binomial(n1), ((0, 0), (1, 0)))
    below, above = first.cumsum(axis=1), first[:, :0:-1].cumsum(axis=1)
    tails = below[:, low] + np.pad(above, ((0, 0), (1, 0)))[:, high]
    return min(1.0, float((tails * _binomial(n2)).sum(axis=1).max()))


@lru_cache(maxsize=8)
def _binomial(n: int) -> NDArray[np.float64]:
    """One row a rate: the probabilities of 0 … n successes. Rates are denser towards 0 and 1, where sups lie."""
    from scipy.special import gammaln

    rates = np.sin(np.linspace(0, np.pi / 2, 122)[1:-1])[:, None] ** 2
    k = np.arange(n + 1.0)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + np.log(rates) * k + np.log1p(-rates) * (n - k)))


def _fisher(k_sim: int, n_sim: int, k_real: int, n_real: int) -> float:
    from scipy.special import gammaln

    total, hits = n_sim + n_real, k_sim + k_real
    k = np.arange(max(0, hits - n_sim), min(n_real, hits) + 1)

    def ways(n: int, of: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(gammaln(n + 1) - gammaln(of + 1) - gammaln(n - of + 1))

    chance = np.exp(ways(n_real, k) + ways(n_sim, hits - k) - ways(total, np.array(hits)))
    return min(1.0, float(chance[chance <= chance[k_real - k[0]] * (1 + 1e-7)].sum()))
