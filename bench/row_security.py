"""What row security costs: pages and the read API as the tenants' role and as the owner, in turn.

    python -m bench.row_security [--rounds N] [--json FILE]

One application in this process, of which every other request skips the statement that becomes the tenants' role. Each
query asks for its project either way. Judged is the 95th percentile with row security against that without.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn

from bench.fairness import PERSON, client_of, make_projects, timed
from bench.records import make_records
from bench.report import Report
from bench.service import scratch_directory, serving
from gapwatch.app import make_app
from gapwatch.pages.people import sign_in_gate
from gapwatch.settings import ROOT, Settings
from gapwatch.store.core import database as store_database

EPISODES, REQUESTS = 10_000, 40
# At most a fifth longer.
LEAST_RATIO = 1 / 1.2
PAGES = ("/", "/deployments/berlin-line-1", "/episodes", "/api/v1/episodes", "/api/v1/channels")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/row_security.json"))
    given = parser.parse_args()
    report = Report()
    report.remark(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run")
    with scratch_directory(ROOT / ".cache/bench") as directory, serving(directory / "rows") as service:
        keys = make_projects(service)
        for project in ("noisy", "quiet"):
            with client_of(service, keys[project, "ingest"]) as client:
                records = make_records(EPISODES)
                for start in range(0, EPISODES, 2000):
                    client.post("/episodes/batch", json=records[start : start + 2000]).raise_for_status()
        service.wait_until_folded()
        settings = Settings(
            data_dir=service.data_dir,
            database_url=service.database_url,
            redis_url=service.running["redis_url"],
        )
        with answering(settings) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as browser:
            assert browser.post("/sign-in", data=PERSON).status_code == 303
            browser.headers["Authorization"] = f"Bearer {keys['quiet', 'read']}"
            for _ in range(given.rounds):
                for page in PAGES:
                    look(browser, page, report)
    for page in PAGES:
        report.judge_ratio(f"{page} p95, without / with", f"{page} p95, without", f"{page} p95, with", LEAST_RATIO)
    report.show()
    report.write(given.json)
    sys.exit(any(verdict.word == "FAIL" for verdict in report.verdicts))


def look(browser: httpx.Client, page: str, report: Report) -> None:
    took: dict[str, list[float]] = {"with": [], "without": []}
    enter = store_database.enter_project
    for number in range(2 * REQUESTS):
        how = "with" if number % 2 else "without"
        skipped = enter if how == "with" else lambda connection, project_id: None
        store_database.enter_project = sign_in_gate.enter_project = skipped
        try:
            took[how].append(timed(lambda: browser.get(page).raise_for_status()))
        finally:
            store_database.enter_project = sign_in_gate.enter_project = enter
    for how, times in took.items():
        report.add(f"{page} p95, {how}", statistics.quantiles(times, n=20)[-1], "ms")
        report.add(f"{page} median, {how}", statistics.median(times), "ms")


@contextmanager
def answering(settings: Settings) -> Iterator[str]:
    """The application in a thread of this process, where a request can be told apart from the next."""
    server = uvicorn.Server(uvicorn.Config(make_app(settings), port=0, loop="uvloop", log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
