"""Deployment-months as they happen: streams on which nothing is wrong, and streams with a fault.

A month has 3,000 episodes of five robots. Times are made up, nobody waits for them. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.sim_mix import SimCell

Array = NDArray[np.float64]
# A Monday.
START = datetime(2026, 6, 1, tzinfo=UTC)
DAYS, EPISODES, ROBOTS = 30, 3000, 5
RATE, SIM_N = 0.87, 2000
EASY_RATE, HARD_RATE = 0.95, 0.75
# Where a fault begins, and for how many episodes it is looked for.
FAULT_AT, FAULT_FOR = 1000, 1500


@dataclass(frozen=True)
class Clock:
    """When episodes are made: the hours of a day, and the days of a week."""

    name: str
    first_hour: float
    last_hour: float
    days_of_week: int

    def times_s(self, rng: np.random.Generator, n: int) -> Array:
        """Seconds since the start of `n` episodes in one month, in order."""
        days = np.array([day for day in range(DAYS) if day % 7 < self.days_of_week])
        day = np.sort(rng.integers(len(days), size=n))
        hour = self.first_hour + (self.last_hour - self.first_hour) * rng.random(n)
        return np.sort(days[day] * 86_400.0 + hour * 3600.0)


WORKING_WEEK = Clock("working week", 8, 18, 5)
ROUND_THE_CLOCK = Clock("24/7", 0, 24, 7)


@dataclass
class Stream:
    """Episodes as columns. `rate` is the chance of success of each."""

    times_s: Array
    robot: NDArray[np.int64]
    rate: Array
    session: list[str] | None = None
    hard: NDArray[np.bool_] | None = None
    sim_hard_share: float | None = None
    sim_rate: float = RATE

    @property
    def day(self) -> NDArray[np.int64]:
        return (self.times_s // 86_400).astype(np.int64)

    @property
    def hour(self) -> Array:
        return self.times_s % 86_400 / 3600


Make = Callable[[np.random.Generator, Clock], Stream]


def logit(p: Array | float) -> Array:
    return np.asarray(np.log(np.asarray(p) / (1 - np.asarray(p))))


def expit(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def centred(x: Array, mean: float = RATE) -> Array:
    """Chances of log-odds x, moved so that their mean over the month is the given one."""
    low, high = -10.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(x + middle).mean() < mean else (low, middle)
    return expit(x + low)


def plain(rng: np.random.Generator, clock: Clock, n: int = EPISODES) -> Stream:
    return Stream(clock.times_s(rng, n), rng.integers(ROBOTS, size=n), np.full(n, RATE))


def _beta(rng: np.random.Generator, icc: float, size: int) -> Array:
    spread = (1 - icc) / icc
    return rng.beta(RATE * spread, (1 - RATE) * spread, size=size)


def sittings(rng: np.random.Generator, clock: Clock, *, named: bool, size: int = 10, icc: float = 0.1) -> Stream:
    """Each robot works in sittings of ten episodes, five minutes apart; robots side by side."""
    hours = [
        day * 24 + hour
        for day in range(DAYS)
        if day % 7 < clock.days_of_week
        for hour in range(int(clock.first_hour), int(clock.last_hour))
    ]
    n = EPISODES // size
    robot = np.repeat(np.arange(ROBOTS), n // ROBOTS)
    begins = np.concatenate([rng.choice(hours, n // ROBOTS, replace=False) for _ in range(ROBOTS)]) * 3600.0
    begins += 300.0 * rng.random(n)
    times_s = (begins[:, None] + 300.0 * np.arange(size)).ravel()
    order = np.argsort(times_s, kind="stable")
    own, which = _beta(rng, icc, n), np.repeat(np.arange(n), size)[order]
    names = [f"s{i}" for i in which] if named else None
    return Stream(times_s[order], robot[which], own[which], names)


def blocks(rng: np.random.Generator, clock: Clock, size: int = 10, icc: float = 0.1) -> Stream:
    """Sittings of ten that nobody names, one after the other."""
    stream = plain(rng, clock)
    block = np.arange(EPISODES) // size
    stream.robot = rng.integers(ROBOTS, size=block[-1] + 1)[block]
    stream.rate = _beta(rng, icc, block[-1] + 1)[block]
    return stream


def day_effects(sd: float) -> Make:
    def make(rng: np.random.Generator, clock: Clock) -> Stream:
        stream = plain(rng, clock)
        stream.rate = centred(logit(RATE) + sd * rng.standard_normal(DAYS)[stream.day])
        return stream

    return make


def autocorrelated(rng: np.random.Generator, clock: Clock, rho: float = 0.95, sd: float = 0.5) -> Stream:
    """Log-odds wander around their mean, episode by episode."""
    stream = plain(rng, clock)
    x, latent = rng.standard_normal() * sd, np.empty(EPISODES)
    for i, step in enumerate(rng.standard_normal(EPISODES)):
        x = rho * x + sd * np.sqrt(1 - rho**2) * step
        latent[i] = x
    stream.rate = centred(logit(RATE) + latent)
    return stream


def weekend(rng: np.random.Generator, clock: Clock) -> Stream:
    stream = plain(rng, clock)
    off = stream.day % 7 >= 5
    stream.rate = np.where(off, RATE - 0.08, RATE)
    stream.sim_rate = float(stream.rate.mean())
    return stream


def night_shift(rng: np.random.Generator, clock: Clock) -> Stream:
    stream = plain(rng, clock)
    night = (stream.hour >= 22) | (stream.hour < 6)
    stream.rate = np.where(night, RATE - 0.1, RATE)
    stream.sim_rate = float(stream.rate.mean())
    return stream


def rotating(rng: np.random.Generator, clock: Clock, at_work: int = 3) -> Stream:
    """Three of five unequal robots at a time, others every ten days. Sim is like the five together."""
    stream = plain(rng, clock)
    rates = np.linspace(0.78, 0.95, ROBOTS)
    for period in range(3):
        of_period = np.flatnonzero(stream.day // 10 == period)
        chosen = rng.choice(ROBOTS, size=at_work, replace=False)
        stream.robot[of_period] = rng.choice(chosen, size=len(of_period))
    stream.rate, stream.sim_rate = rates[stream.robot], float(rates.mean())
    return stream


def small_drop(rng: np.random.Generator, clock: Clock) -> Stream:
    stream = plain(rng, clock)
    stream.rate = np.full(EPISODES, RATE - 0.03)
    return stream


def other_mix(rng: np.random.Generator, clock: Clock) -> Stream:
    """Equal rates under each level: 95 % easy, 75 % hard. Sim has 20 % hard ones, reality 45 %."""
    return _by_level(plain(rng, clock), rng, 0.45)


def _by_level(stream: Stream, rng: np.random.Generator, share: float) -> Stream:
    stream.hard = rng.random(len(stream.rate)) < share
    stream.rate = np.where(stream.hard, HARD_RATE, EASY_RATE)
    stream.sim_hard_share = 0.2
    return stream


def changing_mix(rng: np.random.Generator, clock: Clock) -> Stream:
    """Hard ones become more frequent in reality: 20 % in the first ten days, then 45 %. Rates stay."""
    stream = plain(rng, clock)
    return _by_level(stream, rng, np.where(stream.day < 10, 0.2, 0.45))  # type: ignore[arg-type]


def new_level(rng: np.random.Generator, clock: Clock) -> Stream:
    """Hard ones, which sim has, come to reality on day 10."""
    stream = plain(rng, clock)
    return _by_level(stream, rng, np.where(stream.day < 10, 0.0, 0.45))  # type: ignore[arg-type]


def sittings_of_levels(rng: np.random.Generator, clock: Clock) -> Stream:
    """Named sittings, ICC .1, of which some are hard: 20 % in the first ten days, then 45 %."""
    stream = sittings(rng, clock, named=True)
    assert stream.session is not None
    names = list(dict.fromkeys(stream.session))
    drawn = dict(zip(names, rng.random(len(names)), strict=True))
    own = np.array([drawn[name] for name in stream.session])
    ease = logit(np.clip(stream.rate, 0.01, 0.99)) - float(logit(RATE))
    stream.hard = own < np.where(stream.day < 10, 0.2, 0.45)
    stream.rate = expit(np.where(stream.hard, float(logit(HARD_RATE)), float(logit(EASY_RATE))) + ease)
    stream.sim_hard_share = 0.2
    return stream


@dataclass(frozen=True)
class World:
    name: str
    make: Make
    clocks: tuple[Clock, ...] = (WORKING_WEEK, ROUND_THE_CLOCK)


NULL_WORLDS = (
    World("independent", plain),
    World("sessions named, ICC .1", lambda rng, clock: sittings(rng, clock, named=True)),
    World("sessions not named, robots in turn", blocks),
    World("sessions not named, robots side by side", lambda rng, clock: sittings(rng, clock, named=False)),
    World("days, logit sd .2", day_effects(0.2)),
    World("days, logit sd .35", day_effects(0.35)),
    World("days, logit sd .7", day_effects(0.7)),
    World("autocorrelation .95", autocorrelated),
    World("weekend −8", weekend, (ROUND_THE_CLOCK,)),
    World("night shift −10", night_shift, (ROUND_THE_CLOCK,)),
    World("robots rotate every 10 days", rotating),
    World("drop of 3, rule says 5", small_drop),
    World("sim 20 % hard, real 45 %", other_mix),
    World("hard 20 % → 45 % on day 10", changing_mix),
    World("hard 0 % → 45 % on day 10", new_level),
    World("sessions named, ICC .3", lambda rng, clock: sittings(rng, clock, named=True, icc=0.3)),
    World("sessions named, hard 20 % → 45 %", sittings_of_levels),
)


@dataclass(frozen=True)
class Fault:
    name: str
    # Points lost from the beginning of the fault on, by the number of episodes since.
    loss: Callable[[Stream, Array], Array]
    levels: bool = False


def _step(points: float) -> Fault:
    return Fault(f"step −{points:.0f}", lambda stream, since: np.full(len(since), points / 100))


FAULTS = (
    *(_step(points) for points in (10, 15, 20, 25, 30)),
    Fault("ramp −20 over 1,000", lambda stream, since: 0.2 * np.minimum(1.0, since / 1000)),
    Fault("one robot of five −25", lambda stream, since: 0.25 * (stream.robot == 2)),
    Fault("one condition level −25", lambda stream, since: 0.25 * _hard(stream), levels=True),
)


def _hard(stream: Stream) -> Array:
    assert stream.hard is not None
    return stream.hard.astype(float)


def with_fault(fault: Fault, world: Make, rng: np.random.Generator, clock: Clock) -> Stream:
    stream = world(rng, clock)
    if fault.levels:
        stream = _by_level(stream, rng, 0.2)
    since = np.arange(len(stream.rate)) - FAULT_AT
    loss = np.where(since >= 0, fault.loss(stream, np.maximum(0, since)), 0.0)
    stream.rate = np.clip(stream.rate - loss, 0.02, 1.0)
    return stream


def episodes_of(stream: Stream, rng: np.random.Generator, n: int | None = None) -> list[SeenEpisode]:
    success = rng.random(len(stream.rate)) < stream.rate
    found = []
    for i in range(len(stream.rate) if n is None else n):
        at = START + timedelta(seconds=float(stream.times_s[i]))
        found.append(
            SeenEpisode(
                f"e{i}",
                at,
                at,
                "success" if success[i] else "failure",
                policy_id=1,
                stage="full",
                robot=f"robot-{stream.robot[i]}",
                session=None if stream.session is None else stream.session[i],
                levels={} if stream.hard is None else {"case": "hard" if stream.hard[i] else "easy"},
            )
        )
    return found


def sim_of(stream: Stream, rng: np.random.Generator) -> list[SimCell]:
    """The simulation, as it happens to come out, by the level of its condition."""
    if stream.sim_hard_share is None:
        return [SimCell({}, int(rng.binomial(SIM_N, stream.sim_rate)), SIM_N)]
    hard = round(SIM_N * stream.sim_hard_share)
    return [
        SimCell({"case": "hard"}, int(rng.binomial(hard, HARD_RATE)), hard),
        SimCell({"case": "easy"}, int(rng.binomial(SIM_N - hard, EASY_RATE)), SIM_N - hard),
    ]
