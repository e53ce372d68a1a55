"""A reference in the mix of conditions that robots meet, so that easier work is not taken for a better policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.gates.criteria import Reference


def in_mix_of(
    reference: Reference, cells: Sequence[Reference], seen: Sequence[int]
) -> tuple[Reference, NDArray[np.float64]]:
    """The reference as it would be in the mix of the episodes seen, and its rate under the conditions of each.

    `seen` has the place in `cells` of every episode, −1 where nothing is known of its conditions: there the whole
    reference stands. Formula: Σ wₖpₖ, direct standardisation (Fleiss, Levin & Paik 2003, chapter 19); it is worth
    p(1 − p)/Σ wₖ²pₖ(1 − pₖ)/nₖ episodes, with half a success and half a failure added to each cell so that one
    without failures is not taken for certain. Assumes that cells are independent. Smallest n: 1.
    """
    known = [*cells, reference]
    places = np.asarray(seen, dtype=int) % len(known)
    rates = np.array([cell.value for cell in known])[places]
    counts = np.bincount(places, minlength=len(known))
    [met] = counts.nonzero()
    if len(met) <= 1:
        whole = reference if not len(met) else known[int(met[0])]
        return whole, rates
    shares = counts[met] / len(places)
    n = np.array([float(known[place].n) for place in met])
    smooth = (np.array([float(known[place].successes) for place in met]) + 0.5) / (n + 1)
    value, smooth_value = float(rates.mean()), float(shares @ smooth)
    worth = smooth_value * (1 - smooth_value) / float((shares**2 * smooth * (1 - smooth) / n).sum())
    return Reference(value * worth, worth), rates
