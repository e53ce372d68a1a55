"""How soon a fall in success is found at equal false alarms: our detectors, river's, and a repeated z-test.

Each detector's sensitivity is set so that the same share of unchanged series alarms; then all see the same falls.
River's detectors and the z-test make no promise about repeated looks, so their settings were found by trial, on
series that the comparison does not use; ours follow from their promise.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
from river import drift as river

from gapwatch.statistics.change.drift import (
    LevelState,
    LevelWatch,
    update_level,
)
from gapwatch.statistics.change.drift_against_sim import (
    SimState,
    SimWatch,
    update_against_sim,
)

LEARN = 500
LOOKS_FOR = 1500
Find = Callable[[Sequence[float], float], int | None]
"""Number of the first alarm in a series of successes, at a sensitivity, or None."""


def ours_level(values: Sequence[float], arl: float) -> int | None:
    return _first(update_level(LevelWatch(arl=arl), LevelState(), values))


def ours_against_sim(values: Sequence[float], arl: float) -> int | None:
    rng = np.random.default_rng(len(values) + int(sum(values)))
    sim = (int(rng.binomial(2000, RATE)), 2000)
    return _first(update_against_sim(SimWatch(arl=arl, above=0.0), SimState(), sim, values))


def adwin(values: Sequence[float], delta: float) -> int | None:
    return _feed(river.ADWIN(delta=delta), values)


def page_hinkley(values: Sequence[float], threshold: float) -> int | None:
    return _feed(river.PageHinkley(threshold=threshold, mode="up"), values)


def hddm_w(values: Sequence[float], confidence: float) -> int | None:
    return _feed(
        river.binary.HDDMW(drift_confidence=confidence, warning_confidence=min(0.5, 2 * confidence)), values
    )


def repeated_z(values: Sequence[float], z: float) -> int | None:
    """The last hundred against the first five hundred, after every episode: the obvious first attempt."""
    k = sum(values[:LEARN])
    p = k / LEARN
    for at in range(LEARN + 100, len(values)):
        window = sum(values[at - 100 : at]) / 100
        pooled = (k + 100 * window) / (LEARN + 100)
        error = sqrt(pooled * (1 - pooled) * (1 / LEARN + 1 / 100)) or 1e-9
        if (p - window) / error > z:
            return at - 1
    return None


@dataclass(frozen=True)
class Contestant:
    name: str
    find: Find
    # From least to most sensitive.
    settings: tuple[float, ...]


CONTESTANTS = (
    Contestant("e-detector, own past", ours_level, tuple(np.geomspace(1e6, 300, 49))),
    Contestant("two-sample e-process, 2000 sim", ours_against_sim, tuple(np.geomspace(1e6, 300, 49))),
    Contestant("ADWIN", adwin, tuple(np.geomspace(1e-7, 0.99, 49))),
    Contestant("PageHinkley", page_hinkley, tuple(np.geomspace(200, 2, 49))),
    Contestant("HDDM_W", hddm_w, tuple(np.geomspace(1e-12, 0.2, 49))),
    Contestant("z-test after every episode", repeated_z, tuple(np.linspace(6, 1.6, 49))),
)
RATE = 0.8


def _first(crossings: Sequence) -> int | None:
    return next((c.number for c in crossings if c.kind == "breach"), None)


def _feed(detector, values: Sequence[float]) -> int | None:
    for number, value in enumerate(values):
        detector.update(1 - value)
        # River's detectors look both ways; an alarm while learning is as false as any other.
        if detector.drift_detected:
            return number
    return None


def series(rng, *parts: tuple[float, int]) -> list[float]:
    return [float(x) for rate, n in parts for x in rng.random(n) < rate]


def false_alarms(detector: Contestant, setting: float, null: list[list[float]]) -> float:
    return float(np.mean([detector.find(values, setting) is not None for values in null]))


def tune(detector: Contestant, null: list[list[float]], wanted: float) -> float:
    """The most sensitive setting whose share of false alarms is at most the wanted one, by bisection."""
    low, high = 0, len(detector.settings) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if false_alarms(detector, detector.settings[middle], null) <= wanted:
            low = middle
        else:
            high = middle - 1
    return detector.settings[low]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=300)
    parser.add_argument(
        "--false-alarms", type=float, default=0.05, help="share of unchanged series that may alarm"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(20_261_116)
    null = [series(rng, (RATE, LEARN + LOOKS_FOR)) for _ in range(options.series)]
    check = [series(rng, (RATE, LEARN + LOOKS_FOR)) for _ in range(options.series)]
    falls = {
        points: [series(rng, (RATE, LEARN), (RATE - points / 100, LOOKS_FOR)) for _ in range(options.series)]
        for points in (10, 20, 30)
    }
    print(
        f"{options.series} series at {RATE}, {LEARN} episodes before the fall; at most {options.false_alarms:.0%} of"
    )
    print(
        f"unchanged series of {LEARN + LOOKS_FOR} episodes alarm. Delay: median (and 95 %) of episodes; ∞ not found.\n"
    )
    head = "".join(f"{f'{points} points':>16}" for points in falls)
    print(f"{'detector':32}{'setting':>10}{'false':>8}{head}{'episodes/s':>12}")
    results = []
    for detector in CONTESTANTS:
        setting = tune(detector, null, options.false_alarms)
        row = {
            "detector": detector.name,
            "setting": setting,
            "false_alarms": false_alarms(detector, setting, check),
        }
        cells = ""
        for points, fallen in falls.items():
            delays = []
            for values in fallen:
                at = detector.find(values, setting)
                # An alarm before the fall is a false one; the series says nothing of the delay.
                if at is None or at >= LEARN:
                    delays.append(np.inf if at is None else at - LEARN + 1)
            median, late = np.quantile(delays, [0.5, 0.95], method="higher")
            row[f"delay_{points}"] = [median, late]
            cells += f"{_told(median) + ' (' + _told(late) + ')':>16}"
        started = time.perf_counter()
        for values in check[:20]:
            detector.find(values, detector.settings[0])
        speed = 20 * (LEARN + LOOKS_FOR) / (time.perf_counter() - started)
        row["episodes_per_s"] = speed
        results.append(row)
        print(f"{detector.name:32}{setting:>10.3g}{row['false_alarms']:>8.1%}{cells}{speed:>12,.0f}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1, default=float))


def _told(delay: float) -> str:
    return "∞" if np.isinf(delay) else f"{delay:.0f}"


if __name__ == "__main__":
    main()
