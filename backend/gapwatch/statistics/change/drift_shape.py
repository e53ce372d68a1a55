"""Whether a signal's values still come from the same distribution, checked after every episode.

Values are compared through their ranks in a reference, so no shape is assumed, and the average run length
without a change is promised however often anybody looks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, log, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.change.dispersion import Spread
from gapwatch.statistics.change.drift import (
    HIGHEST_LIMIT,
    LOWEST_LIMIT,
    ORDINARY_BELOW,
    Crossing,
    spread_facts,
)

GRID = 64
# So many values on either side of a change within the reference.
FEWEST_APART = 10
BINS = 8
MEAN_BETS = (0.2, 0.4, 0.8)
BIN_BET = 0.4
# The reference is a sample too: limits are this many of its standard errors away.
Z_MEAN, Z_BIN = 2.0, 2.5
# After an alarm, a bet that has won this much means it is not over.
SUSPICIOUS = 50.0
# A change that took longer than so many episodes to show is over after as many without suspicion.
LONGEST_TO_CLEAR = 500
# Design effects are rounded up to powers of this, so that few tables of winnings are needed.
EFFECT_STEP = 1.25
# Below this a bet on the mean has won nothing worth mentioning.
TELLING = 3.0
# A change within the reference is known to so many episodes: of each such run the first is remembered.
DATED_TO = 10
# A change within the reference is one if it explains so much, in twice the log-likelihood; chance does in 1 %.
WITHIN = 14.0
# An alarm whose evidence began so soon after the reference is of what changed within it.
SOON = 200


@dataclass(frozen=True)
class ShapeWatch:
    """`worse` says which way matters; `either` also looks at the shares of eight bins, for other changes of
    shape.
    """

    worse: Literal["lower", "higher", "either"] = "either"
    arl: float = 10_000.0
    learn: int = 200
    clear_episodes: int = 100


@dataclass
class ShapeState:
    """While learning, `values` are the values so far; afterwards `grid` has quantiles of the reference.

    `within`: where in the reference the values changed already, if they did, and which way.
    """

    n: int = 0
    values: list[float] = field(default_factory=list)
    grid: list[float] = field(default_factory=list)
    bins: list[int] = field(default_factory=list)
    strength: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    began: list[int] = field(default_factory=list)
    alarmed: bool = False
    calm: int = 0
    within: tuple[int, str] | None = None
    # How many episodes showed the change: as many must pass before it is over.
    shown_by: int = 0
    # How values above the reference's median vary between runs and days; None where days are not told.
    spread: Spread | None = None

    @classmethod
    def load(cls, stored: dict[str, Any]) -> ShapeState:
        within, spread = stored.get("within"), stored.get("spread")
        return cls(
            **(
                stored
                | {
                    "within": None if within is None else (int(within[0]), str(within[1])),
                    "spread": None if spread is None else Spread.load(spread),
                }
            )
        )


def update_shape(
    watch: ShapeWatch, state: ShapeState, values: Sequence[float], days: Sequence[int] = ()
) -> list[Crossing]:
    """Update `state` with these values, in order. Return the alarms and recoveries on the way.

    Formula: u is a value's rank in the reference, in steps of 1/128, ties in the middle. Bets that the mean of u
    is above ½ + c or below ½ − c, c two standard errors of the reference, with λ in {.2, .4, .8}; and, for
    `either`, that a bin of an eighth of the reference is visited more often than its upper limit. Each bet is a
    Shiryaev–Roberts statistic as in `update_level`; their mean reaching `arl` is the alarm. The change is where
    the best bet's winnings began; or, if they began within 200 values of the reference and the reference
    itself changed the same way, where it did (the split of its normal scores, to within ten values). After an
    alarm the statistic restarts, and the series has recovered when
    `clear_episodes`, and as many as showed the change (at most 500), pass without new suspicion. With `days`, what
    values prove and the reference's n are divided by the design effect of being above the reference's median, as
    `update_level` does with successes. Assumes values that are exchangeable with the reference as long
    as nothing changes. Source: e-detectors of Shin, Ramdas & Rinaldo 2023 on rank bets. Smallest n: `learn`.
    """
    crossings: list[Crossing] = []
    if days and state.spread is None:
        state.spread = Spread()
    spread, effect = state.spread, _rounded_effect(state.spread)
    table = _table(watch.worse, watch.learn, tuple(state.bins), effect) if state.grid else ()
    strength, best, began, grid = state.strength, state.best, state.began, state.grid
    for index, x in enumerate(values):
        number, state.n = state.n, state.n + 1
        if not grid:
            state.values.append(x)
            if len(state.values) >= watch.learn:
                _learn(watch, state)
                table = _table(watch.worse, watch.learn, tuple(state.bins), effect)
                strength, best, began, grid = state.strength, state.best, state.began, state.grid
            continue
        position = bisect_left(grid, x) + bisect_right(grid, x)
        if days and spread is not None and not state.alarmed:
            spread.add(float(position > GRID), days[index], is_calm=max(best) < ORDINARY_BELOW)
            if spread.effect > effect or spread.effect * EFFECT_STEP <= effect:
                effect = _rounded_effect(spread)
                table = _table(watch.worse, watch.learn, tuple(state.bins), effect)
        factors = table[position]
        total = 0.0
        for i, factor in enumerate(factors):
            moved = factor * (strength[i] + 1)
            strength[i] = moved
            total += moved
            if best[i] <= 1:
                best[i], began[i] = factor, number
            else:
                best[i] *= factor
        mean = total / len(factors)
        if not state.alarmed and mean >= watch.arl:
            crossings.append(_breach(watch, state, index, mean, watch.arl))
        elif state.alarmed:
            suspicious = max(best) >= SUSPICIOUS
            state.calm = 0 if suspicious else state.calm + 1
            if suspicious:
                restart_shape(state, alarmed=True)
            elif state.calm >= _episodes_to_clear(watch, state):
                began_at = number + 1 - state.calm
                crossings.append(
                    Crossing("recovery", index, number, began_at, "rank e-detector", mean, SUSPICIOUS, {})
                )
                restart_shape(state, alarmed=False)
        strength, best, began = state.strength, state.best, state.began
    return crossings


def update_shape_block(watch: ShapeWatch, state: ShapeState, values: Sequence[float]) -> list[Crossing]:
    """As `update_shape` for a block that is judged only at its end, together with other series.

    With S_s the product of a bet's factors from s to the end of the block, its statistic becomes
    S_1 M + Σ S_s, and the best it has won max(S_1 best, max S_s): the recursions, written out over the block.
    The same blocks give the same result to the bit; other blocks may differ in the last digit.
    """
    values = list(values)
    if not state.grid:
        taken = values[: watch.learn - len(state.values)]
        state.values += taken
        state.n += len(taken)
        values = values[len(taken) :]
        if len(state.values) >= watch.learn:
            _learn(watch, state)
    if not values:
        return []
    grid, x = np.asarray(state.grid), np.asarray(values)
    positions = np.searchsorted(grid, x, "left") + np.searchsorted(grid, x, "right")
    factors = _array(watch.worse, watch.learn, tuple(state.bins))[positions]
    products = np.multiply.accumulate(factors[::-1], axis=0)[::-1]
    state.strength = (products[0] * np.asarray(state.strength) + products.sum(axis=0)).tolist()
    starts = products.argmax(axis=0)
    fresh, carried = products.max(axis=0), products[0] * np.asarray(state.best)
    state.began = np.where(carried > fresh, state.began, state.n + starts).tolist()
    state.best = np.maximum(carried, fresh).tolist()
    state.n += len(values)
    if not state.alarmed:
        return []
    if max(state.best) >= SUSPICIOUS:
        restart_shape(state, alarmed=True)
        return []
    state.calm += len(values)
    if state.calm < _episodes_to_clear(watch, state):
        return []
    mean, began = sum(state.strength) / len(state.strength), state.n - state.calm
    restart_shape(state, alarmed=False)
    last = len(values) - 1
    return [Crossing("recovery", last, state.n - 1, began, "rank e-detector", mean, SUSPICIOUS, {})]


def _rounded_effect(spread: Spread | None) -> float:
    return 1.0 if spread is None else EFFECT_STEP ** ceil(log(spread.effect) / log(EFFECT_STEP))


@lru_cache(maxsize=512)
def _array(worse: str, n: int, bins: tuple[int, ...]) -> NDArray[np.float64]:
    return np.array(_table(worse, n, bins))


def _episodes_to_clear(watch: ShapeWatch, state: ShapeState) -> int:
    """A small change shows slowly: what took 300 episodes to be seen is not over after 60 without it."""
    return max(watch.clear_episodes, min(state.shown_by, LONGEST_TO_CLEAR))


def shape_strength(state: ShapeState) -> float:
    return sum(state.strength) / len(state.strength) if state.strength and not state.alarmed else 0.0


def declare_shape(watch: ShapeWatch, state: ShapeState, index: int, threshold: float) -> Crossing:
    """The alarm of a series that e-BH selects among others although it is below its own threshold."""
    return _breach(watch, state, index, shape_strength(state), threshold)


def _breach(watch: ShapeWatch, state: ShapeState, index: int, value: float, threshold: float) -> Crossing:
    """Tell the change, and go over to looking for its end."""
    leader = max(range(len(state.best)), key=state.best.__getitem__)
    direction = _direction(state.best)
    change = _changed(watch, state, state.began[leader], direction)
    facts = {
        "reference": {"n": watch.learn, "value": state.grid[GRID // 2], "end": watch.learn - 1},
        "since": {"n": state.n - change, "direction": direction},
    }
    if state.spread is not None:
        facts |= spread_facts(state.spread)
        state.spread.forget_waiting()
    state.shown_by = state.n - state.began[leader]
    restart_shape(state, alarmed=True)
    return Crossing("breach", index, state.n - 1, change, "rank e-detector", value, threshold, facts)


def _learn(watch: ShapeWatch, state: ShapeState) -> None:
    ordered, n = sorted(state.values), len(state.values)
    state.grid = [ordered[min(n - 1, int((i + 0.5) * n / GRID))] for i in range(GRID)]
    counts = [0] * BINS
    for value in ordered:
        counts[_bin(bisect_left(state.grid, value) + bisect_right(state.grid, value))] += 1
    state.within = _split(state.values)
    state.bins, state.values = counts, []
    restart_shape(state, alarmed=False)


def _split(values: Sequence[float]) -> tuple[int, str] | None:
    """Where the values of a reference changed, if they did: the first of ten values, and which way they went."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    n = len(values)
    scores = ndtri((rankdata(values) - 0.5) / n)
    place = np.arange(FEWEST_APART, n - FEWEST_APART + 1)
    if not place.size:
        return None
    before, total = np.cumsum(scores)[place - 1], float(scores.sum())
    means = before / place, (total - before) / (n - place)
    between = place * (n - place) / n * np.square(means[0] - means[1])
    rest = np.maximum(float(np.square(scores - scores.mean()).sum()) - between, 1e-9)
    best = int(between.argmax())
    if n * np.log1p(between[best] / rest[best]) < WITHIN:
        return None
    return int(place[best]) // DATED_TO * DATED_TO, "higher" if means[1][best] > means[0][best] else "lower"


