"""What a person on call would have been woken for: pages of deployments on which nothing is wrong, and delays of faults.

Months of `oncall_worlds.py` go through the engine that watches live, with the default rules that page and look at
episodes. `gap-category` is left out: it asks the ledger, and only while a drop is established, so it joins an incident
that is open. A page is an incident: the first alarm while no rule is alarmed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

from bench.oncall_silence import silence_table
from bench.oncall_worlds import (
    FAULT_AT,
    FAULT_FOR,
    FAULTS,
    NULL_WORLDS,
    ROUND_THE_CLOCK,
    WORKING_WEEK,
    Clock,
    Stream,
    World,
    episodes_of,
    sim_of,
    with_fault,
)
from gapwatch.watching.detector_run import Finding
from gapwatch.watching.engine import watch_episodes
from gapwatch.watching.kinds import DEFAULT_RULES
from gapwatch.watching.series import SeenEpisode

PAGING = [rule for rule in DEFAULT_RULES if rule.severity != "info" and rule.kind not in ("category", "no_data")]
# The settings of the detectors were chosen by trial on months of seed 20261118; figures are told from another one.
SEED = 20_270_301
# Worlds in which a fall of 20 points is looked for, beside the independent one.
COSTLY = (
    "sessions named, ICC .1",
    "sessions not named, robots in turn",
    "days, logit sd .35",
    "days, logit sd .7",
)


@dataclass
class Month:
    """What one month of a deployment brought."""

    pages: int = 0
    by_rule: Counter[str] = field(default_factory=Counter)
    # Episodes from the beginning of the fault to the first page after it.
    delay: int | None = None
    # The same in episodes that the fault concerns: of the robot, or under the level, that has it.
    own_delay: int | None = None
    paged_before: bool = False


def watch(episodes: Sequence[SeenEpisode], stream: Stream, rng: np.random.Generator) -> list[Finding]:
    cells = sim_of(stream, rng)
    counts = sum(cell.successes for cell in cells), sum(cell.n for cell in cells)
    found, _ = watch_episodes(
        PAGING,
        {},
        episodes,
        count=0,
        sim_counts=lambda _: counts,
        sim_cells=lambda _: cells,
        seed=int(rng.integers(1 << 31)),
    )
    return found


def pages_of(findings: Sequence[Finding]) -> list[tuple[int, str]]:
    """Where incidents opened, and the rule that opened each; with what it is of, if of one robot or level."""
    open_: set[tuple[str, str]] = set()
    pages = []
    for finding in findings:
        key = (finding.rule.name, finding.series)
        if finding.input == "breach":
            if not open_:
                part = next((f" ({kind})" for kind in ("robot", "level") if f"@{kind}:" in finding.series), "")
                pages.append((finding.index, finding.rule.name + part))
            open_.add(key)
        elif finding.input == "recovery":
            open_.discard(key)
    return pages


def null_month(world: World, clock: Clock, seed: Sequence[int]) -> Month:
    rng = np.random.default_rng(seed)
    stream = world.make(rng, clock)
    pages = pages_of(watch(episodes_of(stream, rng), stream, rng))
    return Month(len(pages), Counter(rule for _, rule in pages))


def faulty_month(world: World, fault_index: int, clock: Clock, seed: Sequence[int]) -> Month:
    rng = np.random.default_rng(seed)
    stream = with_fault(FAULTS[fault_index], world.make, rng, clock)
    found = pages_of(watch(episodes_of(stream, rng, FAULT_AT + FAULT_FOR), stream, rng))
    after = next(((at, rule) for at, rule in found if at >= FAULT_AT), None)
    month = Month(paged_before=any(at < FAULT_AT for at, _ in found))
    if after is not None:
        month.delay, month.by_rule = after[0] - FAULT_AT + 1, Counter([after[1]])
        concerned = FAULTS[fault_index].loss(stream, np.ones(len(stream.rate))) > 0
        month.own_delay = int(concerned[FAULT_AT : after[0] + 1].sum())
    return month


def _run(task: tuple[str, int, int, int, int, int, int]) -> list[Month]:
    kind, world_index, clock_index, fault_index, first, n, base = task
    world, clock = NULL_WORLDS[world_index], CLOCKS[clock_index]
    seeds = [(base, world_index, clock_index, fault_index + 1, first + i) for i in range(n)]
    if kind == "null":
        return [null_month(world, clock, seed) for seed in seeds]
    return [faulty_month(world, fault_index, clock, seed) for seed in seeds]


CLOCKS = (WORKING_WEEK, ROUND_THE_CLOCK)
CHUNK = 20


@dataclass(frozen=True)
class Row:
    name: str
    clock: str
    months: list[Month]


def run_all(
    jobs: Sequence[tuple[str, str, int, int, int]], months: int, processes: int, seed: int
) -> Iterator[Row]:
    """`jobs`: kind, name, world, clock and fault. Each is cut into chunks that the processes share."""
    tasks = [
        (kind, world, clock, fault, first, min(CHUNK, months - first), seed)
        for kind, _, world, clock, fault in jobs
        for first in range(0, months, CHUNK)
    ]
    chunks = -(-months // CHUNK)
    with Pool(processes) if processes > 1 else nullcontext() as pool:
        parts = iter(map(_run, tasks) if pool is None else pool.imap(_run, tasks))
        for _, name, _, clock, _ in jobs:
            yield Row(name, CLOCKS[clock].name, [month for part in islice(parts, chunks) for month in part])


def null_jobs(names: str = "") -> list[tuple[str, str, int, int, int]]:
    return [
        ("null", world.name, index, CLOCKS.index(clock), -1)
        for index, world in enumerate(NULL_WORLDS)
        for clock in world.clocks
        if names in world.name
    ]


def fault_jobs(names: str = "") -> list[tuple[str, str, int, int, int]]:
    jobs = [("fault", fault.name, 0, 1, index) for index, fault in enumerate(FAULTS)]
    twenty = next(index for index, fault in enumerate(FAULTS) if fault.name == "step −20")
    jobs += [
        ("fault", f"step −20, {world.name}", index, 1, twenty)
        for index, world in enumerate(NULL_WORLDS)
        if world.name in COSTLY
    ]
    return [job for job in jobs if names in job[1]]


def null_line(row: Row) -> dict[str, Any]:
    n = len(row.months)
    pages = sum(month.pages for month in row.months)
    by_rule: Counter[str] = sum((month.by_rule for month in row.months), Counter())
    return {
        "world": row.name,
        "clock": row.clock,
        "months": n,
        "pages": pages / n,
        "error": float(np.std([month.pages for month in row.months]) / np.sqrt(n)),
        "by_rule": {rule: count / n for rule, count in by_rule.most_common()},
    }


def fault_line(row: Row) -> dict[str, Any]:
    """Months that paged before the fault say nothing of its delay."""
    counted = [month for month in row.months if not month.paged_before]
    delays = [np.inf if month.delay is None else month.delay for month in counted]
    own_delays = [np.inf if month.own_delay is None else month.own_delay for month in counted]
    median, late = np.quantile(delays, [0.5, 0.9], method="higher")
    by_rule: Counter[str] = sum((month.by_rule for month in counted), Counter())
    return {
        "fault": row.name,
        "months": len(counted),
        "median": median,
        "late": late,
        "found": float(np.mean(np.isfinite(delays))),
        "within_250": float(np.mean(np.array(delays) <= 250)),
        "within_250_own": float(np.mean(np.array(own_delays) <= 250)),
        "first": {rule: count / len(counted) for rule, count in by_rule.most_common()},
    }


def _told(delay: float) -> str:
    return "∞" if np.isinf(delay) else f"{delay:.0f}"


def _shares(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.2f}" for name, share in shares.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=200, help="deployment-months of each world")
    parser.add_argument("--faults", type=int, default=200, help="deployment-months of each fault")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--without-silence", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="worlds and faults whose name has these words")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    results: dict[str, Any] = {"null": [], "faults": []}
    if options.months:
        print("| nothing is wrong | clock | pages a deployment-month | by rule |\n|---|---|--:|---|")
        for row in run_all(null_jobs(options.only), options.months, options.processes, options.seed):
            line = null_line(row)
            results["null"].append(line)
            print(
                f"| {line['world']} | {line['clock']} | {line['pages']:.3f} ± {line['error']:.3f} "
                f"| {_shares(line['by_rule'])} |",
                flush=True,
            )
    if options.faults:
        print(
            "\n| fault | median (90 %), episodes | found | within 250 · of its own | paged first by |\n|---|--:|--:|--:|---|"
        )
        for row in run_all(fault_jobs(options.only), options.faults, options.processes, options.seed):
            line = fault_line(row)
            results["faults"].append(line)
            print(
                f"| {line['fault']} | {_told(line['median'])} ({_told(line['late'])}) | {line['found']:.0%} "
                f"| {line['within_250']:.0%} · {line['within_250_own']:.0%} | {_shares(line['first'])} |",
                flush=True,
            )
    if not options.only and not options.without_silence:
        results["silence"] = silence_table()
        print("\n| silence | pages a deployment-month | median (95 %) delay of a death, minutes | told in time |")
        print("|---|--:|--:|--:|")
        for row in results["silence"]:
            print(
                f"| {row['world']} | {row['pages_a_month']} | {row['delay_minutes']} ({row['delay_minutes_95']}) "
                f"| {row['told_in_time']:.0%} |"
            )
    print(f"\n{time.perf_counter() - started:.0f} s")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1, default=float))


if __name__ == "__main__":
    main()
