"""Measures reading and pages on one table: `bench.query` and `bench.pages` without filling ten million twice.

`python -m bench.reading [--stored 100000 1000000 10000000] [--fleet 1000] [--json FILE]`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import pages, query  # noqa: E402
from bench.service import scratch_directory, serving  # noqa: E402


def main() -> None:
    options, report = pages.begin(__doc__, query.LEVELS, "reading")
    levels = options.stored
    began = time.monotonic()
    try:
        with scratch_directory(ROOT / ".cache" / "bench") as directory, serving(directory / "reading") as service:
            key = query.reading_key(service)
            for level in query.filled(service, report, levels):
                query.measure_level(service, report, key, level)
                if level in (levels[0], levels[-1]):
                    pages.measure_level(service, report, level)
            pages.count_all_queries(service, report)
            pages.measure_fleet(service, report, options.fleet)
        query.judge(report, levels)
        pages.judge(report, levels, options.fleet)
    finally:
        report.show()
    report.write(options.json, command=sys.argv[1:], seconds=round(time.monotonic() - began))


if __name__ == "__main__":
    main()
