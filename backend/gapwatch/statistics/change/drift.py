"""Whether the level of a series fell below what it was, checked after every episode, and whether it recovered.

The promise is an average run length: without a change at least `arl` episodes pass before a false alarm, however
often anybody looks. State is a handful of numbers; a worker stores them and continues from them, and the result
does not depend on how the episodes were batched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import Any, Literal, NamedTuple

from gapwatch.statistics.change.dispersion import Spread
from gapwatch.statistics.change.strata import Circumstance, KnownStrata
from gapwatch.statistics.estimates.rates import (
    FEWEST_SESSIONS,
    SessionSums,
    wilson,
)

BETS = (0.1, 0.2, 0.4, 0.8)
# The falls that a change is dated by: how well each explains the episodes from some start on. As many as bets.
FALLS = (0.05, 0.1, 0.18, 0.35)
LOWEST_LIMIT, HIGHEST_LIMIT = 0.02, 0.98
# Learning continues while the best bet has won no more than this.
CALM_BELOW = 10.0
Z_LIMIT = 1.6448536269514722
# Runs and days that end with more than this are not taken for ordinary ones.
ORDINARY_BELOW = 100.0
# Steps of so many levels and values are remembered within a batch.
MOST_REMEMBERED = 1000
# The bet whose winnings tell since when a series has risen again, by how many standard errors that must be more
# than half way, and the most episodes that must show it.
RISE_BET, Z_RISE, LONGEST_RISE = 0.4, 4.0, 250
# A reference is learned from at least this many sessions, even if they are long.
LEARN_SESSIONS = 50


@dataclass(frozen=True)
class LevelWatch:
    """How a series of numbers from 0 to 1 is watched. `limit` is given, or learned from the series itself."""

    worse: Literal["lower", "higher"] = "lower"
    arl: float = 10_000.0
    clear_arl: float = 500.0
    margin: float = 0.01
    limit: float | None = None
    learn_from: int = 100
    learn_every: int = 50
    learn_to: int = 1000
    # Whether it has a reference of its own; one robot's series is judged against that of all.
    learns: bool = True


@dataclass
class Climb:
    """Evidence that the level is more than half way back to `goal`: recovery has its own condition.

    Half way is measured from all `n` episodes since the fall, not only from those that raised the alarm: they were
    the worst. The episodes since it rose must also reach `enough` on average, and be as many as tell that from
    half way: better and still below what raises the alarm is not over, and would be told again. Fewer do
    that tell their own mean from `enough`: from a gate of 60 % half way is near, and 92 % is far above both.
    """

    goal: float
    n: int
    total: float
    strength: list[float] = field(default_factory=lambda: [0.0] * len(BETS))
    enough: float = 0.0
    fell_to: float = 0.0
    # Since the best bet last had nothing: what it has won, in how many episodes, and their sum.
    best: float = 0.0
    risen_n: int = 0
    risen_total: float = 0.0

    @classmethod
    def after(cls, goal: float, enough: float, n: int, total: float) -> Climb:
        """From the episodes that showed the fall."""
        return cls(goal, n, total, enough=enough, fell_to=total / max(1, n))

    def step(self, y: float, n: int = 1, effect: float = 1.0) -> float:
        """Add one episode, as in `update_level` with the sides swapped; or a part of a session, of n episodes."""
        half_way = within_scale((self.goal + self.total / self.n) / 2)
        self.n += n
        self.total += n * y
        gain = (y - half_way) / half_way
        power = 1 / effect
        self.strength = [(1 + bet * gain) ** power * (m + n) for bet, m in zip(BETS, self.strength, strict=True)]
        if self.best <= 1:
            self.best, self.risen_n, self.risen_total = 1.0, 0, 0.0
        self.best *= (1 + RISE_BET * gain) ** power
        self.risen_n += n
        self.risen_total += n * y
        return sum(self.strength) / len(BETS)

    def is_over(self, evidence: float, clear_arl: float) -> bool:
        if evidence < clear_arl or self.risen_total < self.enough * self.risen_n:
            return False
        half_way, enough = within_scale((self.goal + self.fell_to) / 2), within_scale(self.enough)
        from_half_way = _episodes_that_tell(self.enough, half_way)
        from_enough = _episodes_that_tell(self.risen_total / self.risen_n, enough)
        return self.risen_n >= min(from_half_way, from_enough, LONGEST_RISE)


def _episodes_that_tell(level: float, lower: float) -> float:
    """How many have a mean that is `Z_RISE` standard errors above the lower level."""
    return Z_RISE**2 * lower * (1 - lower) / max(0.01, level - lower) ** 2


@dataclass
class LevelState:
    """Everything a level detector knows.

    `best` follows what each bet has won from its best start; `walks`, `began` and `before` what speaks for each of
    `FALLS`, since when, and the sum of all values before that.
    """

    n: int = 0
    learned_n: int = 0
    learned_total: float = 0.0
    reference_n: int = 0
    # The number of the last episode that was learned from.
    reference_end: int = 0
    reference_value: float | None = None
    limit: float | None = None
    strength: list[float] = field(default_factory=lambda: [0.0] * len(BETS))
    best: list[float] = field(default_factory=lambda: [0.0] * len(BETS))
    walks: list[float] = field(default_factory=lambda: [0.0] * len(FALLS))
    began: list[int] = field(default_factory=lambda: [0] * len(BETS))
    before: list[float] = field(default_factory=lambda: [0.0] * len(BETS))
    total: float = 0.0
    since_n: int = 0
    since_total: float = 0.0
    climb: Climb | None = None
    sessions: SessionSums = field(default_factory=SessionSums)
    spread: Spread = field(default_factory=Spread)
    strata: KnownStrata = field(default_factory=KnownStrata)

    @classmethod
    def load(cls, stored: dict[str, Any]) -> LevelState:
        climb = stored.get("climb")
        nested = {
            "climb": None if climb is None else Climb(**climb),
            "sessions": SessionSums(**stored.get("sessions", {})),
            # Neither is in what older versions stored: what they learned goes on, the spread begins anew.
            "spread": Spread.load(stored["spread"]) if "spread" in stored else Spread(),
            "strata": KnownStrata.load(stored["strata"]) if "strata" in stored else KnownStrata(),
        }
        return cls(**(stored | nested))


class RobotLimit(NamedTuple):
    """What an episode of one robot is judged by: a limit, None where it is not, and what runs and days do.

    The reference is that of all robots. Of a day it has fewer episodes, so that days matter less to it. The series
    of one level of a condition has a limit of its own, and is judged by the rest while the whole `is_calm`.
    """

    limit: float | None
    run_effect: float = 1.0
    day_icc: float = 0.0
    reference_n: int = 0
    reference_value: float | None = None
    is_calm: bool = True
    # Its own level where nothing fell.
    expected: float | None = None


NOT_JUDGED = RobotLimit(None, is_calm=False)


@dataclass(frozen=True)
class Crossing:
    """A condition came true at one episode: `index` in the batch, `number` in the series, both from 0.

    `change` is the number of the first episode after the estimated change.
    """

    kind: Literal["breach", "recovery"]
    index: int
    number: int
    change: int
    statistic: str
    value: float
    threshold: float
    facts: dict[str, Any]


def update_level(
    watch: LevelWatch,
    state: LevelState,
    values: Sequence[float],
    circumstances: Sequence[Circumstance] = (),
    limits: Sequence[RobotLimit] | None = None,
    robot_limits: list[RobotLimit] | None = None,
) -> list[Crossing]:
    """Update `state` with these values, in order. Return the alarms and recoveries on the way.

    Formula: y = x, or 1 − x where higher is worse. Null: E[y | past] ≥ p₀. For each bet λ in {.1, .2, .4, .8} M
    ← (1 + λ(p₀ − y)/(1 − p₀))^(1/d) · (M + 1), Shiryaev–Roberts; alarm when the mean over λ reaches `arl`. Then
    without a change the mean number of episodes to an alarm is at least `arl`: E[M] grows by at most 1 an
    episode. p₀ is `limit`, or the lower 95 % Wilson limit (one-sided) of the episodes so far less `margin`,
    updated every 50 episodes from 100 to 1000 while nothing is suspected; the margin covers the error of
    that reference. d is the design effect of `dispersion.Spread`, 1 unless runs of episodes or days vary more
    than chance has them: what a series of episodes proves is divided by it, as quasi-likelihood does, and so is
    the reference's n. p₀ moves with the episode's strata where those differ for certain (`strata.py`), and with
    what sim has for levels that are new. `limits` are given from outside for the series of one robot: the
    `robot_limits` of all robots together, with the design effect of as many episodes a day as it has; one level of
    a condition has its own p₀ and d. Change point:
    the start and the fall, of `FALLS`, for which the likelihood ratio against the reference's mean is largest (the
    CUSUM of its logarithm last at zero): bets are made against p₀, and win later than that. Recovery: the same
    statistic upwards, against the level half way back, reaches `clear_arl`, and the episodes since it rose are at
    p₀ or above, and enough to tell p₀ from half way or themselves from p₀ (by 4
    standard errors; at most 250). Assumes numbers in [0, 1], each with a mean of p₀ or more given its past; they
    need not be independent or equal in distribution. Where days or
    unnamed sessions move together that mean falls below p₀ at times; dividing by d makes up for it in the normal
    approximation, which is measured (`bench/oncall.py`) and not a bound. Named sessions: `drift_by_sessions.py`.
    Source: Shin, Ramdas & Rinaldo 2023 (e-detectors); McCullagh & Nelder 1989 (quasi-likelihood). Measured with
    the default values, see the test: at most 5 % of unchanged series alarm within 3000 episodes. Smallest n: none
    with a limit, else 100.
    """
    crossings: list[Crossing] = []
    flip = watch.worse == "higher"
    take_limit(watch, state)
    m1, m2, m3, m4 = state.strength
    best, began, before = state.best, state.began, state.before
    alarm_at = watch.arl * len(BETS)
    spread, factors = state.spread, _Factors()
    has_strata = bool(circumstances) and watch.limit is None and watch.learns
    for index, x in enumerate(values):
        y = 1 - x if flip else x
        number, state.n = state.n, state.n + 1
        here = circumstances[index] if circumstances else None
        if robot_limits is not None:
            robot_limits.append(_robot_limit(state, here))
        if state.climb is not None:
            state.total += y
            spread.add_alarmed(y, None if here is None else here.day)
            evidence = state.climb.step(y, 1, spread.certain_effect)
            if state.climb.is_over(evidence, watch.clear_arl):
                spread.end_alarm()
                crossings.append(level_crossing("recovery", state, index, number, evidence, watch.clear_arl, flip))
                m1, m2, m3, m4, best = 0.0, 0.0, 0.0, 0.0, [0.0] * 4
                state.walks = [0.0] * len(FALLS)
                began, before = [state.n] * 4, [state.total] * 4
                state.since_n, state.since_total, state.climb = 0, 0.0, None
            continue
        given = None if limits is None else limits[index]
        if given is not None and watch.learns and not given.is_calm:
            # The whole is alarmed: it says what is wrong, and nothing is learned from it.
            state.total += y
            continue
        if given is not None and not watch.learns:
            state.limit = take_robot_limit(state, given)
        if state.limit is not None:
            shift = state.strata.shift_at(here) if has_strata and here is not None else 0.0
            known = factors.of(state.limit, shift, y, _effect(watch, spread, given))
            f1, f2, f3, f4 = known
            m1, m2, m3, m4 = f1 * (m1 + 1), f2 * (m2 + 1), f3 * (m3 + 1), f4 * (m4 + 1)
            best = [factor if won <= 1 else won * factor for won, factor in zip(best, known, strict=True)]
            expected = expected_level(state, given) + shift
            walk(state.walks, began, before, factors.steps(expected, y), number, state.total)
        state.total += y
        if m1 + m2 + m3 + m4 >= alarm_at:
            evidence = (m1 + m2 + m3 + m4) / 4
            m1 = m2 = m3 = m4 = 0.0
            state.best, state.began, state.before = best, began, before
            crossings.append(_fallen(watch, state, index, number, evidence))
            continue
        _learn_episode(watch, state, y, here, max(best))
    state.strength, state.best, state.began, state.before = [m1, m2, m3, m4], best, began, before
    return crossings


def _fallen(watch: LevelWatch, state: LevelState, index: int, number: int, evidence: float) -> Crossing:
    """Go over to looking for the recovery."""
    state.since_n, state.since_total = dated_since(state)
    crossing = level_crossing("breach", state, index, number, evidence, watch.arl, watch.worse == "higher")
    start_climb(state)
    state.spread.forget_waiting()
    return crossing


def start_climb(state: LevelState) -> None:
    goal = state.limit if state.reference_value is None else state.reference_value
    state.climb = Climb.after(goal or 0.0, state.limit or 0.0, state.since_n, state.since_total)


def _learn_episode(
    watch: LevelWatch, state: LevelState, y: float, here: Circumstance | None, suspected: float
) -> None:
    state.spread.add(y, None if here is None else here.day, is_calm=suspected < ORDINARY_BELOW)
    if watch.limit is not None or not watch.learns:
        return
    is_complete = state.learned_n >= watch.learn_to
    if here is not None and suspected < CALM_BELOW:
        effect = state.spread.effect
        state.strata.learn(here.strata, y, state.reference_value, effect, is_complete=is_complete)
    if not is_complete:
        state.learned_n += 1
        state.learned_total += y
        due = state.learned_n >= watch.learn_from and not state.learned_n % watch.learn_every
        if due and suspected < CALM_BELOW:
            learn_level(watch, state)


def walk(
    walks: list[float], began: list[int], before: list[float], steps: Sequence[float], number: int, total: float
) -> None:
    """Add what an episode, or a part of a session, says for each fall; one that nothing speaks for begins anew."""
    for i, step in enumerate(steps):
        if walks[i] <= 0:
            walks[i], began[i], before[i] = step, number, total
        else:
            walks[i] += step


def dated_since(state: LevelState) -> tuple[int, float]:
    """The episodes since the change, for which the likeliest fall speaks most: how many, and their sum."""
    leader = max(range(len(FALLS)), key=state.walks.__getitem__)
    return state.n - state.began[leader], state.total - state.before[leader]


def expected_level(state: LevelState, given: RobotLimit | None = None) -> float:
    """Where the level is while nothing fell: the reference's mean, or the limit where there is no reference."""
    if given is not None and given.expected is not None:
        return given.expected
    return (state.limit or 0.0) if state.reference_value is None else state.reference_value


