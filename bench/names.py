"""One key that makes up names: what it does to another project, and whether its own project stays usable.

    python -m bench.names [--names 100000] [--json FILE]

The budget of new names is lifted. One key sends as many episodes as names, each with a robot, a level of a condition
or a deployment of its own. Meanwhile somebody of another project loads pages and a robot sends single episodes there.
Judged are their times against those beside as many episodes of known names, in the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.fairness import PERSON, client_of, make_projects, timed
from bench.records import make_records
from bench.report import Report
from bench.service import Service, Wrong, scratch_directory, serving
from gapwatch.accounts import put_person
from gapwatch.settings import ROOT
from gapwatch.store.core.database import Database

ROUNDS, BATCH = 30, 1000
FULL = "berlin-line-1"
TRY_AGAIN = 503
# At most twice as long.
LEAST_RATIO = 0.5
PAGES = ("/", f"/deployments/{FULL}", "/episodes", "/settings/robots", "/settings/baselines", "/settings/calendars",
         "/settings/silences", "/alerts", f"/compare?deployment={FULL}", "/compare/simulators",
         f"/deployments/{FULL}?format=report")  # fmt: skip
ANSWERS = ("/deployments?limit=100", f"/deployments/{FULL}/now", f"/deployments/{FULL}/ledger", "/robots?limit=100",
           "/incidents", f"/deployments/{FULL}/drop")  # fmt: skip


def named(kind: str, number: int, record: dict[str, Any]) -> dict[str, Any]:
    """An episode of one deployment and robot, but for the one name that is new."""
    record = record | {
        "id": str(uuid.uuid4()),
        "deployment": FULL,
        "robot": "arm-1",
        "conditions": {"light": "dim"},
    }
    name = f"made-up-{number:06d}"
    changed = {
        "known": {},
        "robots": {"robot": name},
        "deployments": {"deployment": name},
        "levels": {"conditions": {"light": name}},
    }
    return record | changed[kind]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--kinds", nargs="+", default=["robots", "levels", "deployments"])
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/names.json"))
    given = parser.parse_args()
    report = Report()
    report.remark(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run, {given.names} names of each kind"
    )
    lifted = {"GAPWATCH_NEW_NAMES_A_DAY": str(10 * given.names)}
    with scratch_directory(ROOT / ".cache/bench") as directory, serving(directory / "names", **lifted) as service:
        keys = make_projects(service)
        database = Database(service.database_url)
        put_person(database, "noisy@example.com", PERSON["password"], "noisy", "admin")
        database.close()
        for project in ("noisy", "quiet"):
            with client_of(service, keys[project, "ingest"]) as client:
                client.post("/episodes/batch", json=make_records(4000)).raise_for_status()
        service.wait_until_folded()
        look(service, keys, report, "alone")
        with sending(service, keys["noisy", "ingest"], "known", max(BATCH, given.names // 5), report):
            look(service, keys, report, "beside known")
        service.wait_until_folded(3600)
        for kind in given.kinds:
            with sending(service, keys["noisy", "ingest"], kind, given.names, report):
                look(service, keys, report, f"beside {kind}")
            began = time.perf_counter()
            service.wait_until_folded(3600)
            report.add(f"noisy folded after the last of its {kind}", time.perf_counter() - began, "s")
            look(service, keys, report, f"after {kind}")
            use(service, keys["noisy", "read"], report, kind)
            for what in ("page p95", "ingest p95", "fold, longest"):
                report.judge_ratio(
                    f"{what} of the other, beside known names / beside {kind}",
                    f"{what}, beside known",
                    f"{what}, beside {kind}",
                    LEAST_RATIO,
                )
    report.show()
    report.write(given.json)
    sys.exit(any(verdict.word == "FAIL" for verdict in report.verdicts))


@contextmanager
def sending(service: Service, key: str, kind: str, names: int, report: Report) -> Iterator[None]:
    """Send names without a pause for as long as the block takes, and to the end."""
    refused: list[str] = []

    def send() -> None:
        began = time.perf_counter()
        records = make_records(BATCH)
        with client_of(service, key) as client:
            client.timeout = httpx.Timeout(300)
            for start in range(0, names, BATCH):
                batch = [named(kind, start + n, record) for n, record in enumerate(records)]
                answer = client.post("/episodes/batch", json=batch)
                while answer.status_code == TRY_AGAIN:
                    time.sleep(1)
                    answer = client.post("/episodes/batch", json=batch)
                if answer.status_code != 200 or answer.json()["accepted"] != BATCH:
                    refused.append(answer.text[:300])
                    return
        took = time.perf_counter() - began
        report.add(f"{kind} sent", names / took, "a second")

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if refused:
        raise Wrong(refused[0])


def look(service: Service, keys: dict[tuple[str, str], str], report: Report, when: str) -> None:
    """What somebody of the other project waits for."""
    slug = next(str(one["deployment"]) for one in make_records(100) if one.get("deployment"))
    with (
        browsing(service, PERSON["email"]) as browser,
        client_of(service, keys["quiet", "ingest"]) as robot,
    ):
        pages, posts, folds = [], [], []
        for record in make_records(ROUNDS):
            pages.append(timed(lambda: browser.get(f"/deployments/{slug}").raise_for_status()))
            one = record | {"id": str(uuid.uuid4())}
            posts.append(timed(lambda one=one: robot.post("/episodes", json=one).raise_for_status()))
            began = time.perf_counter()
            while service.value(
                "SELECT count(*) FROM work w JOIN projects p ON p.id = project_id WHERE slug = 'quiet'"
            ):
                time.sleep(0.02)
            folds.append(time.perf_counter() - began)
    for what, took in (("page", pages), ("ingest", posts)):
        report.add(f"{what} p95, {when}", statistics.quantiles(took, n=20)[-1], "ms")
        report.add(f"{what} median, {when}", statistics.median(took), "ms")
    report.add(f"fold, longest, {when}", max(folds), "s")


@contextmanager
def browsing(service: Service, email: str) -> Iterator[httpx.Client]:
    url = service.running["url"]
    with httpx.Client(base_url=url, follow_redirects=True, timeout=120, trust_env=False) as browser:
        browser.post("/sign-in", data={"email": email, "password": PERSON["password"]}).raise_for_status()
        yield browser


def use(service: Service, key: str, report: Report, kind: str) -> None:
    """Every page and answer of the full project that lists or weighs names."""
    with browsing(service, "noisy@example.com") as browser, client_of(service, key) as client:
        client.timeout = httpx.Timeout(120)
        for asked, addresses in ((browser, PAGES), (client, ANSWERS)):
            for address in addresses:
                began = time.perf_counter()
                answer = asked.get(address)
                took = 1000 * (time.perf_counter() - began)
                what = f"{address} with the {kind}"
                report.add(what, took, "ms")
                report.remark(f"{what}: {answer.status_code}, {len(answer.content) / 1e6:.2f} MB, {took:.0f} ms")


if __name__ == "__main__":
    main()
