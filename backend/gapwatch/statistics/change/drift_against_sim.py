"""Whether real falls below its simulation: two-sample e-processes from many starts, five sim episodes per real.

A process begins every fifty real episodes and draws its sim episodes from the whole pool, so a drop is detected
both at deploy and after ten thousand good episodes; the promise holds for the sum of the processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from math import exp, hypot, log
from typing import Any

import numpy as np

from gapwatch.statistics.change.dispersion import Spread
from gapwatch.statistics.change.drift import (
    Climb,
    Crossing,
    LevelState,
    session_facts,
    spread_facts,
)
from gapwatch.statistics.estimates.drops import Side, rate_drop
from gapwatch.statistics.estimates.rates import (
    SessionSums,
    confidence_sequence,
    wilson,
)
from gapwatch.statistics.estimates.sequential import BETTER_PRIOR, WORSE_PRIOR

SIM_PER_REAL = 5
BLOCK = 10
SIM_BLOCK = SIM_PER_REAL * BLOCK
START_EVERY = 50
MOST_PROCESSES = 6
# The pool of one process: enough for 800 real episodes, and cheap to shuffle.
LARGEST_POOL = 4000
# Runs and days that end while a process has shown more than this are not taken for ordinary ones.
CALM_BELOW = log(10)
Z_CERTAIN = 2.8
# With fewer sim episodes than this a process would end before it could say anything.
SMALLEST_POOL = 200


@dataclass(frozen=True)
class SimWatch:
    """`above` is what the drop must exceed for certain; `alpha` is for the drop at deploy."""

    above: float = 0.05
    alpha: float = 0.025
    arl: float = 30_000.0
    clear_arl: float = 500.0
    seed: int = 0


@dataclass
class SimProcess:
    """One two-sample e-process, with its pool as it was at the start."""

    number: int
    began: int
    pool_successes: int
    pool_n: int
    weight: float
    log_e: float = 0.0
    sim_successes: int = 0
    real_successes: float = 0.0
    blocks: int = 0

    @property
    def value(self) -> float:
        return self.weight * exp(min(500.0, self.log_e))

    @property
    def real_n(self) -> int:
        return self.blocks * BLOCK

    def add(self, sim_successes: int, real_successes: float, effect: float = 1.0) -> None:
        """`sequential.add_block` for "real worse" and blocks of one size, without making a new state each time.

        What a block proves is divided by the design effect.
        """
        sim = (BETTER_PRIOR[0] + self.sim_successes) / (sum(BETTER_PRIOR) + self.blocks * SIM_BLOCK)
        real = (WORSE_PRIOR[0] + self.real_successes) / (sum(WORSE_PRIOR) + self.blocks * BLOCK)
        if sim > real:
            common = (SIM_PER_REAL * sim + real) / (SIM_PER_REAL + 1)
            shown = (
                sim_successes * log(sim / common)
                + (SIM_BLOCK - sim_successes) * log((1 - sim) / (1 - common))
                + real_successes * log(real / common)
                + (BLOCK - real_successes) * log((1 - real) / (1 - common))
            )
            self.log_e += shown / effect
        self.sim_successes += sim_successes
        self.real_successes += real_successes
        self.blocks += 1


@dataclass
class SimState:
    n: int = 0
    sim_successes: int = 0
    sim_n: int = 0
    started: int = 0
    filled: int = 0
    filled_successes: float = 0.0
    processes: list[SimProcess] = field(default_factory=list)
    # Since the last recovery, for the method that needs no pool.
    run_n: int = 0
    run_successes: float = 0.0
    since_n: int = 0
    since_successes: float = 0.0
    climb: Climb | None = None
    sessions: SessionSums = field(default_factory=SessionSums)
    # Bets on the means of sessions, once there are any.
    bets: LevelState | None = None
    spread: Spread = field(default_factory=Spread)

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def load(cls, stored: dict[str, Any]) -> SimState:
        processes = [SimProcess(**process) for process in stored["processes"]]
        climb, bets = stored["climb"], stored.get("bets")
        nested = {
            "processes": processes,
            "climb": None if climb is None else Climb(**climb),
            "sessions": SessionSums(**stored.get("sessions", {})),
            "bets": None if bets is None else LevelState.load(bets),
            "spread": Spread.load(stored["spread"]) if "spread" in stored else Spread(),
        }
        return cls(**(stored | nested))


def update_against_sim(
    watch: SimWatch,
    state: SimState,
    sim: tuple[int, int],
    outcomes: Sequence[float],
    days: Sequence[int] = (),
    shifts: Sequence[float] = (),
) -> list[Crossing]:
    """Update `state` with these real outcomes, given the sim successes and n so far. Return alarms and recoveries.

    Formula: blocks of 10 real and 50 sim episodes feed `sequential.add_block` ("real worse"). A process E_j starts
    with every 50th real episode; Σ_j E_j, the first with weight α·arl/50, is an e-detector on that grid:
    E[Σ] ≤ α·arl/50 + t/50 without a drop. Alarm when Σ ≥ arl/50. So the chance of a false alarm by episode t is at
    most α + t/arl: 2.5 % for the drop at deploy, then one in 30,000 episodes. Sim episodes are drawn without
    replacement in an order fixed by the seed, which is a random sample of them as a stored order is not.
    With fewer than 200 sim episodes: the confidence sequence of real lies below Wilson's interval of sim.
    The drop since the start of the strongest process must also exceed `above` by the lower limit of its interval.
    What a block proves, and the n of that interval, are divided by the design effect of `dispersion.Spread` where
    runs of episodes or days vary more than chance has them. `shifts` say by how much sim's own rate in the
    episode's cell of conditions lies above its mean: taken from the outcome, they leave what is lost in equal
    conditions. The change is the start of the strongest process, so to within 50.
    Recovery: as in `update_level`, against the level half way back to sim, and no more than `above` below it.
    Assumes independent episodes on each side while nothing changes. Source: Turner & Grünwald 2023; Shin, Ramdas &
    Rinaldo 2023 for the sum. Smallest n: 10 real and 50 sim episodes.
    """
    crossings: list[Crossing] = []
    state.sim_successes, state.sim_n = sim
    if not state.sim_n:
        state.n += len(outcomes)
        return crossings
    sim_rate = state.sim_successes / state.sim_n
    for index, x in enumerate(outcomes):
        number, state.n = state.n, state.n + 1
        shifted = x - shifts[index] if shifts else x
        if state.climb is not None:
            state.spread.add_alarmed(x, days[index] if days else None)
            evidence = state.climb.step(min(1.0, max(0.0, shifted)), 1, state.spread.certain_effect)
            if state.climb.is_over(evidence, watch.clear_arl):
                state.spread.end_alarm()
                crossings.append(sim_crossing("recovery", state, index, number, evidence, watch.clear_arl))
                state.filled, state.filled_successes, state.run_n, state.run_successes = 0, 0.0, 0, 0.0
                state.since_n, state.since_successes, state.climb = 0, 0.0, None
            continue
        is_calm = all(process.log_e < CALM_BELOW for process in state.processes)
        state.spread.add(x, days[index] if days else None, is_calm=is_calm)
        state.run_n += 1
        state.run_successes += shifted
        state.filled += 1
        state.filled_successes += shifted
        if state.filled < BLOCK:
            continue
        _add_block(watch, state, number)
        judgement = _judge(watch, state)
        if judgement is not None:
            evidence, threshold = judgement
            crossings.append(sim_crossing("breach", state, index, number, evidence, threshold))
            state.climb = Climb.after(sim_rate, sim_rate - watch.above, state.since_n, state.since_successes)
            state.processes = []
            state.spread.forget_waiting()
    return crossings


def against_sim_strength(state: SimState) -> float:
    return sum(process.value for process in state.processes)


def _add_block(watch: SimWatch, state: SimState, number: int) -> None:
    first = not state.processes
    if state.sim_n >= SMALLEST_POOL and (first or state.run_n % START_EVERY == BLOCK):
        weight = watch.alpha * watch.arl / START_EVERY if state.run_n == BLOCK and not state.started else 1.0
        n = min(LARGEST_POOL, state.sim_n)
        successes = state.sim_successes
        if n < state.sim_n:
            generator = np.random.Generator(np.random.Philox(key=[watch.seed & 0xFFFFFFFF, state.started]))
            successes = int(generator.hypergeometric(successes, state.sim_n - successes, n))
        state.processes.append(SimProcess(state.started, number + 1 - BLOCK, successes, n, weight))
        state.started += 1
        if len(state.processes) > MOST_PROCESSES:
            # Drop the oldest of those that have won least; leaving one out only makes alarms rarer.
            state.processes.remove(min(state.processes[:-1], key=lambda process: process.value))
    effect = state.spread.effect
    for process in list(state.processes):
        drawn = _draws(watch.seed & 0xFFFFFFFF, process.number, process.pool_successes, process.pool_n)
        if process.blocks < len(drawn):
            process.add(drawn[process.blocks], min(float(BLOCK), max(0.0, state.filled_successes)), effect)
        else:
            state.processes.remove(process)
    state.filled, state.filled_successes = 0, 0.0


def _judge(watch: SimWatch, state: SimState) -> tuple[float, float] | None:
    """The evidence and its threshold if there is a drop, with `since` set to the episodes that show it."""
    if state.sim_n < SMALLEST_POOL:
        effect = state.spread.effect
        successes = min(float(state.run_n), max(0.0, state.run_successes))
        _, high = confidence_sequence(successes / effect, state.run_n / effect, watch.alpha)
        low, _ = wilson(state.sim_successes, state.sim_n)
        state.since_n, state.since_successes = state.run_n, successes
        apart = high < low - watch.above
        return (low - high, 0.0) if apart else None
    evidence, threshold = against_sim_strength(state), watch.arl / START_EVERY
    if evidence < threshold:
        return None
    best = max(state.processes, key=lambda process: process.value)
    state.since_n, state.since_successes = best.real_n, best.real_successes
    return (evidence, threshold) if lowest_drop(state, state.spread.effect) > watch.above else None


def lowest_drop(state: SimState, effect: float) -> float:
    """The lower limit of the drop since the change: Newcombe's, at n by the design effect.

    99.7 %, one-sided: it is looked at after every block, from the start that shows most.
    """
    n = state.since_n / effect
    successes = min(n, max(0.0, state.since_successes / effect))
    sim, real = state.sim_successes / state.sim_n, successes / n
    return (
        sim
        - real
        - hypot(
            sim - wilson(state.sim_successes, state.sim_n, Z_CERTAIN)[0], wilson(successes, n, Z_CERTAIN)[1] - real
        )
    )


@lru_cache(maxsize=4096)
def _draws(seed: int, number: int, successes: int, n: int) -> tuple[int, ...]:
    """Successes of each block of 50, from a shuffle of the pool seeded by the seed and the process."""
    generator = np.random.Generator(np.random.Philox(key=[seed, number + (1 << 32)]))
    hits = (generator.permutation(n) < successes)[: n // SIM_BLOCK * SIM_BLOCK]
    return tuple(int(block) for block in hits.reshape(-1, SIM_BLOCK).sum(axis=1))


def sim_crossing(kind: Any, state: SimState, index: int, number: int, value: float, threshold: float) -> Crossing:
    n, successes = state.since_n, state.since_successes
    if kind == "recovery" and state.climb is not None:
        n, successes = state.climb.n, state.climb.total
    successes = min(float(n), max(0.0, successes))
    sessions = {} if state.bets is None else session_facts(state.sessions)
    effect = sessions["sessions"]["design_effect"] if sessions else state.spread.effect
    real = Side(int(successes), n) if effect == 1.0 else Side(round(successes / effect), max(1, round(n / effect)))
    drop = rate_drop(Side(state.sim_successes, state.sim_n), real)
    facts = {
        "reference": {"n": state.sim_n, "value": state.sim_successes / state.sim_n, "side": "sim"},
        "since": {"n": n, "value": successes / max(1, n)},
        "drop": {"value": drop.value, "interval": [drop.low, drop.high], "method": drop.method},
    }
    name = "two-sample e-process" if state.sim_n >= SMALLEST_POOL else "confidence sequence against sim"
    if state.bets is not None:
        name = "e-process over sessions"
    more = sessions or spread_facts(state.spread)
    return Crossing(kind, index, number, state.n - n, name, value, threshold, facts | more)
