"""Measures pages: how long the server takes for fleet and deployment while the table grows a hundredfold, for a fleet
of a thousand deployments, in how many queries, and when Chromium has drawn the first chart.

`python -m bench.pages [--stored 100000 10000000] [--fleet 1000] [--json FILE]`; bench/README.md says what each is.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import shutil
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import structlog

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import query, records  # noqa: E402
from bench.report import Report  # noqa: E402
from bench.senders import quantile  # noqa: E402
from bench.service import PROJECT, Service, Wrong, scratch_directory, serving  # noqa: E402
from gapwatch.accounts import make_key, put_person  # noqa: E402
from gapwatch.app import make_app  # noqa: E402
from gapwatch.settings import Settings  # noqa: E402
from gapwatch.store.core.database import Database  # noqa: E402

LEVELS = (100_000, 10_000_000)
REQUESTS, DRAWINGS = 40, 10
SERVER_MS, MOST_QUERIES = 100, 10
FLEET = "fleet"
POLICIES, REAL_EACH, SIM_EACH = 50, 60, 400
PERSON = {"email": "bench@example.com", "password": "wet lamp oxen parade"}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
FIRST_CHART = """
new MutationObserver(() => { window.firstChart ??= performance.now(); })
  .observe(document, {subtree: true, attributes: true, attributeFilter: ["data-state"]});
