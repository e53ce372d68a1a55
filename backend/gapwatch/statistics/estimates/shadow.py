"""What shadow says of a candidate that drove nothing: rates of its proposals, and a bound of its success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.estimates.rates import FEWEST_SESSIONS, Z_95, SessionSums, t_95, wilson

# Below this many episodes with any such step, their spread says little of the next episode. With 5, rare steps in
# few episodes were covered in 89 % of worlds, and all in 94 %.
FEWEST_MARKED = 20

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class StepRate:
    """Of the steps of so many episodes; `interval` is None with a single one."""

    value: float
    interval: tuple[float, float] | None
    episodes: int
    steps: int
    marked: int


def step_rate(marked: Sequence[int] | Counts, steps: Sequence[int] | Counts) -> StepRate | None:
    """The share of steps that are marked, with an interval over episodes: those are independent, steps are not.

    Formula: r = Σxᵢ/Σnᵢ (ratio estimator), v = m/(m − 1) Σ(xᵢ − r nᵢ)²/(Σnᵢ)² its linearised variance over m
    episodes, and Wilson's interval at the effective number r(1 − r)/v with the t quantile of m − 1 degrees (Korn &
    Graubard 1998; Franco et al. 2019). The effective number is at most Σnᵢ; where fewer than twenty episodes have
    such a step, or fewer than twenty lack one, at most m: then one more episode could tell another story. Assumes
    independent episodes. Smallest m: 2; with one episode only the share.
    """
    x, n = np.asarray(marked, dtype=float), np.asarray(steps, dtype=float)
    x, n = x[n > 0], n[n > 0]
    m, total = len(n), float(n.sum())
    if not m:
        return None
    r = float(x.sum()) / total
    episodes_marked = int((x > 0).sum())
    if m == 1:
        return StepRate(r, None, 1, int(total), episodes_marked)
    variance = m / (m - 1) * float(((x - r * n) ** 2).sum()) / total**2
    effective = min(total, r * (1 - r) / variance) if variance > 0 else total
    if min(episodes_marked, int((x < n).sum())) < FEWEST_MARKED:
        effective = min(effective, float(m))
    low, high = wilson(r * effective, effective, t_95(m - 1))
    return StepRate(r, (min(low, r), max(high, r)), m, int(total), episodes_marked)


@dataclass(frozen=True)
class ShadowOutcome:
    """A decided episode in shadow: whether the candidate agreed to its end, and what executed succeeded."""

    agreed: bool
    succeeded: bool
    session: str | None = None


@dataclass(frozen=True)
class SuccessBound:
    """`low` and `high` without, `interval` with the limits of counting. All of n decided episodes.

    `halved_by`: supervised episodes of the disagreeing kind after which the interval would be half as wide; None
    where counting alone is wider than that.
    """

    low: float
    high: float
    interval: tuple[float, float]
    n: int
    agreed_and_succeeded: int
    disagreed: int
    design_effect: float
    halved_by: int | None
    method: str


def success_bound(outcomes: Sequence[ShadowOutcome]) -> SuccessBound | None:
    """Where the candidate's success lies, had it driven.

    Formula: P(agree and succeed) ≤ success ≤ P(agree and succeed) + P(disagree); Wilson's lower limit of the first
    and its upper limit of the second. With five or more sessions both at the effective number of episodes
    (`rates.clustered_rate`). Assumes that agreeing to the end means the same outcome; of episodes in which it
    disagreed nothing is assumed. Smallest n: 1.
    Check: 8 % disagreeing, 90 % success among agreeing: [0.828, 0.908].
    """
    n = len(outcomes)
    if not n:
        return None
    surely = [one.agreed and one.succeeded for one in outcomes]
    perhaps = [is_sure or not one.agreed for is_sure, one in zip(surely, outcomes, strict=True)]
    sessions = [one.session for one in outcomes]
    low_limit, effect_low, method = _limits(surely, sessions)
    high_limit, effect_high, _ = _limits(perhaps, sessions)
    interval = low_limit[0], high_limit[1]
    disagreed = sum(not one.agreed for one in outcomes)
    return SuccessBound(
        sum(surely) / n,
        sum(perhaps) / n,
        interval,
        n,
        sum(surely),
        disagreed,
        max(effect_low, effect_high),
        episodes_that_halve(interval[1] - interval[0], disagreed / n),
        method,
    )


def episodes_that_halve(width: float, disagreeing: float, z: float = Z_95) -> int | None:
    """How many supervised episodes of the disagreeing kind make a bound half as wide.

    Formula: after m of them the disagreeing share counts only as wide as their success is known, at worst (half
    of them succeed) z/√(m + z²), so the width is (width − share) + share z/√(m + z²); solved for m. None where
    what is left, the limits of counting in shadow, is more than half already: then more episodes in shadow help.
    """
    if disagreeing <= 0:
        return None
    wanted = (disagreeing - width / 2) / disagreeing
    if wanted <= 0:
        return None
    return max(1, ceil(z * z / (wanted * wanted) - z * z))


def _limits(hits: Sequence[bool], sessions: Sequence[str | None]) -> tuple[tuple[float, float], float, str]:
    """Wilson's interval, at the effective number of episodes where there are sessions."""
    k, n = sum(hits), len(hits)
    totals: dict[str, list[int]] = {}
    for hit, session in zip(hits, sessions, strict=True):
        if session is not None:
            total = totals.setdefault(session, [0, 0])
            total[0] += hit
            total[1] += 1
    if len(totals) < FEWEST_SESSIONS or all(size == 1 for _, size in totals.values()):
        return wilson(k, n), 1.0, "wilson"
    sums = SessionSums()
    for hits_of, size in totals.values():
        sums.add(hits_of, size)
    alone = [hit for hit, session in zip(hits, sessions, strict=True) if session is None]
    if alone:
        sums.add_alone(sum(alone), len(alone))
    alike = sums.likeness()
    low, high = wilson(k / alike.design_effect, n / alike.design_effect, t_95(alike.freedom))
    return (min(low, k / n), max(high, k / n)), alike.design_effect, "wilson, clustered by session"
