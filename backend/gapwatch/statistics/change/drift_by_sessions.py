"""Drift where episodes come in sessions: one value per session, its mean, because similar episodes are not
independent evidence.

The promise stays a run length in episodes; state is the same handful of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from gapwatch.statistics.change.drift import (
    BETS,
    CALM_BELOW,
    FALLS,
    LEARN_SESSIONS,
    NOT_JUDGED,
    Climb,
    Crossing,
    LevelState,
    LevelWatch,
    RobotLimit,
    dated_since,
    expected_level,
    fall_steps,
    learn_level,
    level_crossing,
    level_strength,
    session_facts,
    start_climb,
    take_limit,
    take_robot_limit,
    walk,
    within_scale,
)
from gapwatch.statistics.change.drift_against_sim import (
    START_EVERY,
    SimState,
    SimWatch,
    against_sim_strength,
    lowest_drop,
    sim_crossing,
)
from gapwatch.statistics.change.strata import FEWEST_OF_ROBOT, ROBOT_PRIOR_N
from gapwatch.statistics.change.strata import MOST as MOST_OF_STRATUM
from gapwatch.statistics.estimates.rates import (
    FEWEST_SESSIONS,
    SessionSums,
    wilson,
)

SPLIT = 0.08
FIRST_SIZE = 20


@dataclass(frozen=True)
class SessionPart:
    """Episodes of one session that are judged as one value, their mean; `n` is their number.

    `ended` is on the last part of a session: the sum and the number of all its episodes. Of a session whose
    episodes were `counted` one by one there is only this end, with an n of 0.
    """

    mean: float
    n: int
    is_judged: bool = True
    ended: tuple[float, int] | None = None
    counted: bool = False
    # By how much its episodes are expected above the reference, on average.
    shift: float = 0.0


def part_size(sums: SessionSums) -> int:
    """How many episodes of a session are judged as one value, from what earlier sessions were like.

    Formula: ⌈m/k⌉ with m = Σnᵢ²/n, the size of the session that an episode is usually in, and k = 1 + ⌊0.08/ICC⌋
    values per session. Where episodes of a session resemble one another (ICC above 0.08) a session is one value,
    and one that is longer than usual is judged as if it were several. Where they do not, whole sessions would only
    be slow: at an ICC of 0.01 a session of ten is judged in parts of two. Below five sessions the ICC is unknown,
    and parts of 20 are used: shorter sessions are one value.
    """
    if sums.sessions < FEWEST_SESSIONS:
        return FIRST_SIZE
    if sums.n == sums.sessions:
        return 1
    return max(1, ceil(sums.squares / sums.n / (1 + floor(SPLIT / sums.likeness().icc))))


def update_level_by_sessions(
    watch: LevelWatch,
    state: LevelState,
    parts: Sequence[SessionPart],
    limits: Sequence[RobotLimit] | None = None,
    robot_limits: list[RobotLimit] | None = None,
) -> list[Crossing]:
    """Update `state` with these parts of sessions, in order. Return the alarms and recoveries on the way.

    Formula: as `drift.update_level`, with M ← (1 + λ(p₀ − ȳ)/(1 − p₀)) · (M + n) for a part of n episodes with the
    mean ȳ. E[M] still grows by at most 1 an episode, so the run length keeps its unit: at least `arl` episodes. p₀
    is the lower limit (95 %, one-sided) of `rates.clustered_rate` over whole sessions less `margin`, from five
    sessions on. Assumes sessions whose mean, given the sessions before, is p₀ or more, and whose size does not
    depend on how they went: then a session that is one part keeps the promise however alike its episodes are.
    Parts of one session are not independent, and where a session has several the promise weakens with its ICC.
    Source: as there. Smallest n: none with a limit, else 100 episodes and five sessions.
    """
    crossings: list[Crossing] = []
    flip = watch.worse == "higher"
    take_limit(watch, state)
    for index, part in enumerate(parts):
        y = 1 - part.mean if flip else part.mean
        number = state.n
        if limits is not None and watch.learns:
            if not limits[index].is_calm:
                state.n, state.total = state.n + part.n, state.total + part.n * y
                continue
        elif limits is not None:
            state.limit = _limit_of_robot(state, limits[index])
        if robot_limits is not None:
            robot_limits.append(
                NOT_JUDGED
                if state.climb is not None
                else RobotLimit(state.limit, 1.0, 0.0, state.reference_n, state.reference_value)
            )
        if state.climb is not None:
            state.n, state.total = state.n + part.n, state.total + part.n * y
            evidence = state.climb.step(y, part.n) if part.is_judged else 0.0
            if state.climb.is_over(evidence, watch.clear_arl):
                crossings.append(level_crossing("recovery", state, index, number, evidence, watch.clear_arl, flip))
                state.since_n, state.since_total, state.climb = 0, 0.0, None
                _forget_bets(state)
            continue
        _bet_on_part(state, y, part)
        evidence = level_strength(state)
        if evidence >= watch.arl:
            state.since_n, state.since_total = dated_since(state)
            crossings.append(level_crossing("breach", state, index, number, evidence, watch.arl, flip))
            start_climb(state)
            state.strength = [0.0] * len(BETS)
        elif part.ended is not None:
            total, n = part.ended
            _learn_session(watch, state, n - total if flip else total, n, part.counted)
    return crossings


def _limit_of_robot(state: LevelState, given: RobotLimit) -> float | None:
    """The limit of all robots, moved by how this one was in its own sessions; None while it is new."""
    limit = take_robot_limit(state, given)
    n = state.learned_n
    if limit is None or state.reference_value is None or n < FEWEST_OF_ROBOT:
        return None
    own = (state.learned_total - n * state.reference_value) / (n + ROBOT_PRIOR_N)
    return within_scale(limit + min(0.0, own))


def _bet_on_part(state: LevelState, y: float, part: SessionPart) -> None:
    """Add one part, with the mean y, to every bet against `state.limit`."""
    if part.is_judged and state.limit is not None:
        limit = within_scale(state.limit + part.shift) if part.shift else state.limit
        gain = (limit - y) / (1 - limit)
        for i, bet in enumerate(BETS):
            factor = 1 + bet * gain
            state.strength[i] = factor * (state.strength[i] + part.n)
            state.best[i] = factor if state.best[i] <= 1 else state.best[i] * factor
        steps = [part.n * step for step in fall_steps(expected_level(state) + part.shift, y)]
        walk(state.walks, state.began, state.before, steps, state.n, state.total)
    state.n, state.total = state.n + part.n, state.total + part.n * y


def _forget_bets(state: LevelState) -> None:
    """Reset the evidence."""
    state.strength, state.best, state.walks = [0.0] * len(BETS), [0.0] * len(BETS), [0.0] * len(FALLS)
    state.began, state.before = [state.n] * len(FALLS), [state.total] * len(FALLS)


def update_against_sim_by_sessions(
    watch: SimWatch, state: SimState, sim: tuple[int, int], parts: Sequence[SessionPart]
) -> list[Crossing]:
    """Update `state` with these parts of real sessions, given the sim successes and n so far.

    Formula: the bets of `update_level_by_sessions` against the lower Wilson limit (97.5 %, one-sided) of sim;
    alarm when they reach `arl` and the lower limit of the drop exceeds `above`. They start with α·arl, or what the
    processes of `update_against_sim` have shown before there were sessions, in the same unit. So the chance of a
    false alarm by episode t is at most α + t/arl beside the 2.5 % of the limit. Recovery: as there. Assumes what
    bets on sessions assume, and independent sim episodes. Why not the two-sample process on session means: it
    treats a mean as one outcome and cannot use how little the mean of many episodes varies. Source: as there.
    Smallest n: one session.
    """
    crossings: list[Crossing] = []
    state.sim_successes, state.sim_n = sim
    if not state.sim_n:
        state.n += sum(part.n for part in parts)
        return crossings
    sim_rate = state.sim_successes / state.sim_n
    limit = within_scale(wilson(*sim)[0])
    for index, part in enumerate(parts):
        number, state.n = state.n, state.n + part.n
        if state.climb is not None:
            evidence = state.climb.step(part.mean, part.n) if part.is_judged else 0.0
            if state.climb.is_over(evidence, watch.clear_arl):
                crossings.append(sim_crossing("recovery", state, index, number, evidence, watch.clear_arl))
                state.since_n, state.since_successes, state.climb = 0, 0.0, None
                state.bets = fresh_bets(state.n)
            continue
        if part.ended is not None:
            state.sessions.add(*part.ended)
        if not part.n:
            continue
        if state.bets is None:
            shown = START_EVERY * against_sim_strength(state) if state.started else watch.alpha * watch.arl
            state.bets = fresh_bets(number, shown)
            state.processes, state.filled, state.filled_successes = [], 0, 0.0
        state.bets.limit = limit
        _bet_on_part(state.bets, part.mean, part)
        evidence = level_strength(state.bets)
        since_n, since_successes = dated_since(state.bets)
        if evidence < watch.arl:
            continue
        state.since_n, state.since_successes = since_n, since_successes
        if lowest_drop(state, _design_effect(state.sessions)) > watch.above:
            crossings.append(sim_crossing("breach", state, index, number, evidence, watch.arl))
            state.climb = Climb.after(sim_rate, sim_rate - watch.above, since_n, since_successes)
    return crossings


def _design_effect(sums: SessionSums) -> float:
    known = session_facts(sums)
    return float(known["sessions"]["design_effect"]) if known else 1.0


def fresh_bets(n: int, strength: float = 0.0) -> LevelState:
    """Bets that begin after n episodes, with some initial evidence."""
    return LevelState(n=n, strength=[strength] * len(BETS), began=[n] * len(FALLS))


def _learn_session(watch: LevelWatch, state: LevelState, total: float, n: int, counted: bool) -> None:
    state.sessions.add(total, n)
    is_enough = state.learned_n >= watch.learn_to and state.sessions.sessions > LEARN_SESSIONS
    if watch.limit is not None or is_enough or (not watch.learns and state.learned_n >= MOST_OF_STRATUM):
        return
    before = state.learned_n
    if not counted:
        state.learned_n += n
        state.learned_total += total
    if not watch.learns:
        return
    is_due = before // watch.learn_every != state.learned_n // watch.learn_every
    if is_due and state.learned_n >= watch.learn_from and max(state.best) < CALM_BELOW:
        learn_level(watch, state)
