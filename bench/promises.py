"""Small promises of time, each beside something that is measured in turn with it.

    python -m bench.promises [--rounds N] [--json FILE]

What the tests check of the same code is that it is right. How long it takes is a matter of the machine and of what
else runs there, so it stands here: as a ratio, and against the time that somebody would notice.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench.records import make_records
from bench.report import Report
from bench.service import PROJECT, Service, Wrong, scratch_directory, serving
from gapwatch.accounts import make_key, put_person
from gapwatch.demo.world import SIM, draw_scene, run
from gapwatch.settings import ROOT, Settings
from gapwatch.statistics.causes.failed_episodes import FailedBatch
from gapwatch.statistics.causes.weighing import weigh
from gapwatch.store.core.database import Database
from gapwatch.taxonomy import Taxonomy

MS = 1000.0
WEIGHED, PLAYED, SENT_AGAIN = 2000, 50_000, 10_000
NOISY, NOISY_RATE, QUIET = 4, 1000, 60
PERSON = {"email": "bench@example.com", "password": "wet lamp oxen parade"}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
# What each may take at most; ratios are judged below.
WEIGHED_MS, PLAYED_MS, QUIET_MS, FOLLOWED_MS = 20, 2000, 100, 3500
SIGNALS = [
    *("peak_force_n", "image_brightness", "loop_latency_ms", "imu_bias", "payload_kg", "depth_noise_mm"),
    *("tracking_rmse_rad", "calibration_residual_mm", "slip_mm", "clutter_count", "ood_score", "jitter_ms"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/promises.json"))
    given = parser.parse_args()
    report = Report()
    load = os.getloadavg()[0]
    report.remark(f"{os.cpu_count()} cores, load {load:.1f} before the run{' (busy!)' if load > 1 else ''}")
    for _ in range(given.rounds):
        weigh_failures(report)
        play_episodes(report)
    with scratch_directory(ROOT / ".cache/bench") as directory:
        with serving(directory / "open") as service:
            for number in range(given.rounds):
                send_again(service, report, number)
            follow_page(service, report, given.rounds)
        with serving(directory / "limited", GAPWATCH_INGEST_RATE=str(NOISY_RATE)) as service:
            for _ in range(given.rounds):
                send_beside_a_noisy_key(service, report)
    judge(report)
    report.show()
    report.write(given.json)
    sys.exit(any(verdict.word == "FAIL" for verdict in report.verdicts))


def judge(report: Report) -> None:
    report.judge_value("2,000 failures weighed", "weighing 2,000 failures", WEIGHED_MS, at_most=True)
    report.judge_ratio(
        "sorting their signals / weighing", "sorting their signals", "weighing 2,000 failures", 1 / 20
    )
    report.judge_value("50,000 episodes of the demo's world", "playing 50,000 episodes", PLAYED_MS, at_most=True)
    report.judge_ratio(
        "drawing their chances / playing", "drawing 20 numbers each", "playing 50,000 episodes", 1 / 40
    )
    report.judge_ratio(
        "a batch the first time / again", "a batch of 10,000, first", "a batch of 10,000, again", 0.5
    )
    report.judge_value("a quiet key beside noisy ones", "quiet key, beside noisy ones", QUIET_MS, at_most=True)
    report.judge_ratio(
        "the same, alone / beside noisy ones", "quiet key, alone", "quiet key, beside noisy ones", 0.1
    )
    if "fold → open page" in report.figures:
        report.judge_value("an open page follows", "fold → open page", FOLLOWED_MS, at_most=True)
        report.judge_ratio(
            "its own pause / an open page follows", "pause of an open page", "fold → open page", 0.7
        )


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return MS * (time.perf_counter() - began)


def best(call: Callable[[], object], times: int = 7) -> float:
    return min(timed(call) for _ in range(times))


def weigh_failures(report: Report) -> None:
    """What a ledger does with the failures of a side, beside sorting the same columns."""
    chance = np.random.default_rng(4)
    signals = {name: chance.normal(size=WEIGHED) for name in SIGNALS}
    batch = FailedBatch(
        np.ones(WEIGHED),
        [None] * WEIGHED,
        [["slip"] if slips else [] for slips in chance.random(WEIGHED) < 0.3],
        chance.choice(["lift", "approach", "place"], WEIGHED).tolist(),
        {
            name: chance.choice(["a", "b", "c"], WEIGHED).tolist()
            for name in ("lighting", "object", "surface", "clutter")
        },
        signals,
    )
    taxonomy = Taxonomy({"signals": {"shared_*": ["visual", "sensor_noise", "actuation"]}})
    report.add("weighing 2,000 failures", best(lambda: weigh(batch, taxonomy)), "ms")
    report.add("sorting their signals", best(lambda: [np.argsort(x) for x in signals.values()]), "ms", "floor")


def play_episodes(report: Report) -> None:
    rng = np.random.default_rng(0)
    report.add("playing 50,000 episodes", best(lambda: run(SIM, draw_scene(PLAYED, rng)), 3), "ms")
    report.add("drawing 20 numbers each", best(lambda: rng.normal(size=(PLAYED, 20)), 3), "ms", "floor")


@contextmanager
def client_of(service: Service, key: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    base = f"{service.running['url']}/api/v1"
    with httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False) as client:
        yield client


def send_again(service: Service, report: Report, number: int) -> None:
    """A sender that saw no answer sends its batch again: known ids are looked up, not stored."""
    body = json.dumps([record | {"id": f"{number}-{record['id']}"} for record in make_records(SENT_AGAIN)])
    with client_of(service, service.key) as client, service.folding_paused():
        for time_, member in (("first", "accepted"), ("again", "duplicates")):
            began = time.perf_counter()
            answer = client.post("/episodes/batch", content=body).raise_for_status().json()
            report.add(f"a batch of 10,000, {time_}", MS * (time.perf_counter() - began), "ms")
            if answer[member] != SENT_AGAIN:
                raise Wrong(f"sent {time_}: {answer}")
    service.wait_until_folded()


def key_of(service: Service, project: str) -> str:
    database = Database(service.database_url)
    try:
        secret = Settings(data_dir=service.data_dir).server_secret()
        return make_key(database, secret, project=project, scope="ingest", name="bench")
    finally:
        database.close()


def send_beside_a_noisy_key(service: Service, report: Report) -> None:
    """Single posts of one key alone, then while four senders of another are told to wait again and again."""
    records = make_records(2 * QUIET + 1000)
    batch = json.dumps(records[2 * QUIET :])
    noisy_key, quiet_key = key_of(service, "noisy"), key_of(service, f"quiet-{len(report.figures)}")
    stopping = threading.Event()
    statuses: list[int] = []

    def flood() -> None:
        with client_of(service, noisy_key) as client:
            while not stopping.is_set():
                statuses.append(client.post("/episodes/batch", content=batch).status_code)
                time.sleep(0.005)

    def post(client: httpx.Client, part: list[dict[str, Any]]) -> float:
        took = []
        for record in part:
            took.append(timed(lambda one=record: client.post("/episodes", json=one).raise_for_status()))
            time.sleep(0.02)
        return statistics.median(took)

    threads = [threading.Thread(target=flood) for _ in range(NOISY)]
    with client_of(service, quiet_key) as client:
        report.add("quiet key, alone", post(client, records[:QUIET]), "ms")
        for thread in threads:
            thread.start()
        try:
            report.add("quiet key, beside noisy ones", post(client, records[QUIET : 2 * QUIET]), "ms")
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
    if statuses.count(429) <= statuses.count(200):
        raise Wrong(f"the noisy key was not held back: {statuses}")


def follow_page(service: Service, report: Report, rounds: int) -> None:
    """From the fold until an open deployment page shows it, beside the pause in which the page asks for news."""
    chromium = shutil.which("chromium")
    if chromium is None:
        report.remark("Chromium is not installed: no time until an open page follows.")
        return
    from playwright.sync_api import sync_playwright

    pause = re.search(r"EVERY_MS = (\d+)", (ROOT / "frontend/static/live.js").read_text())
    assert pause is not None
    database = Database(service.database_url)
    put_person(database, PERSON["email"], PERSON["password"], PROJECT, "viewer")
    database.close()
    patterns = [one for one in make_records(400) if one.get("deployment")][:40]
    with sync_playwright() as playwright, client_of(service, service.key) as client:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(base_url=service.running["url"])
        page.goto("/sign-in")
        for name, value in PERSON.items():
            page.fill(f"[name={name}]", value)
        page.click("form [type=submit], form button")
        page.goto(f"/deployments/{patterns[0]['deployment']}")
        for number in range(rounds):
            page.wait_for_selector("[data-chart][data-state=drawn]")
            shown = page.locator(".headline").inner_text()
            mine = [
                one | {"id": f"f{number}-{i}", "deployment": patterns[0]["deployment"]}
                for i, one in enumerate(patterns)
            ]
            client.post("/episodes/batch", json=mine).raise_for_status()
            service.wait_until_folded()
            began = time.perf_counter()
            page.wait_for_function("shown => document.querySelector('.headline').innerText !== shown", arg=shown)
            report.add("fold → open page", MS * (time.perf_counter() - began), "ms")
            report.add("pause of an open page", float(pause[1]), "ms", "as written in live.js")
        browser.close()


if __name__ == "__main__":
    main()
