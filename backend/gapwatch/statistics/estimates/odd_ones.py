"""The odd ones of a fleet: robots or sites whose success differs from that of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Literal

from gapwatch.statistics.estimates.rates import wilson

Interval = tuple[float, float]

FEWEST = 20
# Of the whole fleet, for 5 %: the score of counts near 100 % exceeds its quantile somewhat too often.
LEVEL = 0.035
PAIR = 2


@dataclass(frozen=True)
class Member:
    """One robot or site, and how often it succeeded."""

    name: str
    successes: int
    n: int


@dataclass(frozen=True)
class JudgedMember:
    """`stands_out`: below or above the others together; None if it does not, or has too few episodes to tell."""

    name: str
    successes: int
    n: int
    value: float | None
    interval: Interval | None
    stands_out: Literal["below", "above"] | None
    z: float | None


def odd_ones(members: Sequence[Member], design_effect: float = 1.0) -> tuple[JudgedMember, ...]:
    """Which members differ from the others, in the order given.

    Formula: of each member the score statistic against all the others together,
    z = (p − p_rest) / √(p̄ q̄ (1/n + 1/n_rest)); the largest |z| stands out if it exceeds the two-sided quantile of
    0.035 / m (Bonferroni), is taken out, and the others are judged again among themselves, until none is left that
    does or two remain. Intervals are Wilson's.
    Assumes episodes independent up to the design effect, and members that met like conditions. Source: stepwise
    rejection by the maximum, Holm 1979; one robot 25 points below four others is found with 100 episodes each in
    97 %, and none in 96 % of equal fleets (bench/now). Smallest n: 20 episodes each; members with fewer are
    not counted with the others.
    """
    left = {one.name: one for one in members if one.n >= FEWEST}
    found: dict[str, Literal["below", "above"]] = {}
    strength: dict[str, float] = {}
    while len(left) > 1:
        scores = {name: _score(one, left) / sqrt(design_effect) for name, one in left.items()}
        for name, z in scores.items():
            strength[name] = z
        name = max(scores, key=lambda name: (abs(scores[name]), name))
        if abs(scores[name]) <= NormalDist().inv_cdf(1 - LEVEL / (2 * len(scores))):
            break
        if len(left) == PAIR:
            # Of two that differ nobody can say which is the odd one; the worse one is what matters.
            name = min(scores, key=lambda name: scores[name])
        found[name] = "below" if scores[name] < 0 else "above"
        del left[name]
    return tuple(
        JudgedMember(
            one.name,
            one.successes,
            one.n,
            one.successes / one.n if one.n else None,
            wilson(one.successes / design_effect, one.n / design_effect) if one.n else None,
            found.get(one.name),
            strength.get(one.name),
        )
        for one in members
    )


def _score(one: Member, others: dict[str, Member]) -> float:
    total = sum(other.successes for other in others.values())
    n = sum(other.n for other in others.values())
    pooled = total / n
    variance = pooled * (1 - pooled) * (1 / one.n + 1 / (n - one.n))
    return ((one.successes / one.n) - (total - one.successes) / (n - one.n)) / sqrt(variance) if variance else 0.0
