"""What the success rate of a deployment is now, since when, and how much it moved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, pi, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapwatch.statistics.estimates.rates import Limits, modified_wilson, square_and_add, wilson

MovedWord = Literal["fell", "rose", "steady", "falling", "rising", "too few episodes"]
RegimeStart = Literal["first", "known", "found", "drifting"]
Interval = tuple[float, float]
Array = NDArray[np.float64]

# The newest episodes that the estimate is made of, fixed in advance. Slightly more than 1.96, because a rate that
# moves within them is missed more often: 92 to 95 % at 1.96, 95 % and more at 2.03 in every scenario of bench/now.
NEWEST = 100
Z_NEWEST = 2.03
# A change is looked for in no more episodes than these; fewer on either side of it say nothing.
REACH = 2000
FEWEST = 20
SCAN_LEVEL = 0.0025
# The newest against those before them, where the scan finds nothing. The limit is the one at which a step of 15
# points is missed in 4 of 100, within bounds: 3.8 to 2 % of constant rates are said to have fallen and 0.7 to
# 0.5 % to have risen. A fall that is missed costs more. With few before them the upper bound holds.
FEWEST_BEFORE = 50
LONG_BEFORE = 200
PROMISED = 0.15
Z_PROMISED = 1.7
Z_FELL = (1.78, 2.05)
Z_ROSE = (2.45, 2.60)
Z_FIXED = 2.1700903775845606
# What a version is held against of the one before it.
BEFORE = 400
# A segment that was chosen because it differs has an interval of 99 %.
Z_99 = 2.5758293035489004
# What a line must explain better than a step, in log-likelihood, to be believed; a shorter one looks like a step.
LINE_GAIN = 0.5
LINE_STARTS = 40
LINE_LEAST = 200


@dataclass(frozen=True)
class Rate:
    """Successes of n episodes, with the interval of the rate."""

    successes: int
    n: int
    interval: Interval | None

    @property
    def value(self) -> float | None:
        return self.successes / self.n if self.n else None


@dataclass(frozen=True)
class Moved:
    """Now minus before, as a fraction; negative when it is worse now."""

    change: float | None
    interval: Interval | None
    verdict: MovedWord


@dataclass(frozen=True)
class Present:
    """`regime_from`: place of the regime's first episode among those of the version.

    `before` ends where the regime begins; of a rate that is steady for long, where the newest begin.
    """

    estimate: Rate
    regime: Rate
    regime_from: int
    start: RegimeStart
    before: Rate | None
    before_until: int
    moved: Moved


def find_present(
    outcomes: ArrayLike, earlier: ArrayLike = (), known_from: int = 0, design_effect: float = 1.0
) -> Present:
    """Success now, from the outcomes of the current policy version, oldest first, at most 2000.

    `earlier` are those of the versions before, `known_from` is the place of a change that is known otherwise, and
    one independent episode is worth `design_effect` of these.

    Estimate: Wilson at z = 2.03, with Poisson limits where one to three differ, over the newest 100, or all if
    there are fewer; nothing is selected by looking.
    Regime: the largest signed root of the likelihood ratio of a split, at least 20 on either side, against the
    limit b of P(max |Z| > b) ≈ b φ(b) (1 − b⁻²) ln((n − m)² / m²) + 4 φ(b)/b = 0.25 %, again on the newer part
    until none is left. If nothing is found: the newest 100 against all before them, at 2 to 3.8 % for a fall and
    0.7 % for a rise, split where it fits best. A straight line over 200 and more, a + b max(0, t − k), is
    preferred to the step if it explains the same episodes better by 0.5 in log-likelihood: the rate is drifting.
    The regime is chosen from the data, therefore Wilson at 99 %.
    Moved: Newcombe's interval of the regime against what was before, of the newest if it drifts or is steady.
    Assumes episodes independent up to the design effect. Sources: Wilson 1927; James, James and Siegmund 1987,
    eq. 3.3, for the limit; Newcombe 1998. Smallest n: 20 episodes; with fewer the verdict says so.
    """
    x, past = np.asarray(outcomes, dtype=np.float64), np.asarray(earlier, dtype=np.float64)
    estimate = _rate(x[-NEWEST:], design_effect, Z_NEWEST)
    if len(x) - known_from < FEWEST:
        known_from = 0
    start, since, before = _regime(x, 0, design_effect)
    if since < known_from and start != "drifting":
        # What drifts is not cut where somebody first noticed it.
        start, since, before = _regime(x, known_from, design_effect)
    chosen = start in ("found", "drifting")
    regime = _rate(x[since:], design_effect, Z_99 if chosen else Z_NEWEST)
    steady = False
    if not chosen:
        # What lies before: of the same version up to a known change, else of the version before.
        before = x[:known_from][-BEFORE:] if known_from else past[-BEFORE:]
        if len(before) < FEWEST and len(x) - since >= NEWEST + FEWEST_BEFORE:
            before, steady = x[since:-NEWEST][-BEFORE:], True
    held = estimate if steady or start == "drifting" else regime
    other = _rate(before, design_effect, Z_NEWEST) if len(before) else None
    return Present(
        estimate,
        regime,
        since,
        start,
        other,
        len(x) - NEWEST if steady else since,
        _moved(held, other, start, steady=steady, design_effect=design_effect),
    )


def _regime(x: Array, known_from: int, design_effect: float) -> tuple[RegimeStart, int, Array]:
    """How the regime began, where, and the segment before it where one was found."""
    start: RegimeStart = "known" if known_from else "first"
    since, before = known_from, x[:0]
    split = _scan(x[since:], design_effect)
    while split is not None:
        segment = x[since:]
        line = _line_from(segment, split)
        if line is not None:
            # A line that starts with the segment has no level before it: its oldest episodes stand for it.
            return "drifting", since + line, segment[: line if line >= FEWEST else NEWEST]
        start, since, before = "found", since + split, segment[:split]
        split = _scan(x[since:], design_effect) if len(x) - since >= 2 * FEWEST else None
    segment = x[since:]
    if start == "found" and len(segment) < LONG_BEFORE + NEWEST:
        return start, since, before
    split = _compare_newest(segment, design_effect)
    if split is None:
        return start, since, before
    line = _line_from(segment, split)
    if line is not None:
        return "drifting", since + line, segment[: line if line >= FEWEST else NEWEST]
    return "found", since + split, segment[:split]


def _scan(x: Array, design_effect: float) -> int | None:
    """The split whose sides differ most, if they differ more than chance would have it."""
    if len(x) < 2 * FEWEST:
        return None
    split, z = _largest_split(x)
    return split if z > split_limit(len(x), SCAN_LEVEL) * sqrt(design_effect) else None


def _largest_split(x: Array, direction: int = 0) -> tuple[int, float]:
    """Place and |z| of the split with the largest likelihood ratio, of those that go one way if it is given."""
    n, total = len(x), x.sum()
    left = np.arange(FEWEST, n - FEWEST + 1)
    k = np.cumsum(x)[left - 1]
    gain = best_likelihood(k, left) + best_likelihood(total - k, n - left) - best_likelihood(total, n)
    if direction:
        gain = np.where(direction * ((total - k) * left - k * (n - left)) > 0, gain, -1.0)
    best = int(np.argmax(gain))
    return int(left[best]), sqrt(max(0.0, 2 * float(gain[best])))


def _compare_newest(x: Array, design_effect: float) -> int | None:
    """The newest against those before; if they differ, the place where the two split best."""
    older = x[:-NEWEST]
    if len(older) < FEWEST_BEFORE:
        return None
    k, n = np.array([older.sum(), x[-NEWEST:].sum()]), np.array([len(older), NEWEST])
    gain = float(best_likelihood(k, n).sum() - best_likelihood(k.sum(), n.sum()))
    fell = k[1] / n[1] < k[0] / n[0]
    if sqrt(max(0.0, 2 * gain)) <= _newest_limit(k[0] / n[0], int(n[0]), fell=bool(fell)) * sqrt(design_effect):
        return None
    return _largest_split(x, -1 if fell else 1)[0]


def _newest_limit(before: float, n: int, *, fell: bool) -> float:
    """What the z of the newest against n before them must exceed."""
    low, high = Z_FELL if fell else Z_ROSE
    if n < LONG_BEFORE:
        return high
    after = min(1.0, max(0.0, before - PROMISED if fell else before + PROMISED))
    both = (before * n + after * NEWEST) / (n + NEWEST)
    by_chance = sqrt(both * (1 - both) * (1 / n + 1 / NEWEST))
    after_step = sqrt(before * (1 - before) / n + after * (1 - after) / NEWEST)
    return min(high, max(low, (PROMISED - Z_PROMISED * after_step) / by_chance)) if by_chance else high


@lru_cache(maxsize=2000)
def split_limit(n: int, level: float = 0.005) -> float:
    """The value that the largest of all standardised splits exceeds by chance with the level, 0.5 %."""
    ratio = 2 * log((n - FEWEST) / FEWEST) if n > 2 * FEWEST else 0.0

    def tail(b: float) -> float:
        density = exp(-b * b / 2) / sqrt(2 * pi)
        return b * density * (1 - 1 / (b * b)) * ratio + 4 * density / b

    low, high = 1.5, 8.0
    while high - low > 1e-6:  # noqa: PLR2004 - far below what a count can tell apart
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > level else (low, middle)
    return high


def _line_from(x: Array, split: int) -> int | None:
    """Where a line begins that explains the episodes better than a step at the split; None if none does."""
    n, t = len(x), np.arange(len(x), dtype=np.float64)
    of_step = float(
        best_likelihood(np.array([x[:split].sum(), x[split:].sum()]), np.array([split, n - split])).sum()
    )
    starts = np.unique(np.linspace(0, max(0, n - LINE_LEAST), LINE_STARTS).astype(int))
    bent = np.maximum(0.0, t[None, :] - starts[:, None])
    mean = bent.mean(axis=1, keepdims=True)
    slope = ((bent - mean) @ (x - x.mean())) / ((bent - mean) ** 2).sum(axis=1)
    fitted = np.clip(x.mean() + slope[:, None] * (bent - mean), 0.5 / n, 1 - 0.5 / n)
    likelihoods = (x * np.log(fitted) + (1 - x) * np.log1p(-fitted)).sum(axis=1)
    best = int(np.argmax(likelihoods))
    return int(starts[best]) if float(likelihoods[best]) - of_step > LINE_GAIN else None


def best_likelihood(k: ArrayLike, n: ArrayLike) -> Array:
    """Binomial log-likelihood at the best rate, elementwise."""
    good, all_ = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    bad = all_ - good
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(good > 0, good * np.log(good / all_), 0.0)
        return np.asarray(terms + np.where(bad > 0, bad * np.log(bad / all_), 0.0))


def _rate(x: Array, design_effect: float, z: float) -> Rate:
    n, k = len(x), round(float(x.sum()))
    return Rate(k, n, _interval(k, n, design_effect, z) if n else None)


def _interval(k: int, n: int, design_effect: float, z: float) -> Interval:
    return modified_wilson(k, n, z) if design_effect == 1 else wilson(k / design_effect, n / design_effect, z)


def _moved(held: Rate, before: Rate | None, start: RegimeStart, *, steady: bool, design_effect: float) -> Moved:
    if held.n < FEWEST:
        return Moved(None, None, "too few episodes")
    if before is None or before.value is None or held.value is None:
        return Moved(None, None, "steady")
    # A version with many episodes is also held against its own past: the levels of both add up to 5 %.
    is_long = start == "first" and held.n >= NEWEST + FEWEST_BEFORE
    z = Z_99 if start in ("found", "drifting") or is_long else Z_FIXED
    limits = square_and_add(
        Limits(held.value, *_interval(held.successes, held.n, design_effect, z)),
        Limits(before.value, *_interval(before.successes, before.n, design_effect, z)),
    )
    return Moved(limits.value, (limits.low, limits.high), _word(limits, start, steady=steady))


def _word(moved: Limits, start: RegimeStart, *, steady: bool) -> MovedWord:
    if start == "drifting":
        return "falling" if moved.value < 0 else "rising"
    if start == "found":
        return "fell" if moved.value < 0 else "rose"
    if steady or moved.low <= 0 <= moved.high:
        return "steady"
    return "fell" if moved.value < 0 else "rose"
