"""A difference split over its factors, exactly: the Shapley value, for rates also known as Das Gupta's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_FACTORS = 10
Factor = TypeVar("Factor")


def shapley(worth: ArrayLike) -> NDArray[np.float64]:
    """The share of each of K factors in worth[all] − worth[none].

    `worth` has 2^K entries on its first axis: entry S is the outcome with exactly those factors switched whose bit
    is set in S. Further axes are split one by one.
    Formula: φ_j = Σ over S without j of |S|! (K − |S| − 1)! / K! · (worth[S ∪ j] − worth[S]); they add up.
    Source: Shapley 1953; equal to Das Gupta 1993 (US Census P23-186), whose examples are the tests.
    K from 1 to 10: the sum is over all 2^K subsets, nothing is sampled.
    """
    values = np.asarray(worth, dtype=float)
    count = values.shape[0].bit_length() - 1
    if not 1 <= count <= MOST_FACTORS or values.shape[0] != 1 << count:
        raise ValueError("worth needs 2^K entries, K from 1 to 10")
    subsets = np.arange(1 << count)
    sizes = np.bitwise_count(subsets).astype(int)
    weights = np.array([factorial(s) * factorial(count - s - 1) / factorial(count) for s in range(count)])
    shares = []
    for j in range(count):
        without = subsets[(subsets >> j) & 1 == 0]
        gain = values[without | (1 << j)] - values[without]
        shares.append(np.tensordot(weights[sizes[without]], gain, axes=1))
    return np.array(shares)


def shapley_of(
    outcome: Callable[[Sequence[Factor]], float], first: Sequence[Factor], second: Sequence[Factor]
) -> NDArray[np.float64]:
    """The share of each factor in outcome(second) − outcome(first), for any outcome; factors may be vectors."""
    count = len(first)
    worth = [
        outcome([second[j] if subset >> j & 1 else first[j] for j in range(count)]) for subset in range(1 << count)
    ]
    return shapley(worth)


@dataclass(frozen=True)
class ConditionShares:
    """`off_support` + every factor + `rate` = `crude`, in points of success (sim − real)."""

    crude: float | None
    off_support: float | None
    factors: Mapping[str, float]
    rate: float | None
    common_cells: int
    reason: str | None = None


def shapley_over_conditions(
    names: Sequence[str], cells: Mapping[tuple[str, ...], tuple[float, float, float, float]]
) -> ConditionShares:
    """A drop split over the mixes of several conditions and the rate.

    `cells` has the levels of the named conditions and (k_sim, n_sim, k_real, n_real), k successes.
    Formula: on cells with episodes on both sides, a cell's share of a side is the product of one term per factor,
    n_cell/n = Π_f A_f, where ln A_f is the Shapley value of f in the logarithms of the margins ln(n_T/n), T a set
    of factors. Factor f then gets Σ_cells (r_sim + r_real)/2 · (its Shapley share of Π A_sim − Π A_real), and rate
    is Kitagawa's Σ (w_sim + w_real)/2 · (r_sim − r_real). The factors together are Kitagawa's mix.
    Source: Das Gupta 1993, chapter 5 (cross-classified data), for any number of factors.
    Assumes nothing; it is arithmetic. Cells that one side lacks are `off_support`, never filled in.
    Smallest n: one cell that both sides have, and at most ten factors; otherwise a reason.
    """
    table = np.array(list(cells.values()), dtype=float).reshape(-1, 4)
    totals = table.sum(axis=0)
    if totals[1] == 0 or totals[3] == 0:
        return ConditionShares(None, None, {}, None, 0, "One side has no episodes.")
    crude = float(totals[0] / totals[1] - totals[2] / totals[3])
    if not 1 <= len(names) <= MOST_FACTORS:
        return ConditionShares(crude, None, {}, None, 0, "Between one and ten conditions can be split exactly.")
    both = (table[:, 1] > 0) & (table[:, 3] > 0)
    if not both.any():
        return ConditionShares(
            crude, crude, dict.fromkeys(names, 0.0), 0.0, 0, "No cell has episodes on both sides."
        )
    levels = [key for key, kept in zip(cells, both, strict=True) if kept]
    k_sim, n_sim, k_real, n_real = table[both].T
    r_sim, r_real = k_sim / n_sim, k_real / n_real
    w_sim, w_real = n_sim / n_sim.sum(), n_real / n_real.sum()
    terms_sim, terms_real = _share_terms(levels, w_sim), _share_terms(levels, w_real)
    worth = np.array(
        [
            np.prod(np.where(_switched(subset, len(names)), terms_sim, terms_real), axis=0)
            for subset in range(1 << len(names))
        ]
    )
    by_factor = shapley(worth) @ ((r_sim + r_real) / 2)
    rate = float(((w_sim + w_real) / 2) @ (r_sim - r_real))
    common = float(w_sim @ r_sim - w_real @ r_real)
    return ConditionShares(
        crude, crude - common, dict(zip(names, by_factor.tolist(), strict=True)), rate, len(levels)
    )


def _switched(subset: int, count: int) -> NDArray[np.bool_]:
    return (subset >> np.arange(count) & 1).astype(bool)[:, None]


def _share_terms(levels: Sequence[tuple[str, ...]], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """One row a factor; the product of the rows is `shares`."""
    codes = [np.unique(column, return_inverse=True)[1] for column in zip(*levels, strict=True)]
    groups = [np.zeros(len(levels), dtype=np.int64)]
    for code in codes:
        # Each set of factors is one met before plus its highest factor: cells that agree on both are one group.
        groups += [np.unique(group * len(levels) + code, return_inverse=True)[1] for group in groups]
    return np.exp(shapley([np.log(np.bincount(group, weights=shares)[group]) for group in groups]))
