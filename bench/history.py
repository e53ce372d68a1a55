"""An import of history, by time and robot by robot: how long until every episode is judged, and what it is worth.

    python -m bench.history [--rounds N] [--episodes N] [--json FILE]

The same ninety days of four robots, with a fall that was mended and one that was not, into a deployment of its own for
each order. Both orders must leave the same incidents.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench.records import batches, make_records
from bench.report import Report
from bench.service import Service, Wrong, scratch_directory, serving
from gapwatch.settings import ROOT

DAYS, ROBOTS = 90, 4
# Success from a day before the end on.
STRETCHES = ((90, 0.92), (50, 0.6), (40, 0.92), (8, 0.6))
ORDERS = {
    "by time": lambda record: (record["started_at"],),
    "by robot": lambda record: (record["robot"], record["started_at"]),
}
MOST_S = 900.0
# Robot by robot the history comes to its end four times.
AT_MOST_TIMES = 2.0
JUDGED = """
SELECT NOT EXISTS (SELECT 1 FROM work) AND NOT EXISTS (SELECT 1 FROM watch_due)
   AND NOT EXISTS (SELECT 1 FROM rewatches WHERE due_at IS NOT NULL) AND coalesce((
    SELECT w.episodes = %s FROM watches w
    JOIN deployments d ON d.project_id = w.project_id AND d.id = w.deployment_id WHERE d.slug = %s), false)
"""
INCIDENTS = """
SELECT i.state, i.severity, i.opened_at, i.changed_at, i.resolved_at FROM incidents i
JOIN deployments d ON d.project_id = i.project_id AND d.id = i.deployment_id
WHERE d.slug = %s AND i.severity <> 'info' ORDER BY i.opened_at
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/history.json"))
    given = parser.parse_args()
    report = Report()
    load = os.getloadavg()[0]
    report.remark(f"{os.cpu_count()} cores, load {load:.1f} before the run{' (busy!)' if load > 1 else ''}")
    with scratch_directory(ROOT / ".cache/bench") as directory, serving(directory / "history") as service:
        for number in range(given.rounds):
            now = datetime.now(UTC).replace(microsecond=0)
            found = {
                order: _import(
                    service, report, f"line-{number}-{order.replace(' ', '-')}", order, given.episodes, now
                )
                for order in ORDERS
            }
            _compare(found)
    report.judge_ratio("by time / by robot", "by time", "by robot", 1 / AT_MOST_TIMES)
    report.show()
    report.write(given.json)
    sys.exit(any(verdict.word == "FAIL" for verdict in report.verdicts))


def _import(
    service: Service, report: Report, slug: str, order: str, episodes: int, now: datetime
) -> list[tuple[Any, ...]]:
    records = sorted(_past(slug, episodes, now), key=ORDERS[order])
    headers = {"Authorization": f"Bearer {service.key}"}
    started = time.monotonic()
    with httpx.Client(base_url=service.running["url"], headers=headers, timeout=60, trust_env=False) as client:
        for batch in batches(records):
            client.post("/api/v1/episodes/batch", json=list(batch)).raise_for_status()
    sent_s = time.monotonic() - started
    while not service.value(JUDGED, episodes, slug):
        if time.monotonic() - started > MOST_S:
            raise Wrong(f"{slug}: not all of {episodes} episodes were judged within {MOST_S:.0f} s")
        time.sleep(0.1)
    report.add(order, time.monotonic() - started, "s", note=f"sent in {sent_s:.1f} s")
    with service.connect() as connection:
        return connection.execute(INCIDENTS, (slug,)).fetchall()


def _past(slug: str, episodes: int, now: datetime) -> list[dict[str, Any]]:
    generator = np.random.default_rng(11)
    records = make_records(episodes, seed=11, until=now)
    for number, record in enumerate(records):
        before = DAYS * (1 - (number + 0.5) / episodes)
        rate = next(rate for begins, rate in reversed(STRETCHES) if before <= begins)
        at = now - timedelta(days=before)
        record |= {
            # The same in every round and order but for the deployment.
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{slug}/{number}")),
            "deployment": slug,
            "task": "pick-mug",
            "policy": {"name": "bin-pick", "version": "1.4.0"},
            "site": "berlin",
            "robot": f"{slug}-{int(generator.integers(ROBOTS))}",
            "started_at": at.isoformat(timespec="milliseconds"),
            "session": f"{at:%Y-%m-%d}-{number % ROBOTS}",
            "outcome": "success" if generator.random() < rate else "failure",
        }
        record.pop("failure", None)
    return records


def _compare(found: dict[str, list[tuple[Any, ...]]]) -> None:
    """The detectors of two deployments draw with seeds of their own, so times may differ by a little."""
    one, other = found.values()
    if [row[:2] for row in one] != [row[:2] for row in other] or not one:
        raise Wrong(f"the orders left different incidents: {found}")


if __name__ == "__main__":
    main()
