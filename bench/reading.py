"""Reading and pages, measured on one table: `bench.query` and `bench.pages` without filling ten million twice.

`python -m bench.reading [--stored 100000 1000000 10000000] [--fleet 1000] [--json FILE]`
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import pages, query  # noqa: E402
from bench.report import Report  # noqa: E402
from bench.service import scratch_directory, serving  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, nargs="+", metavar="N", default=query.LEVELS)
    parser.add_argument("--fleet", type=int, metavar="N", default=1000, help="deployments of the large fleet")
    parser.add_argument("--json", type=Path, metavar="FILE", default=ROOT / ".cache/bench/reading.json")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    levels = sorted(given.stored)
    report = Report()
    report.remark(f"load of the machine at the start: {os.getloadavg()[0]:.1f}")
    began = time.monotonic()
    try:
        with scratch_directory(ROOT / ".cache" / "bench") as directory, serving(directory / "reading") as service:
            key = query.reading_key(service)
            for level in query.filled(service, report, levels):
                query.measure_level(service, report, key, level)
                if level in (levels[0], levels[-1]):
                    pages.measure_level(service, report, level)
            pages.count_all_queries(service, report)
            pages.measure_fleet(service, report, given.fleet)
        query.judge(report, levels)
        pages.judge(report, levels, given.fleet)
    finally:
        report.show()
    report.write(given.json, command=sys.argv[1:], seconds=round(time.monotonic() - began))


if __name__ == "__main__":
    main()
