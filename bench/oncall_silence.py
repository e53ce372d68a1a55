"""Silence pages a deployment-month, and how soon a death at work is told, over simulated clocks.

Arrivals of fleets with different hours go through the code that listens live (`watching/silence_replay.py`). The
time of learning is part of the count. A death takes all robots of a deployment at a random moment at work that
leaves at least as much work as it may take to tell; its delay is counted in working time, so that lunch is not.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.rhythm import BLOCK_HOURS, BLOCKS, ENOUGH_PAUSES
from gapwatch.watching.silence import Outage, RobotArrival
from gapwatch.watching.silence_replay import SilenceReplay

FIRST_DAY = date(2025, 9, 1)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MONTH = 365.25 / 12
LONGEST_PAUSE = 60.0
# Deaths are tried from here on: a whole week is known, and one more.
LEARNED = 14 * DAY
HOLIDAYS = {
    *(date(2025, 10, 3), date(2025, 10, 31), date(2026, 1, 6), date(2026, 4, 3), date(2026, 4, 6)),
    *(date(2026, 5, 1), date(2026, 5, 14), date(2026, 5, 25), date(2026, 6, 4)),
    *(date(2025, 12, 24) + day * DAY for day in range(9)),
}
Shifts = Callable[[date, int], Sequence[tuple[float, float]]]
"""From when until when a deployment works on a day (its number since the first), in local hours."""


@dataclass(frozen=True)
class World:
    """A fleet and what happens to it. Shares are chances a day."""

    name: str
    shifts: Shifts
    robots: int = 3
    gap_minutes: float = 6.0
    # Spread of a gap, in logarithms; None for gaps without memory.
    spread: float | None = 0.4
    zone: str = "Europe/Berlin"
    holidays: frozenset[date] = frozenset(HOLIDAYS)
    # How many minutes people begin and end earlier or later, each day anew.
    jitter_minutes: float = 10.0
    sick: float = 0.02
    day_off: float = 0.0
    pause: float = 0.0
    uplink_breaks: float = 0.0
    downtimes: float = 0.0
    repair_week: int | None = None
    batch: int = 1


@dataclass
class Past:
    """Arrivals of one deployment in order, when it was at work, and when the service was away."""

    arrivals: list[RobotArrival]
    work: list[tuple[datetime, datetime]]
    outages: list[Outage] = field(default_factory=list)


def week(*days: int, hours: Sequence[tuple[float, float]]) -> Shifts:
    return lambda day, _: hours if day.weekday() in days else ()


def simulate(world: World, days: int, rng: np.random.Generator) -> Past:
    zone, work = ZoneInfo(world.zone), []
    starts: list[list[tuple[datetime, str]]] = []
    for number in range(days):
        day = FIRST_DAY + number * DAY
        shifts = world.shifts(day, number)
        if day in world.holidays or rng.random() < world.day_off:
            continue
        spans = _worked_spans(world, shifts, day, zone, rng)
        if rng.random() < world.pause and spans:
            spans = _with_pause(spans, rng)
        work += spans
        for robot in range(world.robots):
            repairing = world.repair_week is not None and robot == 0 and number // 7 == world.repair_week
            if spans and not repairing and (world.robots == 1 or rng.random() >= world.sick):
                starts.append([(at, f"r{robot}") for span in spans for at in _cycle(world, span, rng)])
    finished = sorted(item for robot_day in starts for item in robot_day)
    outages = _outages(world.downtimes, days, rng)
    breaks = _outages(world.uplink_breaks, days, rng)
    arrivals = [
        RobotArrival(robot, 1, at - MINUTE, _received(at, [*outages, *breaks], rng)) for at, robot in finished
    ]
    arrivals.sort(key=lambda arrival: arrival.received_at)
    return Past(arrivals, sorted(work), outages)


def _worked_spans(
    world: World, shifts: Sequence[tuple[float, float]], day: date, zone: ZoneInfo, rng: np.random.Generator
) -> list[tuple[datetime, datetime]]:
    """The shifts of a day: it begins, ends and pauses a little earlier or later than planned."""
    edges = [_local(day, hour, zone) for shift in shifts for hour in shift]
    if not edges or edges[-1] - edges[0] >= DAY:
        return list(zip(edges[::2], edges[1::2], strict=True))
    off = rng.uniform(-world.jitter_minutes, world.jitter_minutes, len(edges) // 2 + 1)
    # A break moves as a whole.
    moved = [edge + float(off[(index + 1) // 2]) * MINUTE for index, edge in enumerate(edges)]
    return list(zip(moved[::2], moved[1::2], strict=True))


def _local(day: date, hour: float, zone: ZoneInfo) -> datetime:
    days, minutes = divmod(round(hour * 60), 24 * 60)
    return datetime.combine(day + days * DAY, time(*divmod(minutes, 60)), zone).astimezone(UTC)


def _with_pause(spans: Sequence[tuple[datetime, datetime]], rng: np.random.Generator) -> list[Any]:
    """Everybody pauses for 20 to 60 minutes at some time of the day."""
    cut = []
    chosen = int(rng.integers(len(spans)))
    for index, (start, end) in enumerate(spans):
        if index != chosen or end - start < 2 * HOUR:
            cut.append((start, end))
            continue
        at = start + rng.random() * (end - start - 90 * MINUTE)
        cut += [(start, at), (at + rng.uniform(20, LONGEST_PAUSE) * MINUTE, end)]
    return cut


def _cycle(world: World, span: tuple[datetime, datetime], rng: np.random.Generator) -> list[datetime]:
    """When one robot finishes episodes, `batch` of them at a time."""
    minutes = (span[1] - span[0]) / MINUTE
    if minutes <= 0:
        return []
    gap_minutes = world.gap_minutes * (3 if world.shifts is _slow_evenings and span[0].hour >= 15 else 1)
    n = max(4, round(3 * minutes / gap_minutes))
    if world.spread is None:
        gaps = rng.exponential(gap_minutes, n)
    else:
        gaps = gap_minutes * np.exp(rng.normal(-(world.spread**2) / 2, world.spread, n))
    ends = np.cumsum(gaps)
    return [span[0] + float(at) * MINUTE for at in ends[ends < minutes] for _ in range(world.batch)]


def _outages(per_day: float, days: int, rng: np.random.Generator) -> list[Outage]:
    """Five hours each, at any time; never in the first week, in which nothing pages anyway."""
    midnight = datetime.combine(FIRST_DAY, time(), UTC)
    chosen = [day for day in range(7, days) if rng.random() < per_day]
    return [Outage(at := midnight + (day + rng.random()) * DAY, at + 5 * HOUR) for day in chosen]


def _received(at: datetime, outages: Sequence[Outage], rng: np.random.Generator) -> datetime:
    """At once, or when the spool is flushed: senders come back within minutes."""
    for outage in outages:
        if outage.start <= at < outage.end:
            return outage.end + 2 * MINUTE + (at - outage.start) / 60 + rng.random() * MINUTE
    return at


def _second_shift(day: date, number: int) -> Sequence[tuple[float, float]]:
    if day.weekday() > 4:
        return ()
    return ((6, 14), (14, 22)) if number >= 60 else ((6, 14),)


def _slow_evenings(day: date, number: int) -> Sequence[tuple[float, float]]:
    return () if day.weekday() > 4 else ((8, 18), (18, 24))


def _overtime(day: date, number: int) -> Sequence[tuple[float, float]]:
    """Mon-Fri, every fourth Saturday morning, and a long evening every ninth day."""
    if day.weekday() == 5:
        return ((9, 13),) if number % 28 == 5 else ()
    return () if day.weekday() == 6 else ((8, 12), (12.75, 20.5 if number % 9 == 0 else 18))


PLAIN = week(0, 1, 2, 3, 4, hours=((8, 18),))
LUNCH = week(0, 1, 2, 3, 4, hours=((8, 12.25), (13, 18)))
ALWAYS = week(*range(7), hours=((0, 24),))
NONE: frozenset[date] = frozenset()
WORLDS = (
    World("working week, three robots", PLAIN, spread=None),
    World("working week with lunch and breaks", LUNCH, repair_week=10),
    World("working week, one robot", LUNCH, robots=1),
    World(
        "working week, short Fridays",
        lambda day, _: ((8, 14),) if day.weekday() == 4 else ((8, 18),) if day.weekday() < 4 else (),
    ),
    World("working week, overtime", _overtime),
    World("working week, begins when it likes", LUNCH, jitter_minutes=30),
    World("working week in Tokyo", LUNCH, zone="Asia/Tokyo"),
    World("working week, days off", LUNCH, day_off=0.05),
    World("working week, pauses at any time", LUNCH, pause=0.5),
    World("two shifts, Mon-Sat", week(*range(6), hours=((6, 14), (14.25, 22))), zone="America/Chicago"),
    World("a second shift from day 60", _second_shift),
    World("24/7", ALWAYS, spread=None, gap_minutes=10, holidays=NONE),
    World("24/7, one robot", ALWAYS, robots=1, spread=None, gap_minutes=10, holidays=NONE),
    World("24/5", week(0, 1, 2, 3, 4, hours=((0, 24),))),
    World("weekends only", week(5, 6, hours=((9, 17),))),
    World("few episodes a day", PLAIN, robots=1, spread=None, gap_minutes=100),
    World("slow evenings", _slow_evenings, robots=1, spread=None, gap_minutes=4),
    World("batches once an hour", PLAIN, robots=2, gap_minutes=60, spread=0.1, batch=40),
    World("own downtime of five hours, monthly", LUNCH, downtimes=1 / 30),
    World("uplink breaks of five hours, monthly", LUNCH, uplink_breaks=1 / 30),
)


@dataclass
class Outcome:
    """What one world cost and how soon deaths were told."""

    world: str
    months: float
    pages: int = 0
    infos: int = 0
    delays: list[float] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)

    @property
    def pages_a_month(self) -> float:
        return self.pages / self.months

    @property
    def told_in_time(self) -> float:
        return float(np.mean([delay <= bound for delay, bound in zip(self.delays, self.bounds, strict=True)]))

    def row(self) -> dict[str, Any]:
        median, late = np.quantile(self.delays, [0.5, 0.95], method="higher")
        return {
            "world": self.world,
            "deployment_months": round(self.months, 1),
            "pages_a_month": round(self.pages_a_month, 3),
            "infos_a_month": round(self.infos / self.months, 1),
            "deaths": len(self.delays),
            "bound_minutes": round(float(np.median(self.bounds))),
            "delay_minutes": _minutes(median),
            "delay_minutes_95": _minutes(late),
            "told_in_time": round(self.told_in_time, 3),
        }


def _minutes(delay: float) -> int | None:
    return None if np.isinf(delay) else round(float(delay))


def measure(world: World, days: int, runs: int, deaths: int, seed: int) -> Outcome:
    outcome = Outcome(world.name, runs * days / MONTH)
    for run in range(runs):
        rng = np.random.default_rng([seed, run, sum(map(ord, world.name))])
        past = simulate(world, days, rng)
        usual = [LONGEST_PAUSE] * BLOCKS if world.pause else _usual_minutes(past)
        died = _deaths(past, deaths, usual, rng)
        outcome.bounds += [_bound(usual, at) for at in died]
        _follow(past, died, outcome)
    return outcome


def _bound(usual_minutes: Sequence[float], at: datetime) -> float:
    """Half an hour and three times the usual gap at that time of the day."""
    return 30.0 + 3 * usual_minutes[at.hour // BLOCK_HOURS]


def _usual_minutes(past: Past) -> list[float]:
    """The gap at work that one in a hundred exceeds, of the deployment, for every four hours of the day."""
    times = [arrival.received_at for arrival in past.arrivals]
    gaps: list[list[float]] = [[] for _ in range(BLOCKS)]
    for start, end in past.work:
        for before, after in pairwise(times[_place(times, start) : _place(times, end)]):
            if after - before >= MINUTE:
                gaps[before.hour // BLOCK_HOURS].append((after - before) / MINUTE)
    whole = [gap for block in gaps for gap in block] or [0.0]
    return [float(np.quantile(block if len(block) >= ENOUGH_PAUSES else whole, 0.99)) for block in gaps]


def _place(times: Sequence[datetime], at: datetime) -> int:
    return bisect_left(times, at)


def _deaths(past: Past, n: int, usual_minutes: Sequence[float], rng: np.random.Generator) -> list[datetime]:
    """Moments at work that leave enough work to notice."""
    begin = past.arrivals[0].received_at + LEARNED
    work = [(a, b) for a, b in past.work if a > begin]
    spans = [(a, b - _bound(usual_minutes, a) * MINUTE) for a, b in work]
    spans = [(a, b) for a, b in spans if b > a + 10 * MINUTE] or work
    away = [(outage.start, outage.end + 3 * HOUR) for outage in past.outages]
    chosen = []
    for index in rng.integers(len(spans), size=n):
        start, end = spans[index]
        at = start + 5 * MINUTE + rng.random() * (end - start - 5 * MINUTE)
        if not any(a - HOUR < at < b for a, b in away):
            chosen.append(at)
    return sorted(chosen)


def _follow(past: Past, deaths: Sequence[datetime], outcome: Outcome) -> None:
    excused = [outage.excused for outage in past.outages]
    replay = SilenceReplay(NoDataParams(), excused)
    left = list(deaths)
    for arrival in past.arrivals:
        while left and arrival.received_at > left[0]:
            outcome.delays.append(_delay(replay, left.pop(0), past))
        replay.hear(arrival)
    outcome.pages += sum(silence.paged_at is not None for silence in replay.silences)
    outcome.infos += sum(silence.paged_at is None for silence in replay.silences)


def _delay(replay: SilenceReplay, died_at: datetime, past: Past) -> float:
    """Working minutes from the last episode until the page; infinite if none came within ten days."""
    trial = replay.fork()
    trial.end(died_at + 10 * DAY)
    pages = [silence.paged_at for silence in trial.silences if silence.paged_at and silence.cleared_at is None]
    if not pages:
        return float("inf")
    return max(0.0, _worked(past, died_at, max(pages)) / MINUTE)


def _worked(past: Past, start: datetime, end: datetime) -> timedelta:
    spans = [(max(a, start), min(b, end)) for a, b in past.work if a < end and b > start]
    return sum((b - a for a, b in spans), timedelta(0))


def silence_table(
    *, days: int = 183, runs: int = 4, deaths: int = 25, seed: int = 15, worlds: Sequence[World] = WORLDS
) -> list[dict[str, Any]]:
    """One row a world: pages a deployment-month and delays of deaths at work."""
    return [measure(world, days, runs, deaths, seed).row() for world in worlds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--deaths", type=int, default=25)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(
        f"{'world':42}{'months':>8}{'pages/month':>13}{'info/month':>12}{'bound':>7}{'delay (95 %)':>16}{'in time':>9}"
    )
    rows = []
    for world in WORLDS:
        if options.only not in world.name:
            continue
        row = measure(world, options.days, options.runs, options.deaths, 15).row()
        rows.append(row)
        delay = f"{row['delay_minutes']} ({row['delay_minutes_95']})"
        print(
            f"{row['world']:42}{row['deployment_months']:>8}{row['pages_a_month']:>13}{row['infos_a_month']:>12}"
            f"{row['bound_minutes']:>7}{delay:>16}{row['told_in_time']:>9.0%}",
            flush=True,
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
