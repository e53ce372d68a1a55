"""The range that a parameter was randomised over, in its own unit, against what was measured of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Literal

import numpy as np

Operation = Literal["abs", "add", "scale"]
Distribution = Literal["uniform", "log_uniform", "gaussian"]
RangeVerdict = Literal[
    "outside", "edge", "inside", "far inside", "declared, not applied", "not randomised", "not measured"
]
# The gravest first: what a deployment's page leads with.
RANGE_VERDICTS: tuple[RangeVerdict, ...] = (
    *("outside", "declared, not applied", "not randomised", "edge", "far inside", "inside", "not measured"),
)
# Within this share of the width of an end, the next step is outside.
EDGE = 0.10
# A range more than so many times as wide as what was measured trains for worlds that are not there.
FAR = 5.0
# A Gaussian has no ends: two standard deviations hold 95 % of it.
GAUSSIAN_REACH = 2.0
# Of the declared width: what sim shows of it where it was applied is far more.
APPLIED = 0.01
# Of real episodes, the middle 90 % are where the parameter lies.
MIDDLE = (0.05, 0.95)
FEWEST_VALUES = 5
# The chance that a median's interval misses, at each of many looks.
SURE = 0.001


@dataclass(frozen=True)
class AbsoluteRange:
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def absolute_range(
    low: float, high: float, distribution: Distribution, operation: Operation, nominal: float | None
) -> AbsoluteRange | None:
    """The range in the parameter's own unit; None where it is relative to a nominal that is not known.

    `add` and `scale` are what trainers do to the nominal: nominal + x and nominal × x. Of a Gaussian `low` is the
    mean and `high` the spread, as Isaac Lab and mjlab write it; its range is two spreads on either side.
    """
    if distribution == "gaussian":
        low, high = low - GAUSSIAN_REACH * high, low + GAUSSIAN_REACH * high
    if operation != "abs" and nominal is None:
        return None
    if operation == "add":
        low, high = (nominal or 0.0) + low, (nominal or 0.0) + high
    elif operation == "scale":
        low, high = (nominal or 0.0) * low, (nominal or 0.0) * high
    return AbsoluteRange(min(low, high), max(low, high))


@dataclass(frozen=True)
class MeasuredValue:
    """What was measured of a parameter at one place. Without an interval, nothing is known of the spread."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Its interval, or itself."""
        return (
            min(self.value, self.value if self.low is None else self.low),
            max(self.value, self.value if self.high is None else self.high),
        )


def judge_range(
    declared: AbsoluteRange | None,
    measured: Sequence[MeasuredValue],
    sim_spread: float | None = None,
) -> RangeVerdict:
    """One word for a parameter.

    Rule, the first that holds: not randomised, no range or one without width; declared, not applied, sim's own
    episodes spread over less than a hundredth of it (`sim_spread`, None where they do not say); not measured;
    outside, a measured value lies beyond an end; edge, a measured interval comes within a tenth of the width of
    an end, or over it; far inside, the range is more than five times what all intervals span together; inside.
    Smallest n: one measured value. One without an interval is never far inside: its spread is not known.
    """
    if declared is None or declared.width <= 0:
        return "not randomised"
    if sim_spread is not None and sim_spread < APPLIED * declared.width:
        return "declared, not applied"
    if not measured:
        return "not measured"
    if any(not declared.low <= one.value <= declared.high for one in measured):
        return "outside"
    low, high = min(one.ends[0] for one in measured), max(one.ends[1] for one in measured)
    # An end that is met but for rounding is met.
    margin = EDGE * declared.width * (1 + 1e-9)
    if min(low - declared.low, declared.high - high) <= margin:
        return "edge"
    has_spread = any(one.low is not None and one.high is not None for one in measured)
    if has_spread and declared.width > FAR * (high - low):
        return "far inside"
    return "inside"


def is_surely_outside(declared: AbsoluteRange, measured: MeasuredValue) -> bool:
    """Whether all that the measurement allows for lies beyond an end: what an alert needs."""
    low, high = measured.ends
    return high < declared.low or low > declared.high


def apart(first: MeasuredValue, second: MeasuredValue) -> bool:
    """Whether two identifications cannot both be right: their intervals do not overlap."""
    if None in (first.low, first.high, second.low, second.high):
        return False
    return first.ends[1] < second.ends[0] or second.ends[1] < first.ends[0]


def spread_of(values: Sequence[float]) -> MeasuredValue | None:
    """Where a parameter lies by the episodes that measured it: median, and the middle 90 %."""
    if len(values) < FEWEST_VALUES:
        return None
    low, middle, high = np.quantile(np.asarray(values, dtype=float), [MIDDLE[0], 0.5, MIDDLE[1]])
    return MeasuredValue(float(middle), float(low), float(high))


def sure_median(values: Sequence[float], error: float = SURE) -> MeasuredValue | None:
    """The median with an interval that misses in one look of a thousand; None where they are too few for that.

    Formula: the order statistics between which the median lies but for a chance `error`, by the binomial of a fair
    coin. Source: Thompson 1936. Assumes independent values. Smallest n: 11.
    """
    n = len(values)
    below = _surely_below(n, error)
    if below < 0:
        return None
    ordered = np.sort(np.asarray(values, dtype=float))
    return MeasuredValue(float(np.median(ordered)), float(ordered[below]), float(ordered[n - 1 - below]))


@lru_cache(maxsize=4096)
def _surely_below(n: int, error: float) -> int:
    """The highest order statistic, from 0, that is above the median with a chance of at most half the error."""
    from scipy.stats import binom

    return int(binom.ppf(error / 2, n, 0.5)) - 1


def sim_spread_of(values: Sequence[float]) -> float | None:
    """How far sim's own values spread; None where they are too few to say."""
    if len(values) < FEWEST_VALUES:
        return None
    return float(max(values, default=-inf) - min(values, default=inf))
