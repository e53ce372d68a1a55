"""A drop's interval in one word, and how many more real episodes would settle it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, sqrt
from typing import Literal

from gapwatch.statistics.estimates.drops import (
    Side,
    rate_drop,
    side_limits,
)
from gapwatch.statistics.estimates.rates import (
    Limits,
    square_and_add,
    wilson,
)

Verdict = Literal["none", "small", "large", "too few episodes"]
SMALLEST_THAT_MATTERS = 0.05
MOST_EPISODES = 1_000_000


def verdict(
    low: float | None,
    high: float | None,
    value: float | None,
    smallest_that_matters: float = SMALLEST_THAT_MATTERS,
) -> Verdict:
    """One word for a drop.

    Rule, the first that holds: large, at least `smallest_that_matters` is lost with 95 % confidence (low ≥ it);
    small, some loss for certain (low > 0); none, less than that for certain (high < it); else too few episodes.
    The word depends on the interval alone, never on the estimate, and a certain loss is reported even where it
    does not matter. Assumes a 95 % interval in the unit of `smallest_that_matters`, for a rate a fraction.
    Source: the legend of the fleet page. Smallest n: none; without an interval it is too few episodes.
    """
    if value is None or low is None or high is None:
        return "too few episodes"
    if low >= smallest_that_matters:
        return "large"
    if low > 0:
        return "small"
    return "none" if high < smallest_that_matters else "too few episodes"


@dataclass(frozen=True)
class EpisodesNeeded:
    """How many more real episodes, or why no number of them would do."""

    more: int | None
    reason: str | None = None


def episodes_needed(
    sim: Side, real: Side, smallest_that_matters: float = SMALLEST_THAT_MATTERS, chance: float = 0.8
) -> EpisodesNeeded:
    """More real episodes until the verdict is settled, with probability `chance`, if the present rates are true.

    Formula: smallest N with Φ((p' − p)/s) + Φ((p − p")/s) ≥ chance, less what is there: p the present real rate,
    s = √(pq/N), and p', p" the real rates at which, with N real and today's sim episodes, Newcombe's interval
    starts at 0 (certain loss below p') and ends at the smallest that matters (none above p"). Sites, robots or
    sessions multiply N by today's design effect. Source: the sample size formula of Fleiss, Levin & Paik 2003,
    chapter 4, with
    Newcombe's limits for z·s; a test holds it against exact enumeration, within 20 %.
    Assumes that rates, sim side and the sessions' likeness stay. Smallest n: one episode per side.
    """
    if not sim.n or not real.n:
        return EpisodesNeeded(None, "no rate to plan with yet")
    now = rate_drop(sim, real)
    if verdict(now.low, now.high, now.value, smallest_that_matters) != "too few episodes":
        return EpisodesNeeded(0)
    rate = real.successes / real.n

    def settled(at: Callable[[float], Limits], n: float) -> bool:
        loss, none = rate, rate
        # Each step moves the rate to where the interval of the last one would just touch; three are plenty.
        for _ in range(3):
            loss, none = loss + at(loss).low, none + at(none).high - smallest_that_matters
        deviation = sqrt(rate * (1 - rate) / n)
        return _normal(loss - rate, deviation) + _normal(rate - none, deviation) >= chance

    return _more(sim, real, settled)


def episodes_for_precision(sim: Side, real: Side, half_width: float) -> EpisodesNeeded:
    """More real episodes until half the width of the drop's interval is at most `half_width`.

    Formula: smallest N at which Newcombe's interval at the present rates is that short, less what is there; near
    z² pq / (half_width² − z² p_s q_s / n_s). Source and assumptions as `episodes_needed`. Smallest n: one per
    side.
    """
    if not sim.n or not real.n:
        return EpisodesNeeded(None, "no rate to plan with yet")
    now = rate_drop(sim, real)
    if now.high - now.low <= 2 * half_width:
        return EpisodesNeeded(0)
    rate = real.successes / real.n
    return _more(sim, real, lambda at, _: at(rate).high - at(rate).low <= 2 * half_width)


def _normal(x: float, deviation: float) -> float:
    """P(deviation · Z ≤ x); a rate of 0 or 1 does not deviate."""
    return (1 + erf(x / deviation / sqrt(2))) / 2 if deviation > 0 else float(x > 0)


def _more(sim: Side, real: Side, enough: Callable[[Callable[[float], Limits], float], bool]) -> EpisodesNeeded:
    """The smallest number of further real episodes at which `enough` holds, by doubling and bisection.

    `enough` gets the drop as a function of the real rate, and the effective number of episodes behind it.
    """
    fixed, design_effect = side_limits(sim, real), 1.0
    if real.clustered:
        design_effect = real.clustered_rate.design_effect

    def holds(total: int) -> bool:
        n = total / design_effect

        def at(rate: float) -> Limits:
            rate = min(1.0, max(0.0, rate))
            return square_and_add(fixed, Limits(rate, *wilson(rate * n, n)))

        return enough(at, n)

    few, many = real.n, real.n + 1
    while not holds(many):
        few, many = many, 2 * many
        if many > MOST_EPISODES:
            return EpisodesNeeded(None, "no number of real episodes would do: sim has too few")
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if holds(middle) else (middle, many)
    return EpisodesNeeded(many - real.n)
