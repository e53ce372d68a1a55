"""Many series or slices at once: which findings hold when the share of false ones is bounded."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values (q-values) in the order given; a finding holds at level a when its q ≤ a.

    Formula: q_(i) = min over j ≥ i of p_(j) · m / j, at most 1, with p sorted ascending.
    Assumes valid p-values that are independent or positively dependent.
    Source: Benjamini and Hochberg 1995, by SciPy. Smallest m: 1; nothing in, nothing out.
    """
    from scipy.stats import false_discovery_control

    return tuple(false_discovery_control(p_values).tolist())


def e_benjamini_hochberg(e_values: Sequence[float], level: float = 0.05) -> tuple[int, ...]:
    """Indices of the findings that hold, strongest first; equal e-values are decided together.

    Formula: the largest k with e_(k) ≥ m / (k · level), e sorted descending; the first k hold.
    Assumes E[e] ≤ 1 under each null, nothing about dependence; values of running e-processes may be used as
    they are. Source: Wang and Ramdas 2022. Smallest m: 1.
    """
    m = len(e_values)
    order = sorted(range(m), key=lambda i: -e_values[i])
    kept = 0
    for k, index in enumerate(order, start=1):
        if e_values[index] * k * level >= m:
            kept = k
    return tuple(order[:kept])
