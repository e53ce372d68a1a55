"""Which loss may stand first in a list: the surest one, so that a handful of episodes never leads."""

from __future__ import annotations

# Below this many episodes a level, a robot or a site is kept and shown apart, whatever its rate is.
FEWEST_LEADING = 20
NEARLY_ALL = 0.95


def surest_first(low: float | None, *, leads: bool = True) -> tuple[bool, bool, float]:
    """The key that every list of losses is sorted by: what may lead, then the larger lower end of the interval.

    Formula: none, the lower 95 % limit of the loss. An estimate puts the level that was tried three times first
    and its limit puts it where it belongs. `leads` is False for what is shown apart. Without an interval, last.
    """
    return not leads, low is None, -(low or 0.0)


def is_few(*episodes: int) -> bool:
    """Whether a side that has tried it has tried it too seldom to lead; a side that never did says nothing."""
    return any(0 < n < FEWEST_LEADING for n in episodes) or not any(episodes)


def is_shared(n_sim: int, all_sim: int, n_real: int, all_real: int) -> bool:
    """Whether nearly all episodes are alike in this, so that it cannot tell where something is lost.

    Rule: 95 % of both sides or more, or fewer than 20 real episodes that are not so. What is lost there is what is
    lost altogether: there is nothing to hold it against. Of a side without episodes nothing is asked.
    """
    if all_real - n_real < FEWEST_LEADING:
        return True
    return n_real >= NEARLY_ALL * all_real and n_sim >= NEARLY_ALL * all_sim
