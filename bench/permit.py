"""How long a stop takes to reach every robot: clients that wait for the permit, as `gw.permit` does, and one press.

A run presses stop and resume in turn by the API, of a full deployment with a plan and thousands of episodes, first
with nothing else going on and then while episodes are taken in. What is measured is the time from before the call is
made until a client has read the answer that tells of it.
`make bench-permit`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx

from bench.records import BATCH, encode, make_records, write_bodies
from bench.report import Report
from bench.senders import Sent, quantile, send_paced
from bench.service import PROJECT, Service, Wrong, scratch_directory, serving
from gapwatch.accounts import make_key
from gapwatch.settings import ROOT, Settings
from gapwatch.store.core.database import Database
from gapwatch.store.rollout.evidence import MOST_IN_HASTE

DEPLOYMENT = "berlin-line-1"
BOUND_S = 2.0
CRITERIA = [
    {"kind": "max_drop", "stage": "full"},
    {"kind": "max_rate", "measure": "overrides", "limit": 0.1, "stage": "full"},
]


class Robots:
    """Clients with a connection each that always wait for news; when each read of which decision is kept."""

    def __init__(self, service: Service, count: int) -> None:
        target = service.target(f"/deployments/{DEPLOYMENT}/permit")
        self._host, self._port, self._key, self._count = target.host, target.port, service.key, count
        self.knew: dict[int | None, dict[int, float]] = {}
        self.errors = 0
        self._ending = False

    async def run(self) -> None:
        await asyncio.gather(*(self._robot(number) for number in range(self._count)))

    def end(self) -> None:
        self._ending = True

    async def _robot(self, number: int) -> None:
        tag = ""
        await asyncio.sleep(number * 0.002)
        while not self._ending:
            try:
                reader, writer = await asyncio.open_connection(self._host, self._port)
                while not self._ending:
                    status, headers, body = await self._ask(reader, writer, number, tag)
                    tag = headers.get("etag", tag)
                    if status == 200:
                        told = json.loads(body)["decision"]
                        self.knew.setdefault(told, {})[number] = time.monotonic()
                    elif status != 304:
                        self.errors += 1
                        await asyncio.sleep(0.2)
                writer.close()
            except (OSError, asyncio.IncompleteReadError):
                self.errors += 1
                await asyncio.sleep(0.2)

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, tag: str
    ) -> tuple[int, dict[str, str], bytes]:
        wait = "?wait=25" if tag else ""
        known = f"If-None-Match: {tag}\r\n" if tag else ""
        writer.write(
            f"GET /api/v1/deployments/{DEPLOYMENT}/permit{wait} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Authorization: Bearer {self._key}\r\nGapwatch-Client: robot-{number}\r\n{known}\r\n".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split()[1]), headers, body


def press(admin: httpx.Client, *, stop: bool) -> tuple[int, float]:
    """Decide; return the decision and when it was pressed."""
    at = time.monotonic()
    kind = "stop" if stop else "resume"
    answer = admin.post(f"/deployments/{DEPLOYMENT}/rollout/{kind}", json={"reason": "bench"})
    return int(answer.raise_for_status().json()["id"]), at


async def measure(service: Service, admin: httpx.Client, clients: int, presses: int) -> tuple[list[float], int]:
    robots = Robots(service, clients)
    running = asyncio.create_task(robots.run())
    while len({number for knew in robots.knew.values() for number in knew}) < clients:
        await asyncio.sleep(0.2)
    await asyncio.sleep(3)
    waited: list[float] = []
    for number in range(presses):
        decision, at = await asyncio.to_thread(press, admin, stop=number % 2 == 0)
        deadline = time.monotonic() + 20
        while len(robots.knew.get(decision, {})) < clients and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        knew = robots.knew.get(decision, {})
        if len(knew) < clients:
            raise Wrong(f"{clients - len(knew)} of {clients} clients never knew of decision {decision}")
        waited += [then - at for then in knew.values()]
        await asyncio.sleep(0.5)
    robots.end()
    running.cancel()
    return waited, robots.errors


def prepare(service: Service, admin: httpx.Client) -> None:
    """A full deployment with a plan, and as many episodes as a stop looks at."""
    found = [one for one in make_records(4000) if one.get("deployment") == DEPLOYMENT]
    alike = {name: found[0][name] for name in ("policy", "task")}
    policy = found[0]["policy"]
    of_robots = ("deployment", "stage", "robot", "site")
    simulated = {"domain": "sim", "simulator": {"name": "mujoco", "version": "3"}}
    sims = [
        {name: value for name, value in one.items() if name not in of_robots}
        | alike
        | simulated
        | {"id": f"sim-{n}"}
        for n, one in enumerate(repeated(found, 1000))
    ]
    take(service, [*sims, found[0] | alike])
    plan = {"margin": 0.3, "fallback": {"name": policy["name"], "version": "before"}, "criteria": CRITERIA}
    body = {"stage": "full", "policy": policy, "plan": plan}
    admin.put(f"/deployments/{DEPLOYMENT}/rollout", json=body).raise_for_status()
    take(
        service,
        [
            one | alike | {"id": f"full-{n}", "stage": "full"}
            for n, one in enumerate(repeated(found, MOST_IN_HASTE))
        ],
    )
    looks = admin.get(f"/deployments/{DEPLOYMENT}/gate").raise_for_status().json()["looks"]
    if looks < MOST_IN_HASTE:
        raise Wrong(f"the gate rests on {looks} episodes, not on {MOST_IN_HASTE}")


def repeated(records: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return [records[place % len(records)] for place in range(count)]


def take(service: Service, records: list[dict[str, Any]]) -> None:
    answer = httpx.post(
        f"{service.running['url']}/api/v1/episodes/batch",
        json=records,
        headers={"Authorization": f"Bearer {service.key}"},
        trust_env=False,
        timeout=60,
    ).raise_for_status()
    if answer.json()["rejected"]:
        raise Wrong(f"episodes were refused: {answer.text[:500]}")


@contextmanager
def administering(service: Service) -> Iterator[httpx.Client]:
    database = Database(service.database_url)
    secret = Settings(data_dir=service.data_dir).server_secret()
    key = make_key(database, secret, project=PROJECT, scope="admin", name="bench")
    database.close()
    headers, base = {"Authorization": f"Bearer {key}"}, f"{service.running['url']}/api/v1"
    with httpx.Client(base_url=base, headers=headers, trust_env=False, timeout=60) as client:
        yield client


def send(service: Service, sender: ProcessPoolExecutor, directory: Path, seconds: float, rate: int) -> Future[Any]:
    bodies = [(BATCH, encode(make_records(BATCH, seed=1000 + number))) for number in range(10)]
    return sender.submit(
        send_paced,
        service.target("/episodes/batch"),
        write_bodies(directory / "paced", bodies),
        count=round(seconds * rate / BATCH),
        per_second=rate / BATCH,
        connections=4,
        marker=b"marker-%06d",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--presses", type=int, default=10)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/permit.json"))
    asked = parser.parse_args()
    report = Report()
    load = os.getloadavg()[0]
    report.remark(f"{os.cpu_count()} cores, load {load:.1f} before the run{' (busy!)' if load > 1 else ''}")
    with (
        scratch_directory(ROOT / ".cache/bench") as directory,
        serving(directory / "permit") as service,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as sender,
        administering(service) as admin,
    ):
        prepare(service, admin)
        waited, errors = asyncio.run(measure(service, admin, asked.clients, asked.presses))
        show(report, "alone", waited, errors)
        connections = service.value(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gapwatch-permits'"
        )
        report.remark(f"connections of the database for {asked.clients} clients: {connections}")
        sending = send(service, sender, directory, 5.0 * asked.presses + 20, asked.rate)
        time.sleep(3)
        waited, errors = asyncio.run(measure(service, admin, asked.clients, asked.presses))
        is_sending = not sending.done()
        show(report, f"during ingest at {asked.rate} a second", waited, errors)
        sent, _ = sending.result()
        describe(report, sent, asked.rate, is_sending=is_sending)
    report.remark(f"load {os.getloadavg()[0]:.1f} after it")
    report.show()
    report.write(asked.json)
    sys.exit(any(verdict.word == "FAIL" for verdict in report.verdicts))


def show(report: Report, when: str, waited: list[float], errors: int) -> None:
    p95 = quantile(waited, 0.95)
    report.add(f"stop known by 95 %, {when}", p95, "s")
    report.judge_value(f"stop known by 95 %, {when}", f"stop known by 95 %, {when}", BOUND_S, at_most=True)
    report.add(f"stop known by half, {when}", statistics.median(waited), "s")
    report.add(f"stop known by the last, {when}", max(waited), "s")
    report.remark(f"{len(waited)} times a client was told {when}, 95 % within {p95:.2f} s; {errors} calls failed")


def describe(report: Report, sent: Sent, rate: int, *, is_sending: bool) -> None:
    if not is_sending:
        raise Wrong("episodes were all sent before the last press: the second figure is not of busy ingest")
    report.add("episodes taken in a second meanwhile", sent.rate, "/s")
    report.remark(f"asked for {rate} a second on {os.cpu_count()} cores; answers {sent.answers}")


if __name__ == "__main__":
    main()
