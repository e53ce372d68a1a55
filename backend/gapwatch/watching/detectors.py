"""One shape for every detector: takes values in order, tells what came true, and can be stored as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol
from zlib import crc32

from gapwatch.statistics.change import (
    cusum,
    drift,
    drift_against_sim,
    drift_by_sessions,
    drift_shape,
    strata,
)
from gapwatch.statistics.change.drift import Crossing, RobotLimit
from gapwatch.statistics.change.drift_by_sessions import SessionPart
from gapwatch.statistics.change.strata import Circumstance


class Detector(Protocol):
    @property
    def n(self) -> int: ...

    @property
    def is_alarmed(self) -> bool: ...

    def candidates(self) -> list[int]:
        """Numbers of episodes that may still be named: possible changes, and the end of the reference."""

    def update(self, values: Sequence[float]) -> list[Crossing]: ...

    def restart(self) -> None:
        """Forget an alarm: the evidence begins anew, what was learned stays."""

    def dump(self) -> dict[str, Any]: ...


class LevelDetector:
    """A number from 0 to 1 against its own past, or against a limit."""

    def __init__(self, watch: drift.LevelWatch, stored: dict[str, Any] | None) -> None:
        self.watch = watch
        self.state = drift.LevelState() if stored is None else drift.LevelState.load(stored)

    @property
    def n(self) -> int:
        return self.state.n

    @property
    def is_alarmed(self) -> bool:
        return self.state.climb is not None

    def candidates(self) -> list[int]:
        return [*self.state.began, self.state.reference_end]

    def update(
        self,
        values: Sequence[float],
        circumstances: Sequence[Circumstance] = (),
        limits: Sequence[RobotLimit] | None = None,
        robot_limits: list[RobotLimit] | None = None,
    ) -> list[Crossing]:
        return drift.update_level(self.watch, self.state, values, circumstances, limits, robot_limits)

    def update_by_sessions(
        self,
        parts: Sequence[SessionPart],
        limits: Sequence[RobotLimit] | None = None,
        robot_limits: list[RobotLimit] | None = None,
    ) -> list[Crossing]:
        return drift_by_sessions.update_level_by_sessions(self.watch, self.state, parts, limits, robot_limits)

    @property
    def compares_strata_next(self) -> bool:
        """Whether the next episode of a session makes strata be compared, with what all before it have taught."""
        return (self.state.strata.learned + 1) % strata.LEARN_EVERY == 0

    def expect_in_session(self, here: Circumstance, value: float) -> float:
        """By how much an episode of a session is expected above the reference. Its strata are learned from."""
        watch, state = self.watch, self.state
        if watch.limit is not None or not watch.learns:
            return 0.0
        shift = state.strata.shift_at(here)
        known = drift.session_facts(state.sessions).get("sessions") if self.compares_strata_next else None
        alike = 1.0 if known is None else known["design_effect"]
        y = 1 - value if watch.worse == "higher" else value
        is_complete = state.strata.learned >= watch.learn_to
        state.strata.learn(here.strata, y, state.reference_value, alike, is_complete=is_complete)
        return shift

    def unnamed_clusters(self) -> tuple[str, float] | None:
        """What differs for certain where no session is named: days or runs of episodes, and the design effect."""
        return None if self.state.sessions.sessions else self.state.spread.clusters

    def part_size(self) -> int:
        # The first session is not yet one of several: many a deployment names one for ever.
        return drift_by_sessions.part_size(self.state.sessions) if self.state.sessions.sessions else 0

    def restart(self) -> None:
        state = self.state
        state.climb, state.since_n, state.since_total = None, 0, 0.0
        state.strength, state.best, state.walks = [0.0] * 4, [0.0] * 4, [0.0] * 4
        state.began, state.before = [state.n] * 4, [state.total] * 4

    def dump(self) -> dict[str, Any]:
        return asdict(self.state)


class RankDetector:
    """Any number, by its rank in a reference."""

    def __init__(self, watch: drift_shape.ShapeWatch, stored: dict[str, Any] | None) -> None:
        self.watch = watch
        self.state = drift_shape.ShapeState.load(stored or {})

    @property
    def n(self) -> int:
        return self.state.n

    @property
    def is_alarmed(self) -> bool:
        return self.state.alarmed

    @property
    def has_learned(self) -> bool:
        return bool(self.state.grid)

    @property
    def strength(self) -> float:
        return drift_shape.shape_strength(self.state)

    def candidates(self) -> list[int]:
        # While it learns, any tenth of its values may be where the reference changed.
        within = [] if self.state.within is None else [self.state.within[0]]
        if not self.state.grid:
            within = list(range(0, self.watch.learn, drift_shape.DATED_TO))
        return [*self.state.began, *within, self.watch.learn - 1]

    def update(self, values: Sequence[float], days: Sequence[int] = ()) -> list[Crossing]:
        return drift_shape.update_shape(self.watch, self.state, values, days)

    def update_block(self, values: Sequence[float]) -> list[Crossing]:
        return drift_shape.update_shape_block(self.watch, self.state, values)

    def declare(self, index: int, threshold: float) -> Crossing:
        return drift_shape.declare_shape(self.watch, self.state, index, threshold)

    def restart(self) -> None:
        if self.state.alarmed:
            drift_shape.restart_shape(self.state, alarmed=False)

    def dump(self) -> dict[str, Any]:
        return asdict(self.state)


class CusumDetector:
    """A number that is near normal, in deviations from its mean."""

    def __init__(self, watch: cusum.CusumWatch, stored: dict[str, Any] | None) -> None:
        self.watch = watch
        self.state = cusum.CusumState(**(stored or {}))

    @property
    def n(self) -> int:
        return self.state.n

    @property
    def is_alarmed(self) -> bool:
        return self.state.alarmed

    def candidates(self) -> list[int]:
        return [*self.state.began, self.watch.learn - 1]

    def update(self, values: Sequence[float]) -> list[Crossing]:
        return cusum.update_cusum(self.watch, self.state, values)

    def restart(self) -> None:
        if self.state.alarmed:
            cusum.restart_cusum(self.state, alarmed=False)

    def dump(self) -> dict[str, Any]:
        return asdict(self.state)


class SimDetector:
    """Success against the sim episodes of the same policy version and task."""

    def __init__(self, watch: drift_against_sim.SimWatch, stored: dict[str, Any] | None) -> None:
        self.watch = watch
        self.state = drift_against_sim.SimState() if stored is None else drift_against_sim.SimState.load(stored)
        self.sim = (self.state.sim_successes, self.state.sim_n)

    @property
    def n(self) -> int:
        return self.state.n

    @property
    def is_alarmed(self) -> bool:
        return self.state.climb is not None

    def candidates(self) -> list[int]:
        # A process begins with a block, and is made when the block is full.
        state = self.state
        if state.bets is not None:
            return list(state.bets.began)
        return [*(process.began for process in state.processes), state.n - state.filled, state.n - state.run_n]

    def update(
        self, values: Sequence[float], days: Sequence[int] = (), shifts: Sequence[float] = ()
    ) -> list[Crossing]:
        if self.state.bets is not None:
            moved = shifts or [0.0] * len(values)
            parts = [SessionPart(value, 1, shift=shift) for value, shift in zip(values, moved, strict=True)]
            return self.update_by_sessions(parts)
        return drift_against_sim.update_against_sim(self.watch, self.state, self.sim, values, days, shifts)

    def update_by_sessions(self, parts: Sequence[SessionPart]) -> list[Crossing]:
        return drift_by_sessions.update_against_sim_by_sessions(self.watch, self.state, self.sim, parts)

    def part_size(self) -> int:
        return drift_by_sessions.part_size(self.state.sessions)

    def forget_processes(self) -> None:
        """Another policy version has another simulation: what was shown against the old one says nothing."""
        state = self.state
        state.processes, state.filled, state.filled_successes = [], 0, 0.0
        state.run_n, state.run_successes = 0, 0.0
        if state.bets is not None:
            state.bets = drift_by_sessions.fresh_bets(state.n)

    def restart(self) -> None:
        self.state.climb = None
        self.forget_processes()

    def dump(self) -> dict[str, Any]:
        return self.state.dump()


@dataclass
class SevereState:
    n: int = 0
    calm: int = 0
    alarmed: bool = False
    seen: int = 0


class SevereDetector:
    """A single episode is enough; over when so many passed without another."""

    def __init__(self, severe: int, clear_episodes: int, stored: dict[str, Any] | None) -> None:
        self.severe, self.clear_episodes = severe, clear_episodes
        self.state = SevereState(**(stored or {}))

    @property
    def n(self) -> int:
        return self.state.n

    @property
    def is_alarmed(self) -> bool:
        return self.state.alarmed

    def candidates(self) -> list[int]:
        return []

    def update(self, values: Sequence[float]) -> list[Crossing]:
        state, crossings = self.state, []
        for index, value in enumerate(values):
            number, state.n = state.n, state.n + 1
            if value >= self.severe:
                state.calm, state.seen = 0, state.seen + 1
                if not state.alarmed:
                    state.alarmed, state.seen = True, 1
                    facts = {"since": {"n": 1, "value": value}, "severe": self.severe}
                    crossings.append(
                        Crossing("breach", index, number, number, "single episode", value, self.severe, facts)
                    )
            elif state.alarmed:
                state.calm += 1
                if state.calm >= self.clear_episodes:
                    state.alarmed = False
                    facts = {"since": {"n": state.calm, "value": 0.0}, "seen": state.seen}
                    began = number + 1 - state.calm
                    crossings.append(
                        Crossing("recovery", index, number, began, "single episode", 0.0, self.severe, facts)
                    )
        return crossings

    def restart(self) -> None:
        self.state.alarmed, self.state.calm = False, 0

    def dump(self) -> dict[str, Any]:
        return asdict(self.state)


def seed_of(*words: object) -> int:
    """A number that is the same for the same words in every process."""
    return crc32("/".join(map(str, words)).encode())