def fall_steps(expected: float, y: float) -> tuple[float, ...]:
    """The logarithm of the likelihood ratio of each fall, for a value or the mean of some."""
    level = within_scale(expected)
    steps = []
    for fall in FALLS:
        fallen = max(LOWEST_LIMIT / 2, level - fall)
        steps.append(y * log(fallen / level) + (1 - y) * log((1 - fallen) / (1 - level)))
    return tuple(steps)


class _Factors:
    """What an episode multiplies each bet with, remembered: few values differ while limit and effect stay."""

    def __init__(self) -> None:
        self._known: dict[tuple[float, float], tuple[float, float, float, float]] = {}
        self._at: tuple[float, float] | None = None
        self._steps: dict[tuple[float, float], tuple[float, ...]] = {}

    def steps(self, expected: float, y: float) -> tuple[float, ...]:
        known = self._steps.get((expected, y))
        if known is None:
            if len(self._steps) >= MOST_REMEMBERED:
                self._steps = {}
            known = self._steps[expected, y] = fall_steps(expected, y)
        return known

    def of(self, limit: float, shift: float, y: float, effect: float) -> tuple[float, float, float, float]:
        if self._at != (limit, effect):
            self._known, self._at = {}, (limit, effect)
        known = self._known.get((y, shift))
        if known is None:
            moved = within_scale(limit + shift) if shift else limit
            known = self._known[y, shift] = _factors(moved, y, effect)
        return known


