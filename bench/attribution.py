"""Does the ledger find the cause? Measured in a world where the cause of every failure is known.

.venv/bin/python -m bench.attribution [--seeds 200] [--json FILE]
"""

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from gapwatch.demo.experiment import ledger_of, true_contributions, two_sides
from gapwatch.demo.gaps import GAPS

SIZES = (30, 100, 300)
# What is known about a failure: labels by people, the phase and the signals, or the signals alone.
# (labels in sim, labels in real, phases)
MODES = {
    "labels": (True, True, True),
    "labels in real only": (False, True, True),
    "no labels": (False, False, True),
    "no labels, no phase": (False, False, False),
}
DEMANDED = ("contact slip", "dim light", "sensor bias", "heavy object", "clutter", "human handover", "latency",
            "action scale")  # fmt: skip
PAIRS = tuple(itertools.combinations(DEMANDED, 2))
TARGETS = {"labels": 0.95, "labels in real only": 0.95, "no labels": 0.80}
LARGEST_NULL = 0.05


def one_run(gaps, n_real, seed, mode):
    in_sim, in_real, phases = MODES[mode]
    sim, real = two_sides(gaps, n_real, seed, labelled=in_real)
    if not in_sim:
        sim = replace(sim, labels=None)
    ledger = ledger_of(sim, real, phases=phases)
    return ledger, true_contributions(tuple(gaps), sim.run.scene.handover)


def measure_alone(mode, n_real, seeds):
    """Each gap alone: how often its category is the largest, and how far its bar is from the truth."""
    rows = {}
    for number, gap in enumerate(GAPS):
        category = GAPS[gap].category
        hits, errors, others, covered = 0, [], [], 0
        for seed in range(seeds):
            ledger, truth = one_run((gap,), n_real, 10_000 * (number + 1) + seed, mode)
            entry = next(e for e in ledger.entries if e.category == category)
            hits += ledger.entries[0].category == category
            errors.append(entry.contribution - truth[category])
            others.append(max(e.contribution for e in ledger.entries if e.category != category))
            low, high = entry.interval or (0, 0)
            covered += low <= truth[category] <= high
        rows[gap] = {
            "top": hits / seeds, "error": float(np.mean(np.abs(errors))), "bias": float(np.mean(errors)),
            "largest other": float(np.mean(others)), "covered": covered / seeds,
        }  # fmt: skip
    return rows


def measure_pairs(mode, n_real, runs):
    """Two gaps at once: how often the largest bar is one of them, and the two largest are both."""
    first = both = 0
    errors = []
    for number in range(runs):
        gaps = PAIRS[number % len(PAIRS)]
        ledger, truth = one_run(gaps, n_real, 500_000 + number, mode)
        top = [entry.category for entry in ledger.entries[:2]]
        first += top[0] in truth
        both += set(top) == set(truth)
        errors += [abs(e.contribution - truth[e.category]) for e in ledger.entries if e.category in truth]
    return {"first": first / runs, "both": both / runs, "error": float(np.mean(errors))}


def measure_null(mode, n_real, runs):
    """No gap: how often each category's interval excludes zero."""
    excluded = Counter()
    for number in range(runs):
        ledger, _ = one_run((), n_real, 900_000 + number, mode)
        for entry in (*ledger.entries, ledger.unattributed):
            if entry.interval and (entry.interval[0] > 0 or entry.interval[1] < 0):
                excluded[entry.category] += 1
    return {category: count / runs for category, count in excluded.most_common()}


def measure(seeds, sizes=SIZES, modes=tuple(MODES), say=print):
    results = {}
    for mode in modes:
        for n_real in sizes:
            alone = measure_alone(mode, n_real, seeds)
            pairs = measure_pairs(mode, n_real, max(len(PAIRS), 3 * seeds))
            null = measure_null(mode, n_real, 4 * seeds)
            result = {
                "demanded eight": float(np.mean([alone[gap]["top"] for gap in DEMANDED])),
                "all": float(np.mean([row["top"] for row in alone.values()])),
                "error": float(np.mean([row["error"] for row in alone.values()])),
                "bias": float(np.mean([row["bias"] for row in alone.values()])),
                "alone": alone, "pairs": pairs, "null": null,
            }  # fmt: skip
            results[f"{mode}, n {n_real}"] = result
            worst = max(null.items(), key=lambda item: item[1], default=("none", 0.0))
            say(
                f"| {mode} | {n_real} | {100 * result['demanded eight']:.1f} % | {100 * result['all']:.1f} % "
                f"| {100 * result['error']:.1f} ({100 * result['bias']:+.1f}) "
                f"| {100 * pairs['first']:.1f} % | {100 * pairs['both']:.1f} % | {100 * pairs['error']:.1f} "
                f"| {100 * worst[1]:.1f} % ({worst[0]}) |"
            )
    return results


def missed(results):
    """The targets that were not reached, in words."""
    words = []
    for mode, least in TARGETS.items():
        result = results.get(f"{mode}, n 100")
        top = result["demanded eight"] if result else 1.0
        if top < least:
            words.append(
                f"{mode}, n 100: the cause is the largest bar in {100 * top:.1f} %, not {100 * least:.0f} %"
            )
    for name, result in results.items():
        for category, share in result["null"].items():
            if share > LARGEST_NULL:
                words.append(f"{name}: without a gap {category} excludes zero in {100 * share:.1f} % of runs")
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seeds", type=int, default=100, help="runs a gap; three times as many of pairs, four of none"
    )
    parser.add_argument("--mode", choices=MODES, action="append", help="only this evidence; may repeat")
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/attribution.json"))
    arguments = parser.parse_args()
    started = time.perf_counter()
    print(
        "| evidence | n real | top-1, eight gaps | top-1, all ten | error of the bar, points (bias) "
        "| pairs: top is one | pairs: top two are both | error | no gap: worst category |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    modes = arguments.mode or list(MODES)
    results = measure(arguments.seeds, modes=modes)
    print(f"\n| gap alone, n 100 | {' | '.join(modes)} |\n|---|{'---|' * len(modes)}")
    for gap in GAPS:
        cells = [results[f"{mode}, n 100"]["alone"][gap] for mode in modes]
        words = [f"{100 * cell['top']:.0f} % ({100 * cell['bias']:+.1f})" for cell in cells]
        print(f"| {gap} | {' | '.join(words)} |")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(results, indent=1))
    print(f"\n{arguments.seeds} seeds, {time.perf_counter() - started:.0f} s; details in {arguments.json}")
    words = missed(results)
    for line in words:
        print(f"missed: {line}")
    sys.exit(1 if words else 0)


if __name__ == "__main__":
    main()
