"""Sessions into a side of a drop: what resembles itself within a sitting counts for less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gapwatch.statistics.estimates import rates
from gapwatch.statistics.estimates.drops import Side

# An attempt without a session is a sitting of its own; more of them than this are not listed one by one.
MOST_LISTED = 5000


@dataclass(frozen=True)
class SessionEffect:
    """`side` for the drop's interval; with a `design_effect` above 1 it holds effective counts, n by it.

    `inflation` is the design effect of the side as a whole, whichever way the side carries it.
    """

    side: Side
    sessions: int
    design_effect: float = 1.0
    inflation: float = 1.0


def with_sessions(
    successes: int, n: int, sessions: Sequence[tuple[int, int]], *, complete: bool = True
) -> SessionEffect:
    """The side of `successes` of `n`, cluster-aware when five or more sessions are known.

    `complete`: all sessions are listed. With very many sessions, or very many attempts outside any, only the
    newest are read: then the design effect of those stands for all, and the side is that of n / design effect
    attempts. At such sizes the t quantile is the normal one, and rounding moves a rate by less than 0.05 points.
    """
    alone_n = n - sum(m for _, m in sessions)
    alone_k = successes - sum(k for k, _ in sessions)
    if len(sessions) < rates.FEWEST_SESSIONS or alone_n < 0 or not 0 <= alone_k <= alone_n:
        return SessionEffect(Side(successes, n), len(sessions))
    if complete and alone_n <= MOST_LISTED:
        singles = [(1, 1)] * alone_k + [(0, 1)] * (alone_n - alone_k)
        side = Side(successes, n, [*sessions, *singles])
        return SessionEffect(side, len(sessions), inflation=side.by_session.design_effect)
    effect = rates.clustered_rate(*zip(*sessions, strict=True)).design_effect
    if complete:
        # The attempts outside any session are independent, so the excess variance is that of the others alone.
        effect = 1 + (effect - 1) * (n - alone_n) / n
    return SessionEffect(Side(round(successes / effect), round(n / effect)), len(sessions), effect, effect)
