"""How long a stop takes to reach every robot: clients that wait for the permit, as `gw.permit` does, and one press.

A run presses stop and resume in turn, first with nothing else going on and then while episodes are taken in. What
is measured is the time from before the decision is written until a client has read the answer that tells of it.
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
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx

from bench.records import BATCH, encode, make_records, write_bodies
from bench.report import Report
from bench.senders import Sent, quantile, send_paced
from bench.service import Service, Wrong, scratch_directory, serving
from gapwatch.settings import ROOT
from gapwatch.store.core.database import Database
from gapwatch.store.rollout import rollouts
from gapwatch.store.rollout.rollouts import Decision, PolicyVersion

DEPLOYMENT = "berlin-line-1"
BOUND_S = 2.0


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


def press(database: Database, project_id: int, *, stop: bool) -> tuple[int, float]:
    """Decide; return the decision and when it was pressed."""
    at = time.monotonic()
    with database.transaction(project_id) as connection:
        rollout = rollouts.lock_rollout(connection, project_id, DEPLOYMENT)
        if rollout is None:
            raise Wrong("there is no rollout")
        kind, state = ("stop", "stop") if stop else ("resume", "go")
        row = rollouts.decide(
            connection, project_id, rollout, Decision(kind, rollout.stage, state, "bench", "bench", {"kind": kind})
        )
    return row.id, at


async def measure(service: Service, database: Database, clients: int, presses: int) -> tuple[list[float], int]:
    robots = Robots(service, clients)
    running = asyncio.create_task(robots.run())
    while len({number for knew in robots.knew.values() for number in knew}) < clients:
        await asyncio.sleep(0.2)
    await asyncio.sleep(3)
    waited: list[float] = []
    for number in range(presses):
        decision, at = await asyncio.to_thread(press, database, service.project_id, stop=number % 2 == 0)
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


def prepare(service: Service, database: Database) -> None:
    record = next(one for one in make_records(500) if one.get("deployment") == DEPLOYMENT)
    base, headers = f"{service.running['url']}/api/v1", {"Authorization": f"Bearer {service.key}"}
    httpx.post(f"{base}/episodes", json=record, headers=headers, trust_env=False).raise_for_status()
    deployment = service.value("SELECT id FROM deployments WHERE slug = %s", DEPLOYMENT)
    with database.transaction(service.project_id) as connection:
        rollouts.put_rollout(
            connection,
            service.project_id,
            deployment,
            stage="full",
            policy=PolicyVersion("bin-pick", "1.4.0"),
            fallback=PolicyVersion("bin-pick", "1.3.0"),
            plan=None,
        )


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
    ):
        database = Database(service.database_url)
        prepare(service, database)
        waited, errors = asyncio.run(measure(service, database, asked.clients, asked.presses))
        show(report, "alone", waited, errors)
        connections = service.value(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gapwatch-permits'"
        )
        report.remark(f"connections of the database for {asked.clients} clients: {connections}")
        sending = send(service, sender, directory, 5.0 * asked.presses + 20, asked.rate)
        time.sleep(3)
        waited, errors = asyncio.run(measure(service, database, asked.clients, asked.presses))
        is_sending = not sending.done()
        show(report, f"during ingest at {asked.rate} a second", waited, errors)
        sent, _ = sending.result()
        describe(report, sent, asked.rate, is_sending=is_sending)
        database.close()
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
