"""How many episodes a criterion takes, before the first is spent: seeded simulation of the gate itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapwatch.statistics.gates.criteria import Reference, drop_bets
from gapwatch.statistics.gates.evidence import Bets, bets_on_any
from gapwatch.statistics.gates.limits import REFERENCE_SHARE

RUNS = 301
FURTHEST = 5000
SEED = 20261118
TRUE_DROPS = (0.0, 0.02, 0.05)


@dataclass(frozen=True)
class PowerRow:
    """`median_episodes` is None where fewer than half of the runs pass within `FURTHEST` episodes."""

    true_drop: float
    median_episodes: int | None


def median_episodes(bets: Bets, rate: float, alpha: float) -> int | None:
    """Episodes after which half of all runs at this true rate have passed."""
    looks = np.arange(1, FURTHEST + 1, dtype=float)
    needed = bets.good_needed(looks, alpha)
    good = np.cumsum(np.random.default_rng(SEED).random((RUNS, FURTHEST)) < rate, axis=1, dtype=np.int32)
    has_passed = good >= needed
    passed = np.where(has_passed.any(axis=1), has_passed.argmax(axis=1) + 1.0, np.inf)
    median = float(np.median(passed))
    return None if median == np.inf else int(median)


def power_of_drop(reference: Reference, margin: float, alpha: float) -> list[PowerRow]:
    """Median episodes to pass at true drops of 0, 2 and 5 points."""
    bets = drop_bets(reference, margin, alpha)
    spent = (1 - REFERENCE_SHARE) * alpha
    return [
        PowerRow(drop, None if bets is None else median_episodes(bets, max(0.0, reference.value - drop), spent))
        for drop in TRUE_DROPS
    ]


def power_of_rate(limit: float, alpha: float, *, is_most: bool) -> int | None:
    """Median episodes to pass when the rate keeps half the distance to its limit: half of a largest one."""
    boundary = 1 - limit if is_most else limit
    return median_episodes(bets_on_any(boundary), (1 + boundary) / 2, alpha)
