"""The proofs of fixes: placebos that must not be credited, and a true fix of fifteen points that must be.

`python -m bench.closing`, about a minute. The suite has a short run of it (tests/statistics/closing).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from bench.closing_worlds import WORLDS, Trial, World, play
from gapwatch.statistics.closing.closure import Closure, design_effect, measure_closure
from gapwatch.statistics.closing.regression_to_mean import Peer

TRUE_EFFECT = 0.15
LEAST_COVERAGE, LARGEST_ERROR = 0.93, 0.05


@dataclass(frozen=True)
class Row:
    """Of one world, points in percentage points."""

    world: str
    runs: int
    covers_zero: float
    credited: float
    called_closed: float
    regained: float
    subtracted: float
    true_credited: float
    true_covered: float
    true_closed: float
    width: float


def measure(world: World, trial: Trial) -> Closure:
    if world.has_control:
        return measure_closure(trial.treated, trial.others)
    others = [Peer(c.successes[0], c.n[0], design_effect(c.clusters[0])) for c in trial.others.values()]
    return measure_closure(trial.treated, {}, others=others)


def run(world: World, runs: int, seed: int) -> Row:
    random = np.random.default_rng(seed)
    placebos, fixes, regained = [], [], []
    for _ in range(runs):
        trial = play(world, random)
        regained.append(trial.regained)
        placebos.append(measure(world, trial))
        fixes.append(measure(world, play(world, random, TRUE_EFFECT)))
    return Row(
        world.name,
        runs,
        _covered(placebos, 0.0),
        _mean_points(placebos),
        sum(one.verdict == "closed" for one in placebos) / runs,
        100 * float(np.mean(regained)),
        100 * float(np.mean([one.regression_subtracted or 0.0 for one in placebos])),
        _mean_points(fixes),
        _covered(fixes, TRUE_EFFECT),
        sum(one.verdict == "closed" for one in fixes) / runs,
        100 * float(np.mean([one.interval[1] - one.interval[0] for one in fixes if one.interval])),
    )


def _covered(closures: list[Closure], truth: float) -> float:
    return sum(one.interval is not None and one.interval[0] <= truth <= one.interval[1] for one in closures) / len(
        closures
    )


def _mean_points(closures: list[Closure]) -> float:
    return 100 * float(np.mean([one.points for one in closures if one.points is not None]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="fixes in each world")
    parser.add_argument("--seed", type=int, default=20)
    asked = parser.parse_args()
    print(
        f"{asked.runs} placebo fixes, and as many true ones of {100 * TRUE_EFFECT:.0f} points, in each world; points\n"
        "\n| world | placebo: 95 % interval has 0 | credited | called closed | crude rise | regression subtracted"
        " | true 15: credited | covered | called closed | width |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    rows = []
    for number, world in enumerate(WORLDS):
        row = run(world, asked.runs, asked.seed + number)
        rows.append(row)
        print(
            f"| {row.world} | {100 * row.covers_zero:.1f} % | {row.credited:+.1f} | {100 * row.called_closed:.1f} % |"
            f" {row.regained:+.1f} | {row.subtracted:.1f} | {row.true_credited:.1f} |"
            f" {100 * row.true_covered:.1f} % | {100 * row.true_closed:.0f} % | {row.width:.0f} |",
            flush=True,
        )
    worst = min(row.covers_zero for row in rows)
    error = max(abs(row.true_credited - 100 * TRUE_EFFECT) for row in rows)
    print(
        f"\nLowest share of placebo intervals with 0: {100 * worst:.1f} % (at least {100 * LEAST_COVERAGE:.0f})."
    )
    print(f"Largest mean error of a true fix: {error:.1f} points (at most {100 * LARGEST_ERROR:.0f}).")
    if worst < LEAST_COVERAGE or error > 100 * LARGEST_ERROR:
        raise SystemExit("A promise was not kept.")


if __name__ == "__main__":
    main()
