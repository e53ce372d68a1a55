"""Which of two does better in reality: real success of one beside another, however often one looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import exp

from gapwatch.answers.answer import Interval
from gapwatch.answers.sides import Sides
from gapwatch.answers.trend import Step, answer_trend
from gapwatch.statistics.estimates.drops import Side, rate_drop
from gapwatch.statistics.estimates.sequential import EProcess, add_block

# An e-value of 20 is reached by chance at most once in 20 comparisons, however often one looks.
ENOUGH = 20.0
LARGEST_LOG = 50.0

# Day → successes and attempts.
Days = Mapping[date, tuple[int, int]]


@dataclass(frozen=True)
class RealDifference:
    """Real success of a subject minus that of the first, and the evidence that they differ."""

    difference: float | None
    interval: Interval | None
    e_value: float
    verdict: str


def real_difference(first: Sides, other: Sides) -> RealDifference:
    """The drop from the first to the other, turned: positive when the other is better; for these robots."""
    drop = rate_drop(*(_real_side(sides) for sides in (first, other)))
    if drop.value is None:
        return RealDifference(None, None, 1.0, "too few episodes")
    e_value = _e_value(_by_day(answer_trend(first).steps), _by_day(answer_trend(other).steps))
    verdict = "not settled"
    if e_value >= ENOUGH:
        verdict = "worse" if drop.value > 0 else "better"
    return RealDifference(-drop.value, (-drop.high, -drop.low), e_value, verdict)


def _real_side(sides: Sides) -> Side:
    real = sides.real
    return Side(real.successes, real.n, worth_one=real.cluster_effect.worth_one)


def _by_day(steps: Sequence[Step]) -> Days:
    """The attempts of each day of the version that is compared."""
    days: dict[date, tuple[int, int]] = {}
    for step in steps:
        if step.current and step.n:
            k, n = days.get(step.at.date(), (0, 0))
            days[step.at.date()] = (k + step.successes, n + step.n)
    return days


def _e_value(first: Days, other: Days) -> float:
    """The e-value that the two rates differ, a day a block, oldest first.

    A release follows the one before it, so the two may share no day: then first day stands beside first day.
    """
    shared = sorted(first.keys() & other.keys())
    pairs = [(day, day) for day in shared] or list(zip(sorted(first), sorted(other), strict=False))
    state = EProcess("different")
    for first_day, other_day in pairs:
        (k_first, n_first), (k_other, n_other) = first[first_day], other[other_day]
        state = add_block(state, sim_successes=k_first, sim_n=n_first, real_successes=k_other, real_n=n_other)
    return exp(min(LARGEST_LOG, state.highest_log_e))