def _robot_limit(state: LevelState, here: Circumstance | None) -> RobotLimit:
    if state.climb is not None:
        return NOT_JUDGED
    spread, limit, expected = state.spread, None, None
    if state.limit is not None and state.reference_value is not None and here is not None:
        shift = state.strata.robot_shift(here, state.reference_value)
        limit = None if shift is None else within_scale(state.limit + shift)
        expected = None if shift is None else state.reference_value + shift
    return RobotLimit(
        limit, spread.run_effect, spread.day_icc, state.reference_n, state.reference_value, expected=expected
    )


def _effect(watch: LevelWatch, spread: Spread, given: RobotLimit | None) -> float:
    """The design effect that an episode is judged with."""
    if given is None:
        # What is to be expected of days is no excuse before a limit that somebody set.
        return spread.effect if watch.limit is None else spread.certain_effect
    own = spread.effect if watch.learns else spread.run_effect
    return max(own, given.run_effect, 1 + (spread.usual_day_n - 1) * given.day_icc)


def take_robot_limit(state: LevelState, given: RobotLimit) -> float | None:
    if given.reference_value is not None:
        state.reference_n, state.reference_value = given.reference_n, given.reference_value
    return given.limit


def _factors(limit: float, y: float, effect: float) -> tuple[float, float, float, float]:
    """What one episode multiplies each bet with."""
    gain = (limit - y) / (1 - limit)
    (l1, l2, l3, l4), power = BETS, 1 / effect
    f1, f2, f3, f4 = 1 + l1 * gain, 1 + l2 * gain, 1 + l3 * gain, 1 + l4 * gain
    return (f1, f2, f3, f4) if effect == 1 else (f1**power, f2**power, f3**power, f4**power)