"""


def main() -> None:
    options, report = begin(__doc__, LEVELS, "pages")
    levels = options.stored
    began = time.monotonic()
    try:
        with scratch_directory(ROOT / ".cache" / "bench") as directory, serving(directory / "pages") as service:
            measure_levels(service, report, levels)
            measure_fleet(service, report, options.fleet)
        judge(report, levels, options.fleet)
    finally:
        report.show()
    report.write(options.json, command=sys.argv[1:], seconds=round(time.monotonic() - began))


def begin(words: str | None, levels: tuple[int, ...], name: str) -> tuple[argparse.Namespace, Report]:
    """Parse the command line, and begin a report that says how busy the machine is."""
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("--stored", type=int, nargs="+", metavar="N", default=levels)
    parser.add_argument("--fleet", type=int, metavar="N", default=1000, help="deployments of the large fleet")
    parser.add_argument("--json", type=Path, metavar="FILE", default=ROOT / f".cache/bench/{name}.json")
    options = parser.parse_args()
    options.stored = sorted(options.stored)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Do not log the requests of the application that counts queries in this process.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    report = Report()
    report.remark(f"load of the machine at the start: {os.getloadavg()[0]:.1f}")
    return options, report


def measure_levels(service: Service, report: Report, levels: list[int]) -> None:
    for level in query.filled(service, report, levels):
        measure_level(service, report, level)
    count_all_queries(service, report)


def measure_level(service: Service, report: Report, level: int) -> None:
    with signed_in(service, PROJECT) as browser:
        add_times(report, name("fleet", level), [get(browser, "/") for _ in range(REQUESTS)])
        addresses = [deployment_address(number) for number in range(REQUESTS)]
        add_times(report, name("deployment", level), [get(browser, address) for address in addresses])
        draw(browser, report, level)


def count_all_queries(service: Service, report: Report) -> None:
    with signed_in(service, PROJECT) as browser:
        count_queries(service, browser, report, "fleet", "/")
        count_queries(service, browser, report, "deployment", deployment_address(0))


def measure_fleet(service: Service, report: Report, deployments: int) -> None:
    print(f"sending a fleet of {deployments:,} deployments …", flush=True)
    send_fleet(service, deployments)
    with signed_in(service, FLEET) as browser:
        add_times(report, large(deployments), [get(browser, "/?project=fleet") for _ in range(REQUESTS)])
        count_queries(service, browser, report, large(deployments), "/?project=fleet")


def judge(report: Report, levels: list[int], deployments: int) -> None:
    few, many = levels[0], levels[-1]
    for page in (large(deployments), name("deployment", many)):
        report.judge_value(f"{page}, p95", f"{page}, p95", SERVER_MS, at_most=True)
    for page in ("fleet", "deployment", large(deployments)):
        report.judge_value(f"{page}, queries", f"{page}, queries", MOST_QUERIES, at_most=True)
    for page in ("fleet", "deployment") if few < many else ():
        ours, theirs = (f"{name(page, level)}, p95" for level in (few, many))
        report.judge_ratio(f"{page}, p95 at {few:,} / at {many:,}", ours, theirs, 1 / 1.5)


def name(page: str, level: int) -> str:
    return f"{page} page, {level:,} stored"


def large(deployments: int) -> str:
    return f"fleet page of {deployments:,} deployments"


def deployment_address(number: int) -> str:
    """The windows that the page offers, in turn, of each deployment."""
    window = ("", "?since=30d", "?since=90d")[number % 3]
    return f"/deployments/{query.deployment(number % query.DEPLOYMENTS)}{window}"


@contextmanager
def signed_in(service: Service, project: str) -> Iterator[httpx.Client]:
    database = Database(service.database_url)
    put_person(database, PERSON["email"], PERSON["password"], project, "viewer")
    database.close()
    with httpx.Client(
        base_url=service.running["url"], timeout=120, trust_env=False, follow_redirects=True
    ) as browser:
        browser.post("/sign-in", data=PERSON).raise_for_status()
        yield browser


def get(browser: httpx.Client, address: str) -> float:
    """Milliseconds from the request until the whole page has arrived."""
    began = time.perf_counter()
    answer = browser.get(address, headers={"Accept": "text/html"})
    took = 1000 * (time.perf_counter() - began)
    if answer.status_code != 200 or "/sign-in" in str(answer.url):
        raise Wrong(f"{address} answered {answer.status_code}: {answer.text[:300]}")
    return took


def add_times(report: Report, what: str, times: list[float]) -> None:
    # Skip the first of each kind, to warm up code and caches.
    warm = times[len(times) // 10 :]
    report.add(f"{what}, median", quantile(warm, 0.5), "ms")
    report.add(f"{what}, p95", quantile(warm, 0.95), "ms")


def count_queries(service: Service, browser: httpx.Client, report: Report, page: str, address: str) -> None:
    """Count queries of the same application in this process, on the second request, when cell names are cached."""
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(self: Any, statement: Any, *arguments: Any, **options: Any) -> Any:
        # The pool's ping, and the statement that makes a transaction one of a project, are none of the page's.
        if str(statement) != ";" and "set_config('role'" not in str(statement):
            sent.append(str(statement))
        return execute(self, statement, *arguments, **options)

    async def ask() -> None:
        transport = httpx.ASGITransport(app=application_of(service))
        async with httpx.AsyncClient(
            transport=transport, base_url=service.running["url"], cookies=browser.cookies
        ) as client:
            for _ in range(2):
                sent.clear()
                answer = await client.get(address, headers={"Accept": "text/html"})
                if answer.status_code != 200:
                    raise Wrong(f"{address} answered {answer.status_code} in this process")

    psycopg.Cursor.execute = counted  # type: ignore[method-assign, assignment]
    try:
        asyncio.run(ask())
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]
    report.add(f"{page}, queries", len(sent), "")


def application_of(service: Service) -> Any:
    running = service.running
    return make_app(
        Settings(data_dir=service.data_dir, database_url=running["database_url"], redis_url=running["redis_url"])
    )


def draw(browser: httpx.Client, report: Report, level: int) -> None:
    """Time until the first figure of a deployment is drawn: with an empty browser cache, and the next time."""
    chromium = shutil.which("chromium")
    if chromium is None:
        report.remark("Chromium is not installed: no time to the first chart.")
        return
    from playwright.sync_api import sync_playwright

    cookies = [
        {"name": cookie.name, "value": cookie.value or "", "url": str(browser.base_url)}
        for cookie in browser.cookies.jar
    ]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for number in range(DRAWINGS):
            context = launched.new_context(base_url=str(browser.base_url), viewport={"width": 1440, "height": 900})
            context.add_cookies(cookies)  # type: ignore[arg-type]
            context.add_init_script(FIRST_CHART)
            page = context.new_page()
            for kept in ("cold", "warm"):
                page.goto(deployment_address(3 * number))
                page.wait_for_selector("[data-chart][data-state=drawn]")
                took = page.evaluate("window.firstChart")
                report.add(f"first chart, {kept}, {level:,} stored", took, "ms")
            context.close()
        launched.close()


def send_fleet(service: Service, deployments: int) -> None:
    """Fill a separate project: thirty days of real episodes of each deployment, and a baseline for each policy."""
    database = Database(service.database_url)
    secret = Settings(data_dir=service.data_dir).server_secret()
    key = make_key(database, secret, project=FLEET, scope="ingest", name="bench")
    database.close()
    with httpx.Client(
        base_url=service.running["url"],
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
        trust_env=False,
    ) as client:
        for batch in records.batches(list(fleet_records(deployments)), 5000):
            client.post("/api/v1/episodes/batch", json=batch).raise_for_status()
    service.wait_until_folded(600)
    service.wait_until_watched(1800)
    with service.connect() as connection:
        connection.execute("VACUUM ANALYZE")


def fleet_records(deployments: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(11)
    now = datetime.now(UTC)
    patterns = records.make_records(5000)
    reals = deployments * REAL_EACH
    total = reals + POLICIES * SIM_EACH
    for number in range(total):
        record = dict(patterns[number % len(patterns)])
        is_real = number < reals
        index = number % deployments if is_real else number
        policy = index % POLICIES
        age = number / reals if is_real else (number - reals) / (total - reals)
        at = now - timedelta(minutes=1, days=30 * (1 - age))
        record |= {
            "id": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
            "policy": {"name": f"policy-{policy}", "version": "1.0.0"},
            "task": records.TASKS[policy % len(records.TASKS)],
            "deployment": f"line-{index:04}",
            "robot": f"robot-{index:04}",
            "site": records.SITES[index % len(records.SITES)],
            "started_at": at.isoformat(),
            "session": f"{at:%Y-%m-%d}",
            "outcome": "failure"
            if chance.random() < (0.05 + 0.2 * (index % 7 == 0) if is_real else 0.05)
            else "success",
        }
        record.pop("failure", None)
        if record["outcome"] == "failure":
            record["failure"] = {"phase": "lift", "labels": [chance.choice(["slip", "dropped", "not_detected"])]}
        if not is_real:
            record |= {"domain": "sim", "simulator": {"name": "mujoco", "version": "3.3.0"}}
            for field in ("deployment", "robot", "site", "stage"):
                record.pop(field, None)
        yield record


if __name__ == "__main__":
    main()