def _changed(watch: ShapeWatch, state: ShapeState, began: int, direction: str) -> int:
    """The change that an alarm is about: one within the reference if the evidence began right after that."""
    if state.within is None or began > watch.learn + SOON or state.within[1] != direction:
        return began
    return state.within[0]


def restart_shape(state: ShapeState, *, alarmed: bool) -> None:
    """Reset the evidence; keep what was learned."""
    bets = 2 * len(MEAN_BETS) + BINS
    state.strength, state.best, state.began = [0.0] * bets, [0.0] * bets, [state.n] * bets
    state.alarmed, state.calm = alarmed, 0


def _bin(position: int) -> int:
    return min(BINS - 1, position * BINS // (2 * GRID))


@lru_cache(maxsize=512)
def _table(worse: str, learned: int, bins: tuple[int, ...], effect: float = 1.0) -> tuple[tuple[float, ...], ...]:
    """What each bet wins at each of the positions that a value can have in the grid, from 0 to 128."""
    n, power = learned / effect, 1 / effect
    c = Z_MEAN * sqrt(1 / 12 / n) + 1 / (4 * GRID)
    upper = 0.5 + c
    shares = []
    for count in bins:
        p, z2 = count / learned, Z_BIN * Z_BIN
        half = Z_BIN * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
        shares.append(min(HIGHEST_LIMIT, max(LOWEST_LIMIT, (p + z2 / (2 * n) + half) / (1 + z2 / n))))
    rows = []
    for position in range(2 * GRID + 1):
        u = position / (2 * GRID)
        higher = [1 + bet * (u - upper) / upper for bet in MEAN_BETS]
        lower = [1 + bet * (1 - u - upper) / upper for bet in MEAN_BETS]
        visits = [1 + BIN_BET * ((_bin(position) == b) - share) / share for b, share in enumerate(shares)]
        # A bet that is not made keeps its stake: nothing of the promise is spent on it.
        none = [0.0]
        rows.append(
            tuple(
                factor**power
                for factor in (
                    *(higher if worse != "lower" else none * len(MEAN_BETS)),
                    *(lower if worse != "higher" else none * len(MEAN_BETS)),
                    *(visits if worse == "either" else none * BINS),
                )
            )
        )
    return tuple(rows)


def _direction(best: Sequence[float]) -> str:
    """The side the mean moved to, unless only the shares of bins show a change."""
    bets = len(MEAN_BETS)
    higher, lower = max(best[:bets]), max(best[bets : 2 * bets])
    if max(higher, lower) < TELLING:
        return "other shape"
    return "higher" if higher >= lower else "lower"
