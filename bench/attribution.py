"""Does the ledger find the cause? Measured in worlds where the cause of every failure is known.

    python -m bench.attribution [--runs 20] [--seeds 3] [--n 30 100 300] [--only TEXT] [--json FILE]

The worlds are those of `attribution_worlds.py`, others of another robot (`attribution_others.py`), and the
demo's own. Columns: how often the largest bar is the cause, or has the names of those that nothing tells apart; the
bias of its bar in points; how often its 95 % interval covers the truth; how often some other category is accused: its
lower end lies above zero. A bar of several names accuses nobody if one of them is a cause.
"""

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.attribution_others import OTHERS, OtherWorld, sides_of, truth_of_other
from bench.attribution_worlds import WORLDS, World, truth_of, two_sides
from gapwatch.demo import experiment
from gapwatch.demo.gaps import GAPS
from gapwatch.statistics.causes.sample_ledger import ledger_of_samples
from gapwatch.taxonomy import Taxonomy

SIZES = (30, 100, 300)
TAXONOMY = Taxonomy()
# Shares of so many runs wobble; a target is missed where even the upper limit of a share does not reach it.
WOBBLE = 2.0
# Targets hold from so many real episodes on.
FEWEST_FOR_TARGETS = 100
DEMO_TARGETS = {False: {"first": 0.8}, True: {"first": 0.95}}


@dataclass
class Row:
    """What was counted of one world at one size."""

    name: str
    n_real: int
    targets: dict
    note: str = ""
    one_of: frozenset = frozenset()
    runs: int = 0
    first: int = 0
    covered: int = 0
    accused: int = 0
    unexplained: int = 0
    errors: list = field(default_factory=list)
    who: Counter = field(default_factory=Counter)

    def count(self, ledger, truth):
        self.runs += 1
        bars = {entry.category: entry for entry in ledger.entries}
        others = [
            entry.category
            for entry in ledger.entries
            if not self._is_right(entry.category, truth) and entry.interval is not None and entry.interval[0] > 0
        ]
        self.who.update(others)
        self.accused += bool(others)
        top = ledger.entries[0]
        # What the headline would say: nothing that is known explains most of it.
        self.unexplained += top.interval is None or top.interval[0] <= 0
        if self.one_of:
            self.first += self._is_right(top.category, truth)
        if truth:
            self.first += {entry.category for entry in ledger.entries[: len(truth)]} == set(truth)
            for category, true in truth.items():
                low, high = bars[category].interval or (bars[category].contribution,) * 2
                self.covered += (low <= true <= high) / len(truth)
                self.errors.append(bars[category].contribution - true)

    def _is_right(self, category, truth):
        names = {*category.split("+")}
        return bool(names & {*truth}) or len(names & self.one_of) > 1

    @property
    def shares(self):
        own = {"accused": self.accused / self.runs}
        if self.one_of:
            own["first"] = self.first / self.runs
        return own | (
            {"first": self.first / self.runs, "covered": self.covered / self.runs} if self.errors else {}
        )

    def missed(self):
        """The targets that were not reached, in words."""
        if self.n_real < FEWEST_FOR_TARGETS:
            return []
        words = []
        for column, target in self.targets.items():
            share = self.shares.get(column)
            if share is None:
                continue
            slack = WOBBLE * np.sqrt(max(share * (1 - share), 0.25 / self.runs) / self.runs)
            worst = share - slack > target if column == "accused" else share + slack < target
            if worst:
                words.append(
                    f"{self.name}, n {self.n_real}: {column} {100 * share:.0f} %, target {100 * target:.0f} %"
                )
        return words

    def line(self):
        shares = self.shares
        told = [
            f"{100 * shares[column]:.0f} %" if column in shares else "–"
            for column in ("first", "covered", "accused")
        ]
        bias = f"{100 * np.mean(self.errors):+.1f}" if self.errors else "–"
        target = ", ".join(
            f"{column} {'≤' if column == 'accused' else '≥'} {100 * value:.0f}"
            for column, value in self.targets.items()
        )
        return (
            f"| {self.name} | {self.n_real} | {told[0]} | {bias} | {told[1]} | {told[2]} | {target} {self.note} |"
        )


def measure(world: World | OtherWorld, n_real: int, runs: int, seeds: range) -> Row:
    is_other = isinstance(world, OtherWorld)
    row = Row(
        f"other: {world.name}" if is_other else world.name, n_real, dict(world.targets), world.note, world.one_of
    )
    truth = truth_of_other(world) if is_other else truth_of(world)
    for seed, run in itertools.product(seeds, range(runs)):
        number = 100_000 * seed + run
        sides = sides_of(world, n_real, number) if is_other else two_sides(world, n_real, number)
        row.count(ledger_of_samples(*sides, TAXONOMY), truth)
    return row


def measure_demo(gap: str | None, labelled: bool, n_real: int, runs: int, seeds: range) -> Row:
    name = f"demo: {gap or 'no gap'}, {'labels' if labelled else 'no labels'}"
    # Without labels a heavy object is a slip: kilograms are logged, and not the ratio to what the policy expects.
    targets = {"accused": 0.05} if gap is None else {} if gap == "heavy object" else DEMO_TARGETS[labelled]
    row = Row(name, n_real, dict(targets))
    for seed, number in itertools.product(seeds, range(runs)):
        gaps = (gap,) if gap else ()
        sim, real = experiment.two_sides(gaps, n_real, 10_000 * (seed + 1) + number, labelled=labelled)
        row.count(experiment.ledger_of(sim, real), experiment.true_contributions(gaps, sim.run.scene.handover))
    return row


def rows_of(sizes, runs, seeds, only=""):
    for n_real in sizes:
        for world in (*WORLDS, *OTHERS):
            if only in world.name:
                yield measure(world, n_real, runs, seeds)
        for gap, labelled in itertools.product([*GAPS, None], (False, True)):
            if only in f"demo: {gap}":
                yield measure_demo(gap, labelled, n_real, max(1, runs // 2), seeds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=20, help="of each world, size and seed; half of it for the demo's"
    )
    parser.add_argument("--seeds", type=int, default=3)
    # Strengths and thresholds were chosen on seeds 0 to 2; the figures that are told are of others.
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--n", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", default="", help="worlds whose name has this")
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/attribution.json"))
    given = parser.parse_args()
    started = time.perf_counter()
    print(
        "| world | n real | cause first | bias, points | covered | some innocent accused | targets at n ≥ 100, % |"
    )
    print("|---|--:|--:|--:|--:|--:|---|")
    rows = []
    for row in rows_of(given.n, given.runs, range(given.first_seed, given.first_seed + given.seeds), given.only):
        rows.append(row)
        print(row.line(), flush=True)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    told = [{"world": row.name, "n_real": row.n_real, "runs": row.runs, **row.shares,
             "bias": float(np.mean(row.errors)) if row.errors else None, "accused_who": dict(row.who)}
            for row in rows]  # fmt: skip
    given.json.write_text(json.dumps(told, indent=1))
    print(
        f"\n{given.seeds} seeds of {given.runs} runs, {time.perf_counter() - started:.0f} s; details in {given.json}"
    )
    missed = [words for row in rows for words in row.missed()]
    for words in missed:
        print(f"missed: {words}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
