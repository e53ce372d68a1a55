"""What the client costs a control loop, and how fast it empties its spool, each next to its floor.

    python -m bench.client [--rounds N] [--json FILE]

The floor of ending an episode is one write of the same bytes to a file; the floor of sending is the same records in
prepared bodies, posted over one persistent connection by a loop that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from gapwatch_client import Gapwatch
from gapwatch_client.backlog import BATCH_RECORDS

from bench.records import encode, make_records
from bench.report import Report
from bench.service import Service, scratch_directory, serving
from bench.sink import forgetting, swallowing

OBSERVED = 100_000
LOOP_HZ = 200
ENDED = 1500
SENT = 20_000
NOWHERE = "http://127.0.0.1:9"
US = 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/client.json"))
    options = parser.parse_args()
    report = Report()
    load = os.getloadavg()[0]
    report.remark(f"{os.cpu_count()} cores, load {load:.1f} before the run{' (busy!)' if load > 1 else ''}")
    with scratch_directory(Path(".cache/bench")) as directory, serving(directory / "data") as service:
        for number in range(options.rounds):
            spool = directory / f"spool-{number}"
            observe(report, spool)
            end_episodes(report, spool, "server away", NOWHERE, "gw_bench")
            end_episodes(report, spool, "while sending", service.running["url"], service.key)
            with swallowing() as url:
                end_episodes(report, spool, "network swallows", url, "gw_bench", arrive=False)
            write_lines(report, spool)
            send(report, spool, service)
            shutil.rmtree(spool)
    report.judge_value("observe(), median", "observe(), median", 5, at_most=True)
    for when in ("server away", "while sending", "network swallows"):
        report.judge_value(f"end(), p99, {when}", f"end(), p99, {when}", 1000, at_most=True)
    report.judge_value(
        "end(), longest, network swallows", "end(), longest, network swallows", 200_000, at_most=True
    )
    report.judge_value("sending", "sending", 5000)
    report.judge_value("sending to a sink", "sending to a sink", 5000)
    report.judge_ratio("sending / prepared bodies", "sending", "prepared bodies", 0.5)
    report.show()
    report.write(options.json)
    sys.exit(any(verdict.word == "FAIL" for verdict in report.verdicts))


def observe(report: Report, spool: Path) -> None:
    """Time each call, including the cost of timing; five streams in turn, as in a loop."""
    with Gapwatch(NOWHERE, "gw_bench", spool / "observe", task="t", policy="p@1", deployment="d") as gw:
        episode = gw.episode()
        names = [f"stream_{number}" for number in range(5)]
        took = timed(lambda number: episode.observe(names[number % 5], 0.01 * number), OBSERVED)
    report.add("observe(), median", statistics.median(took) * US, "µs")
    report.add("observe(), p99", percentile(took, 0.99) * US, "µs")


def end_episodes(report: Report, spool: Path, when: str, url: str, key: str, *, arrive: bool = True) -> None:
    """Run a loop at 200 Hz that ends an episode of 1 KB every time, while threads sync and send."""
    records = make_records(ENDED)
    with Gapwatch(url, key, spool / when, linger_s=0.05) as gw:

        def episode_of(record: dict) -> Callable[[], None]:
            fields = {name: value for name, value in record.items() if name not in {"policy", "id"}}
            return gw.episode(**fields, policy=(record["policy"]["name"], record["policy"]["version"])).end

        ends = [episode_of(record) for record in records]

        def end(number: int) -> None:
            ends[number]()

        took = timed(end, ENDED, pause_s=1 / LOOP_HZ)
        if arrive and url != NOWHERE and not gw.flush(60):
            raise SystemExit(f"not everything was sent: {gw.status()}")
    report.add(f"end(), median, {when}", statistics.median(took) * US, "µs")
    report.add(f"end(), p99, {when}", percentile(took, 0.99) * US, "µs")
    report.add(f"end(), longest, {when}", max(took) * US, "µs")


def write_lines(report: Report, spool: Path) -> None:
    lines = [encode(record) + b"\n" for record in make_records(ENDED)]
    fd = os.open(spool / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    took = timed(lambda number: os.write(fd, lines[number]), ENDED, pause_s=1 / LOOP_HZ)
    os.close(fd)
    report.add("one write, median", statistics.median(took) * US, "µs", "floor of end()")
    report.add("one write, p99", percentile(took, 0.99) * US, "µs", "floor of end()")


def send(report: Report, spool: Path, service: Service) -> None:
    """Empty a spool that filled while the server was down, alternating with the floor."""
    records = make_records(SENT)
    with forgetting() as url:
        note = "stores nothing: the client's own share"
        report.add("sending to a sink", SENT / empty_spool(spool / "sink", records, url, "gw_bench"), "ep/s", note)
    with service.folding_paused():
        service.empty()
        took_s = empty_spool(spool / "backlog", records, service.running["url"], service.key)
        service.check_stored(SENT)
        report.add("sending", SENT / took_s, "ep/s")
        service.empty()
        report.add("prepared bodies", SENT / post_prepared(service, records), "ep/s", "floor of sending")
        service.check_stored(SENT)
    service.empty()


def empty_spool(directory: Path, records: list[dict], url: str, key: str) -> float:
    with Gapwatch(NOWHERE, "gw_bench", directory) as gw:
        for record in records:
            gw.send(record)
    began = time.perf_counter()
    with Gapwatch(url, key, directory) as gw:
        if not gw.flush(120):
            raise SystemExit(f"not everything was sent: {gw.status()}")
        return time.perf_counter() - began


def post_prepared(service: Service, records: list[dict]) -> float:
    bodies = []
    for start in range(0, len(records), BATCH_RECORDS):
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        bodies.append(
            packer.compress(b"\n".join(map(encode, records[start : start + BATCH_RECORDS]))) + packer.flush()
        )
    address = urlsplit(service.running["url"])
    headers = {"Authorization": f"Bearer {service.key}", "Content-Encoding": "gzip"}
    headers["Content-Type"] = "application/x-ndjson"
    connection = HTTPConnection(address.hostname, address.port, timeout=60)
    began = time.perf_counter()
    for body in bodies:
        connection.request("POST", "/api/v1/episodes/batch", body, headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(answer.read())
        answer.read()
    took_s = time.perf_counter() - began
    connection.close()
    return took_s


def timed(call: Callable[[int], object], count: int, pause_s: float = 0.0) -> list[float]:
    """Seconds of each call. A pause lets the other threads run, as in a loop that waits for its next turn."""
    clock = time.perf_counter
    took = []
    for number in range(count):
        began = clock()
        call(number)
        took.append(clock() - began)
        if pause_s:
            time.sleep(pause_s)
    return took


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


if __name__ == "__main__":
    main()
