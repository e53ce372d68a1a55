"""The figures of what happens over time."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
from drawing import GOOD, GREY, INK, REAL, WARN, Plot

from gapwatch.statistics.change.drift import (
    LevelState,
    LevelWatch,
    level_strength,
    update_level,
)
from gapwatch.statistics.change.onset import (
    DayCount,
    DayEvent,
    find_onset,
)
from gapwatch.statistics.estimates.sequential import EProcess, add_block


def draw_onset() -> str:
    generator = np.random.default_rng(12)
    start = date(2026, 8, 1)
    after = 38
    rates = np.where(np.arange(60) >= after, 0.7, 0.93)
    days = [DayCount(start + timedelta(days=i), int(generator.binomial(14, r)), 14) for i, r in enumerate(rates)]
    found = find_onset(days, 940, 1000, [DayEvent(start + timedelta(days=after), "release", "2.1.0")])
    plot = Plot(
        (0, 60),
        (0.3, 1.02),
        title=f"{found.verdict}: {found.reason.split('. ')[0]}",
        x_name="day",
        y_name="success a day",
    )
    plot.ticks((0, 20, 40, 60), (0.4, 0.6, 0.8, 1.0), y_form="{:.0%}")
    plot.dots(list(range(60)), [d.successes / d.n for d in days], REAL, 3)
    plausible = [(d - start).days for d in found.plausible_days]
    plot.band([min(plausible), max(plausible) + 0.5], [0.3, 0.3], [1.02, 1.02], WARN)
    plot.mark(after)
    plot.words(after - 2, 0.36, "release 2.1.0; shaded: when it may have begun", GREY, "end")
    return plot.svg()


def draw_sequential() -> str:
    generator = np.random.default_rng(9)
    runs, looks = 300, 365
    naive, anytime = np.zeros((2, runs, looks), dtype=bool)
    for run in range(runs):
        state = EProcess("different")
        sim, real = generator.binomial(10, 0.8, looks), generator.binomial(10, 0.8, looks)
        n = 10 * np.arange(1, looks + 1)
        a, b = np.cumsum(sim) / n, np.cumsum(real) / n
        pooled = (a + b) / 2
        naive[run] = np.abs(a - b) > 1.96 * np.sqrt(np.maximum(pooled * (1 - pooled), 1e-9) * 2 / n)
        for look in range(looks):
            state = add_block(
                state, sim_successes=int(sim[look]), sim_n=10, real_successes=int(real[look]), real_n=10
            )
            anytime[run, look] = state.decided()
    plot = Plot(
        (1, 365),
        (0, 0.6),
        title="No difference at all, looked at every day for a year: share of series that ever alarm",
        x_name="looks",
        x_log=True,
    )
    plot.ticks((1, 7, 30, 90, 365), (0, 0.05, 0.2, 0.4, 0.6), y_form="{:.0%}")
    xs = list(range(1, looks + 1))
    for alarms, colour, words, y in (
        (naive, WARN, "z-test at each look", 0.5),
        (anytime, GOOD, "e-process (shipped)", 0.11),
    ):
        plot.line(xs[::4], np.maximum.accumulate(alarms, axis=1).mean(axis=0)[::4].tolist(), colour)
        plot.words(1.3, y, words, colour)
    plot.line((1, 365), (0.05, 0.05), GREY, dashed=True)
    return plot.svg()


def draw_drift() -> str:
    generator = np.random.default_rng(21)
    outcomes = (generator.random(700) < np.repeat([0.9, 0.7], [500, 200])).astype(float).tolist()
    watch, state, path, alarm = LevelWatch(), LevelState(), [], None
    for value in outcomes:
        crossings = update_level(watch, state, [value])
        path.append(max(level_strength(state), 1.0))
        if crossings and alarm is None:
            alarm = crossings[0]
            path[-1] = alarm.value
    plot = Plot(
        (0, 700),
        (1, 3 * watch.arl),
        title="The statistic of a level that falls from 90 % to 70 % at episode 500",
        x_name="real episodes",
        y_log=True,
    )
    plot.ticks((0, 100, 300, 500, 700), (1, 100, 10_000), y_form="{:,.0f}")
    plot.line(list(range(700)), path, REAL)
    plot.line((0, 700), (watch.arl, watch.arl), WARN, dashed=True)
    plot.mark(500)
    if alarm is not None:
        plot.words(490, watch.arl / 3, f"alarm at {alarm.number}, change put at {alarm.change}", INK, "end")
    plot.words(10, watch.arl * 1.8, "average run length without a change", WARN)
    return plot.svg()
