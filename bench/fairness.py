"""One project's previews beside another's pages and ingest: the other alone, then beside them, in turn.

    python -m bench.fairness [--rounds N] [--json FILE]

Eight threads of one project ask for previews without a pause. Meanwhile somebody of another project loads a deployment
page and a robot sends single episodes. Judged is the 95th percentile beside the previews against that alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.records import make_records
from bench.report import Report
from bench.service import Service, Wrong, scratch_directory, serving
from gapwatch.accounts import make_key, put_person
from gapwatch.settings import ROOT, Settings
from gapwatch.store.core.database import Database

PERSON = {"email": "bench@example.com", "password": "wet lamp oxen parade"}
PREVIEWS = 8
HISTORY, PAGES, POSTS = 20_000, 60, 120
# At most twice as long beside the previews.
LEAST_RATIO = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/fairness.json"))
    given = parser.parse_args()
    report = Report()
    load = os.getloadavg()[0]
    report.remark(f"{os.cpu_count()} cores, load {load:.1f} before the run{' (busy!)' if load > 1 else ''}")
    with scratch_directory(ROOT / ".cache/bench") as directory, serving(directory / "fairness") as service:
        keys = make_projects(service)
        fill(service, keys)
        for _ in range(given.rounds):
            look(service, keys, report, "alone")
            with previewing(service, keys["noisy", "read"], report):
                look(service, keys, report, "beside previews")
    for what in ("page", "ingest"):
        report.judge_ratio(
            f"{what} p95, alone / beside previews",
            f"{what} p95, alone",
            f"{what} p95, beside previews",
            LEAST_RATIO,
        )
    report.show()
    report.write(given.json)
    sys.exit(any(verdict.word == "FAIL" for verdict in report.verdicts))


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def client_of(service: Service, key: str) -> httpx.Client:
    base, headers = f"{service.running['url']}/api/v1", {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False)


def make_projects(service: Service) -> dict[tuple[str, str], str]:
    database = Database(service.database_url)
    try:
        secret = Settings(data_dir=service.data_dir).server_secret()
        keys = {
            (project, scope): make_key(database, secret, project=project, scope=scope, name="bench")
            for project in ("noisy", "quiet")
            for scope in ("ingest", "read")
        }
        put_person(database, PERSON["email"], PERSON["password"], "quiet", "viewer")
    finally:
        database.close()
    return keys


def fill(service: Service, keys: dict[tuple[str, str], str]) -> None:
    for project, number in (("noisy", HISTORY), ("quiet", 4000)):
        with client_of(service, keys[project, "ingest"]) as client:
            records = make_records(number)
            for start in range(0, number, 2000):
                client.post("/episodes/batch", json=records[start : start + 2000]).raise_for_status()
    service.wait_until_folded()


@contextmanager
def previewing(service: Service, key: str, report: Report) -> Iterator[None]:
    stopping = threading.Event()
    statuses: Counter[int] = Counter()

    def ask() -> None:
        with client_of(service, key) as client:
            while not stopping.is_set():
                answer = client.post("/rules/preview", json={"kind": "drift", "params": {"series": "success"}})
                statuses[answer.status_code] += 1
                time.sleep(0.01)

    threads = [threading.Thread(target=ask) for _ in range(PREVIEWS)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    if set(statuses) - {200, 429, 503} or not statuses[200]:
        raise Wrong(f"previews were answered with {dict(statuses)}")
    report.remark(f"previews: {dict(statuses)}")


def look(service: Service, keys: dict[tuple[str, str], str], report: Report, when: str) -> None:
    slug = next(str(one["deployment"]) for one in make_records(100) if one.get("deployment"))
    with (
        httpx.Client(
            base_url=service.running["url"], follow_redirects=True, timeout=60, trust_env=False
        ) as browser,
        client_of(service, keys["quiet", "ingest"]) as robot,
    ):
        browser.post("/sign-in", data=PERSON).raise_for_status()
        page = f"/deployments/{slug}"
        pages = [timed(lambda: browser.get(page).raise_for_status()) for _ in range(PAGES)]
        records = [one | {"id": str(uuid.uuid4())} for one in make_records(POSTS)]
        posts = []
        for record in records:
            posts.append(timed(lambda one=record: robot.post("/episodes", json=one).raise_for_status()))
            time.sleep(0.01)
    for what, took in (("page", pages), ("ingest", posts)):
        report.add(f"{what} p95, {when}", statistics.quantiles(took, n=20)[-1], "ms")
        report.add(f"{what} median, {when}", statistics.median(took), "ms")


if __name__ == "__main__":
    main()