def level_strength(state: LevelState) -> float:
    """The statistic now: in units of the average run length it is compared with."""
    return sum(state.strength) / len(BETS)


def take_limit(watch: LevelWatch, state: LevelState) -> None:
    if watch.limit is not None:
        state.reference_value = 1 - watch.limit if watch.worse == "higher" else watch.limit
        state.limit = within_scale(state.reference_value)


def _learn_from_sessions(watch: LevelWatch, state: LevelState) -> None:
    from scipy.special import stdtrit

    sums = replace(state.sessions)
    # Learned episodes outside any session were counted one by one.
    alone = max(0, state.learned_n - sums.n)
    sums.add_alone(min(alone, max(0.0, state.learned_total - sums.total)), alone)
    alike = sums.likeness()
    effective_n = sums.n / alike.design_effect
    state.reference_n, state.reference_value, state.reference_end = sums.n, sums.total / sums.n, state.n - 1
    low, _ = wilson(sums.total / alike.design_effect, effective_n, float(stdtrit(alike.freedom, 0.95)))
    low -= watch.margin
    state.limit = within_scale(low) if low > LOWEST_LIMIT else None


def learn_level(watch: LevelWatch, state: LevelState) -> None:
    if state.sessions.sessions:
        if state.sessions.sessions >= FEWEST_SESSIONS and state.sessions.n > state.sessions.sessions:
            _learn_from_sessions(watch, state)
        return
    p = state.learned_total / state.learned_n
    n = state.learned_n / state.spread.effect
    centre, half = p + Z_LIMIT**2 / (2 * n), Z_LIMIT * sqrt(p * (1 - p) / n + Z_LIMIT**2 / (4 * n * n))
    state.reference_n, state.reference_value, state.reference_end = state.learned_n, p, state.n - 1
    low = (centre - half) / (1 + Z_LIMIT**2 / n) - watch.margin
    # A level at the end of its scale cannot get worse, and is not judged.
    state.limit = within_scale(low) if low > LOWEST_LIMIT else None


