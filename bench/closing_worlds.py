"""Worlds in which a fix did nothing, or fifteen points: episodes before and after, as a fix's closure reads them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from gapwatch.statistics.closing.closure import PeriodCounts

Units = dict[Hashable, PeriodCounts]
CONDITIONS = ("plain", "hard")
# What a hard condition costs, and how much robots truly differ (sd).
HARD_COSTS, ROBOTS_DIFFER = 0.25, 0.06


@dataclass(frozen=True)
class World:
    """`units` of `days` × `each` episodes on both sides; the fix is of one of them, the rest did not get it.

    `alike` is the ICC within a robot's day, `days_differ` the sd of a day that all units share. `mix` is the share
    of hard conditions before and after, `drift` what everything changes by meanwhile. `picked`: the fix is of the
    unit that did worst before; else of the first. `has_control`: whether the others are compared with.
    """

    name: str
    units: int = 1
    days: int = 14
    each: int = 15
    rate: float = 0.8
    alike: float = 0.0
    days_differ: float = 0.0
    mix: tuple[float, float] = (0.3, 0.3)
    drift: float = 0.0
    differ: float = 0.0
    picked: bool = False
    has_control: bool = True


WORLDS = (
    World("iid, no control", 1),
    World("robot-days alike, ICC 0.1, no control", 1, rate=0.7, days=20, alike=0.1),
    World("days differ (sd 6), three robots as control", 4, days_differ=0.06),
    World("robot-days alike, ICC 0.1, three robots as control", 4, rate=0.7, alike=0.1, differ=ROBOTS_DIFFER),
    World("hard conditions 20 % → 50 %", 3, mix=(0.2, 0.5)),
    World("everything falls by 8 points", 4, drift=-0.08),
    World("everything rises by 8, robot-days alike", 6, rate=0.65, drift=0.08, alike=0.05, differ=ROBOTS_DIFFER),
    World("worst of 12 slices × 30", 12, days=1, each=30, mix=(0.0, 0.0), picked=True),
    World("worst of 12 slices × 100", 12, days=5, each=20, mix=(0.0, 0.0), picked=True),
    World("worst of 6 slices × 20", 6, days=1, each=20, mix=(0.0, 0.0), picked=True),
    World("worst of 5 robots that differ (sd 6)", 5, differ=ROBOTS_DIFFER, picked=True),
    World("worst of 4 deployments, others not compared with", 4, picked=True, has_control=False),
    World(
        "all at once",
        6,
        alike=0.05,
        days_differ=0.03,
        mix=(0.2, 0.4),
        drift=-0.06,
        differ=ROBOTS_DIFFER,
        picked=True,
    ),
)


@dataclass(frozen=True)
class Trial:
    """What one fix left behind; `regained` is by how much the treated unit's crude rate rose."""

    treated: Units
    others: Units
    regained: float


def play(world: World, random: np.random.Generator, effect: float = 0.0) -> Trial:
    """One fix in a world, whose treated unit gains `effect` afterwards."""
    own = random.normal(0.0, world.differ, world.units) if world.differ else np.zeros(world.units)
    level = world.rate + own
    before = [_period(world, random, rate, world.mix[0], _days(world, random)) for rate in _once(level)]
    crude = [sum(k for k, _ in one.robot_days) / sum(n for _, n in one.robot_days) for one in before]
    chosen = int(np.argmin(crude)) if world.picked else 0
    gained = np.where(np.arange(world.units) == chosen, effect, 0.0)
    shared = _days(world, random)
    after = [_period(world, random, rate, world.mix[1], shared) for rate in _once(level + world.drift + gained)]
    units = {
        number: _counts(first, second) for number, (first, second) in enumerate(zip(before, after, strict=True))
    }
    treated: Units = {chosen: units.pop(chosen)}
    mine = after[chosen].robot_days
    regained = sum(k for k, _ in mine) / sum(n for _, n in mine) - crude[chosen]
    return Trial(treated, dict(units), regained)


@dataclass(frozen=True)
class _Period:
    by_condition: Mapping[str, tuple[int, int]]
    robot_days: list[tuple[int, int]]


def _once(level: np.ndarray) -> list[float]:
    return [float(rate) for rate in level]


def _days(world: World, random: np.random.Generator) -> np.ndarray:
    return random.normal(0.0, world.days_differ, world.days) if world.days_differ else np.zeros(world.days)


def _period(world: World, random: np.random.Generator, rate: float, hard: float, days: np.ndarray) -> _Period:
    sums = {name: [0, 0] for name in CONDITIONS}
    robot_days = []
    for day in range(world.days):
        is_hard = random.random(world.each) < hard
        chance = np.clip(rate + days[day] - HARD_COSTS * is_hard, 0.02, 0.98)
        if world.alike:
            middle = float(chance.mean())
            chance = np.clip(chance + random.normal(0, np.sqrt(world.alike * middle * (1 - middle))), 0.02, 0.98)
        succeeded = random.random(world.each) < chance
        for name, mask in zip(CONDITIONS, (~is_hard, is_hard), strict=True):
            sums[name][0] += int(succeeded[mask].sum())
            sums[name][1] += int(mask.sum())
        robot_days.append((int(succeeded.sum()), world.each))
    return _Period({name: (k, n) for name, (k, n) in sums.items()}, robot_days)


def _counts(before: _Period, after: _Period) -> PeriodCounts:
    strata = {
        (name,): (*before.by_condition[name], *after.by_condition[name])
        for name in CONDITIONS
        if before.by_condition[name][1] or after.by_condition[name][1]
    }
    return PeriodCounts(strata, ([before.robot_days], [after.robot_days]))
