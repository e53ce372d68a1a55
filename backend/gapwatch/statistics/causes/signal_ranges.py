"""What each signal is like in sim successes, and how far values outside can be blamed for failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from gapwatch.statistics.causes.signal_credit import SignalOutcomes, signal_credit
from gapwatch.statistics.causes.signals import shape_of
from gapwatch.statistics.estimates.sketches import Sketch

# Fewer sim successes do not show what is usual.
FEWEST_SUCCESSES = 50
UNMEASURED_CREDIT = 0.8
# Values that differ from a limit by less than this share of either are at the limit.
AT_THE_LIMIT = 1e-9
QUANTILES = (0.01, 0.5, 0.99)
# What two sides must agree on is evidence, too: as a signal of this name, in how many fields an episode's contract
# differs from that of the baseline, 0 for sim episodes themselves. The taxonomy knows it as interface_contract.
CONTRACT_SIGNAL = "contract_fields_differing"


@dataclass(frozen=True)
class UsualRange:
    """What a signal is like in sim successes: its 1 %, 50 % and 99 % quantiles, and of how many episodes.

    `above` and `below` are the credit of values outside, from 0 to 1: the share of failures with such values that
    the values can be blamed for, as `usual_ranges` measures it; 0.8 where nobody has.
    """

    low: float
    median: float
    high: float
    n: int
    share: float = 0.99
    above: float = UNMEASURED_CREDIT
    below: float = UNMEASURED_CREDIT


def unusual_side(value: float, usual: UsualRange) -> Literal["above", "below"] | None:
    """On which side of the usual range a value lies; None inside it, and where too few show what is usual."""
    if usual.n < FEWEST_SUCCESSES:
        return None
    if value - usual.high > AT_THE_LIMIT * max(abs(usual.high), abs(value)):
        return "above"
    return "below" if usual.low - value > AT_THE_LIMIT * max(abs(usual.low), abs(value)) else None


def usual_ranges(
    sim_successes: Mapping[str, Sketch | ArrayLike],
    *,
    sim_failures: Mapping[str, Sketch | ArrayLike] | None = None,
    real_successes: Mapping[str, Sketch | ArrayLike] | None = None,
    real_failures: Mapping[str, Sketch | ArrayLike] | None = None,
) -> dict[str, UsualRange]:
    """Each signal's 1 %, 50 % and 99 % quantiles over sim successes, from a sketch or from numbers.

    With the other three, unusual values have the credit of `signal_credit`; without them, all credit. Signals of
    fewer than 50 sim successes are left out: so few do not show what is usual.
    """
    ranges = {}
    for name, data in sim_successes.items():
        shape = shape_of(data)
        if shape.n < FEWEST_SUCCESSES:
            continue
        places = np.searchsorted(np.cumsum(shape.counts), np.floor(np.array(QUANTILES) * (shape.n - 1)), "right")
        low, median, high = (float(shape.values[place]) for place in places)
        if sim_failures is None or real_successes is None or real_failures is None:
            ranges[name] = UsualRange(low, median, high, int(shape.n))
            continue
        sim = SignalOutcomes(shape, shape_of(sim_failures.get(name, ())))
        real = SignalOutcomes(shape_of(real_successes.get(name, ())), shape_of(real_failures.get(name, ())))
        above, below = (signal_credit(low, median, high, sim, real, side) for side in ("above", "below"))
        ranges[name] = UsualRange(low, median, high, int(shape.n), above=above, below=below)
    return ranges