def within_scale(level: float) -> float:
    """Keep the limit away from the end of the scale, where one episode would count for more than fifty."""
    return min(HIGHEST_LIMIT, max(LOWEST_LIMIT, level))


def level_crossing(
    kind: Literal["breach", "recovery"],
    state: LevelState,
    index: int,
    number: int,
    value: float,
    threshold: float,
    flip: bool,
) -> Crossing:
    def shown(y: float | None) -> float | None:
        return None if y is None else 1 - y if flip else y

    facts: dict[str, Any] = {
        "reference": {
            "n": state.reference_n,
            "value": shown(state.reference_value),
            "limit": shown(state.limit),
            "end": state.reference_end,
        },
        "since": {"n": state.since_n, "value": shown(state.since_total / max(1, state.since_n))},
    }
    if kind == "recovery" and state.climb is not None:
        facts["since"] = {"n": state.climb.n, "value": shown(state.climb.total / state.climb.n)}
    change = state.n - facts["since"]["n"]
    sessions = session_facts(state.sessions)
    statistic = "e-detector over sessions" if sessions else "e-detector"
    more = sessions or spread_facts(state.spread)
    return Crossing(kind, index, number, change, statistic, value, threshold, facts | more)


def spread_facts(spread: Spread) -> dict[str, Any]:
    """What episodes are worth where they vary more than chance has them, for the evidence; else nothing."""
    if spread.effect == 1:
        return {}
    clusters = spread.clusters
    return {"spread": {"design_effect": spread.effect, "between": None if clusters is None else clusters[0]}}


def session_facts(sums: SessionSums) -> dict[str, Any]:
    """How alike the episodes of one session are, for the evidence; nothing below five sessions."""
    if sums.sessions < FEWEST_SESSIONS or sums.n == sums.sessions:
        return {}
    alike = sums.likeness()
    known = {"n": sums.sessions, "icc": alike.icc, "design_effect": alike.design_effect}
    return {"sessions": known}
