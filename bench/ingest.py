"""Measures writing: our service over HTTP against COPY, an ordinary service and MLflow, in one run.

`python -m bench.ingest [--quick] [--stored N] [--json FILE]`; bench/README.md says what each figure is.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import writing  # noqa: E402
from bench.report import Report  # noqa: E402
from bench.service import memory_mb, scratch_directory, serving  # noqa: E402
from bench.writing import QUICK, WHOLE, Run, Size  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, in less than two minutes")
    parser.add_argument("--stored", type=int, metavar="N", help="episodes in the full table (1,000,000)")
    parser.add_argument("--without-mlflow", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", default=ROOT / ".cache/bench/ingest.json")
    options = parser.parse_args()
    # A stopped benchmark stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    size = QUICK if options.quick else WHOLE
    stored = options.stored or size.stored
    report = Report()
    began = time.monotonic()
    load = os.getloadavg()[0]
    if load > 0.5:
        report.remark(f"Other work is running here (load {load:.1f}): read the ratios, not the figures.")
    try:
        measure(report, size, stored, with_mlflow=not options.without_mlflow)
        judge(report, stored)
    finally:
        report.show()
    seconds = time.monotonic() - began
    report.write(options.json, command=sys.argv[1:], seconds=round(seconds), load_before=load)
    print(f"\nWhole run: {seconds:.0f} s. Every acknowledged episode was stored, once.")


def measure(report: Report, size: Size, stored: int, *, with_mlflow: bool) -> None:
    with scratch_directory(ROOT / ".cache" / "bench") as directory, Run(directory, size, report) as run:
        with serving(directory / "one") as service:
            time.sleep(2)
            report.add(writing.AT_REST, memory_mb(service.children("web")[0]), "MB")
            run.prepare(service)
            run.measure_batches(service)
            run.measure_singles(service)
            run.measure_lag(service)
            run.measure_stored(service, directory / "full", stored)
            if with_mlflow:
                run.measure_mlflow(service, ROOT / ".cache" / "bench-mlflow")
        with serving(directory / "one", GAPWATCH_WEB_PROCESSES="2") as service:
            run.measure_two_processes(service)


def judge(report: Report, stored: int) -> None:
    """Check the targets; a ratio is taken within a round, where both sides had the same noise."""
    ratio, value = report.judge_ratio, report.judge_value
    ratio("batches, 1 web process / COPY, 1 connection", writing.BATCHES, writing.FLOOR, 0.6, 0.8)
    ratio("batches, 2 web processes / COPY, 2 connections", writing.BATCHES_2, writing.FLOOR_2, 0.42, 0.5)
    ratio("singles, 32 connections / ordinary service", writing.SINGLES, writing.ORDINARY, 10, 15)
    ratio("singles, saturated / MLflow, a run an episode", writing.SATURATED, writing.RUNS, 100)
    ratio("batches / MLflow, 1,000-metric batches", writing.BESIDE_MLFLOW, writing.METRICS, 60)
    ratio(f"batches, {stored:,} stored / empty table", writing.FULL, writing.EMPTY, 0.8)
    ratio("folding by 1 worker / batches accepted", writing.FOLD_RATE, writing.BATCHES, 1)
    value("accepted → in the numbers, p95", writing.LAG, 2, at_most=True)
    value("  while this rate was held", writing.PACE, 0.98 * writing.LAG_RATE)
    value("memory of web at rest", writing.AT_REST, 150, at_most=True)
    value("memory of web under load", writing.UNDER_LOAD, 300, at_most=True)


if __name__ == "__main__":
    main()
