"""The measurements of `bench.ingest`: the contestants alternate, round by round, on an empty table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bench import fill, floor, lag, records
from bench.peers import mlflow_server, ordinary_server
from bench.report import Report
from bench.senders import Sent, Target, send_batches, send_singles
from bench.service import Service, Watch, Wrong, serving
from gapwatch.garbage_collection import collect_seldom
from gapwatch.rollup.fold import fold_due_work
from gapwatch.store.core.database import Database

FLOOR = "COPY by psycopg, 1 connection (the floor)"
PACKED = "COPY of packed rows, 1 connection"
BATCHES = "batches of 500, 1 web process"
ZIPPED = "batches, gzip bodies"
FOLDING = "batches, while workers fold"
FOLD_RATE = "folding by 1 worker"
ORDINARY = "ordinary service, single records, 32 connections"
SINGLES = "single records, 32 connections"
SINGLES_FOLDING = "single records, 32 connections, while workers fold"
SATURATED = "single records, 128 connections, while workers fold"
BESIDE_MLFLOW = "batches, while workers fold, beside MLflow"
LAG = "accepted → in the numbers, p95"
PACE = "rate held meanwhile"
AT_REST = "memory: web at rest"
UNDER_LOAD = "memory: web, peak under load"
EMPTY = "batches, empty table beside the full one"
FULL = "batches, full table"
RUNS = "MLflow, a run an episode, 16 processes"
METRICS = "MLflow, 1,000-metric batches into one run"
METRICS_4 = "MLflow, 1,000-metric batches, 4 processes"
FLOOR_2 = "COPY by psycopg, 2 connections (the floor)"
PACKED_2 = "COPY of packed rows, 2 connections"
BATCHES_2 = "batches of 500, 2 web processes"

CONNECTIONS = 4
# How much later ids sent to the full table are than those in it, in steps of 65 s.
NEWER = 1000
LAG_RATE = 5000


@dataclass(frozen=True)
class Size:
    """The size of a run; bounded in count and in time."""

    records: int
    rounds: int
    singles_s: float
    lag_s: float
    stored: int
    mlflow_s: float
    mlflow_rounds: int


WHOLE = Size(records=40_000, rounds=5, singles_s=4, lag_s=60, stored=1_000_000, mlflow_s=20, mlflow_rounds=2)
QUICK = Size(records=10_000, rounds=2, singles_s=1.5, lag_s=6, stored=100_000, mlflow_s=4, mlflow_rounds=1)


class Run:
    """The processes that send, and what they send."""

    def __init__(self, directory: Path, size: Size, report: Report) -> None:
        self.directory, self.size, self.report = directory, size, report
        made = records.make_records(size.records)
        encoded = [records.encode(record) for record in made]
        joined = [(len(part), b"[" + b",".join(part) + b"]") for part in records.batches(encoded)]
        self.batches = records.write_bodies(directory / "batches", joined)
        self.singles = records.write_bodies(directory / "singles", [(1, body) for body in encoded])
        self.episodes = directory / "episodes.json"
        self.episodes.write_text(json.dumps(made[:2000]))
        self.rows = directory / "rows"
        self.bytes_each = sum(map(len, encoded)) / len(encoded)

    def __enter__(self) -> Run:
        context = get_context("spawn")
        self._senders = [ProcessPoolExecutor(1, mp_context=context) for _ in range(2)]
        self.report.add("record", self.bytes_each, "bytes of JSON")
        return self

    def __exit__(self, *_: object) -> None:
        for sender in self._senders:
            sender.shutdown(cancel_futures=True)

    def prepare(self, service: Service) -> None:
        """Send everything once: to register names, warm up the code, and store the rows that the floor uses."""
        with service.folding_paused():
            for _ in range(2):
                service.empty()
                self._check(service, self._send(service))
            floor.write_rows(service.database_url, service.project_id, self.rows)
            self._copy(service, adapted=False)
            self._copy(service, adapted=True)
        service.empty()

    def measure_batches(self, service: Service) -> None:
        web = service.children("web")
        for _ in self._rounds("batches against COPY"):
            with service.folding_paused():
                self.report.add(PACKED, self._copy(service, adapted=False).rate)
                self.report.add(FLOOR, self._copy(service, adapted=True).rate)
                service.empty()
                with Watch(web) as watch:
                    sent = self._send(service)
                self._check(service, sent)
                self.report.add(BATCHES, sent.rate)
                self._explain("batches", sent, watch)
                self.report.add(UNDER_LOAD, watch.peak_mb, "MB")
                self.report.add(FOLD_RATE, self._fold(service, sent))
                service.empty()
                with Watch(web) as watch:
                    sent = self._send(service, packed=True)
                self._check(service, sent)
                self.report.add(ZIPPED, sent.rate)
                self.report.add(UNDER_LOAD, watch.peak_mb, "MB")
            self.report.add(FOLDING, self._whole_service(service).rate)

    def measure_singles(self, service: Service) -> None:
        web = service.children("web")
        with ordinary_server.ordinary_serving(service.database_url, self.directory) as ordinary:
            self._single(ordinary.target, 32, seconds=0.5)
            for _ in self._rounds("single records against the ordinary service"):
                ordinary.empty()
                sent = self._single(ordinary.target, 32)
                if ordinary.stored() != sent.accepted:
                    raise Wrong("the ordinary service did not store what it acknowledged")
                self.report.add(ORDINARY, sent.rate)
                with service.folding_paused():
                    service.empty()
                    with Watch(web) as watch:
                        sent = self._single(service.target("/episodes"), 32)
                    self._check(service, sent)
                    self.report.add(SINGLES, sent.rate)
                    self._explain("single records", sent, watch)
                self.report.add(SINGLES_FOLDING, self._whole_service(service, 32).rate)

    def measure_lag(self, service: Service) -> None:
        print("accepted → in the numbers …", flush=True)
        service.wait_until_watched()
        service.empty()
        measured = lag.measure_lag(
            service,
            self._senders[0],
            self.directory,
            seconds=self.size.lag_s,
            episodes_per_second=LAG_RATE,
        )
        service.wait_until_folded()
        self._check(service, measured.sent)
        self.report.add(LAG, measured.share_s(0.95), "s")
        self.report.add(PACE, measured.sent.rate, note=f"{LAG_RATE:,} wanted, for {self.size.lag_s:.0f} s")
        self.report.add("accepted → in the numbers, median", measured.share_s(0.5), "s")
        self.report.add("answer at that rate, p95", measured.sent.waited_ms(0.95), "ms")

    def measure_stored(self, service: Service, data_dir: Path, stored: int) -> None:
        """Start a second, full service beside the first; batches go to each in turn."""
        with serving(data_dir) as full, full.folding_paused(), service.folding_paused():
            for _ in range(2):
                full.empty()
                self._check(full, self._send(full))
            print(f"filling a table with {stored:,} episodes …", flush=True)
            fill.fill_episodes(full.database_url, full.project_id, stored)
            for round_number in self._rounds("batches into the full and the empty table"):
                service.empty()
                sent = self._send(service)
                self._check(service, sent)
                self.report.add(EMPTY, sent.rate)
                full.forget_work()
                number = NEWER + round_number
                sent = self._send(full, number=number)
                full.check_stored(sent.accepted, records.ids_of(self.batches, number))
                self.report.add(FULL, sent.rate, note=f"{stored:,} stored")

    def measure_mlflow(self, service: Service, environment: Path) -> None:
        try:
            mlflow_server.install(environment)
            self._beside_mlflow(service, environment)
        except mlflow_server.Unavailable as reason:
            self.report.remark(f"MLflow is left out: {reason}")

    def _beside_mlflow(self, service: Service, environment: Path) -> None:
        """Measure ours with everything running, and MLflow with ours suspended: in turn, on one Postgres."""
        seconds, directory = self.size.mlflow_s, self.directory / "mlflow"
        with mlflow_server.mlflow_serving(environment, service.database_url, directory) as server:
            note = f"version {server.version}"
            # Its processes load much of their code with their first requests.
            server.log("runs", self.episodes, processes=8, seconds=seconds / 2)
            for _ in self._rounds("MLflow", self.size.mlflow_rounds):
                self.report.add(SATURATED, self._whole_service(service, 128).rate)
                with service.folding_paused():
                    rate = server.log("runs", self.episodes, processes=16, seconds=seconds)
                self.report.add(RUNS, rate, note=note)
                self.report.add(BESIDE_MLFLOW, self._whole_service(service).rate)
                for name, processes in ((METRICS, 1), (METRICS_4, 4)):
                    with service.folding_paused():
                        rate = server.log("metrics", self.episodes, processes=processes, seconds=seconds)
                    self.report.add(name, rate, note=f"{note}; conditions and ids lost")

    def measure_two_processes(self, service: Service) -> None:
        with service.folding_paused():
            for _ in range(3):  # both processes learn the names
                service.empty()
                self._check(service, self._send(service, connections=2 * CONNECTIONS))
            for _ in self._rounds("two web processes against two connections"):
                self.report.add(PACKED_2, self._copy_twice(service, adapted=False).rate)
                self.report.add(FLOOR_2, self._copy_twice(service, adapted=True).rate)
                service.empty()
                sent = self._send(service, connections=2 * CONNECTIONS)
                self._check(service, sent)
                self.report.add(BATCHES_2, sent.rate)

    def _rounds(self, what: str, rounds: int | None = None) -> Iterator[int]:
        rounds = rounds or self.size.rounds
        for number in range(1, rounds + 1):
            print(f"{what}, round {number} of {rounds} …", flush=True)
            yield number

    def _whole_service(self, service: Service, singles: int | None = None) -> Sent:
        """Measure accepting while workers fold, as in use; batches, or single records over several connections."""
        service.empty()
        with Watch(service.children("web")) as watch:
            sent = self._single(service.target("/episodes"), singles) if singles else self._send(service)
        service.wait_until_folded()
        self._check(service, sent)
        self.report.add(UNDER_LOAD, watch.peak_mb, "MB")
        return sent

    def _send(
        self, service: Service, *, number: int = 0, packed: bool = False, connections: int = CONNECTIONS
    ) -> Sent:
        sending = self._senders[0].submit(
            send_batches,
            service.target("/episodes/batch"),
            self.batches,
            connections=connections,
            number=number,
            packed=packed,
        )
        return _only(200, sending.result())

    def _single(self, target: Target, connections: int, seconds: float | None = None) -> Sent:
        seconds = seconds or self.size.singles_s
        sending = self._senders[0].submit(
            send_singles, target, self.singles, connections=connections, seconds=seconds
        )
        return _only(201, sending.result())

    def _copy(self, service: Service, *, adapted: bool) -> Sent:
        service.empty()
        copying = self._senders[0].submit(floor.copy_rows, service.database_url, self.rows, adapted=adapted)
        copied = copying.result()
        if service.value("SELECT count(*) FROM episodes") != copied.accepted:
            raise Wrong("COPY did not store every row")
        return copied

    def _copy_twice(self, service: Service, *, adapted: bool) -> Sent:
        """COPY over two connections in two processes, each with half of the rows, starting together."""
        service.empty()
        parts = len(self._senders)
        begin = time.monotonic() + 1
        copying = [
            sender.submit(
                floor.copy_rows,
                service.database_url,
                self.rows,
                adapted=adapted,
                part=part,
                parts=parts,
                begin=begin,
            )
            for part, sender in enumerate(self._senders)
        ]
        copied = [future.result() for future in copying]
        rows = sum(each.accepted for each in copied)
        if service.value("SELECT count(*) FROM episodes") != rows:
            raise Wrong("COPY did not store every row")
        return Sent(rows, min(each.started for each in copied), max(each.ended for each in copied))

    def _fold(self, service: Service, sent: Sent) -> float:
        """Episodes per second that one worker's code folds, with the real workers suspended."""
        database = Database(service.database_url, pool_size=1)
        with database.transaction():  # a worker has been connected for long
            collect_seldom()
        started = time.monotonic()
        fold_due_work(database)
        seconds = time.monotonic() - started
        database.close()
        service.wait_until_folded(1)
        self._check(service, sent)
        return sent.accepted / seconds

    def _explain(self, what: str, sent: Sent, watch: Watch) -> None:
        """Where the time of a figure went."""
        self.report.add(f"{what}: processor time of web", 1e6 * watch.cpu_s / sent.accepted, "µs/ep")
        self.report.add(f"{what}: processor time of the sender", 1e6 * sent.cpu_s / sent.accepted, "µs/ep")
        self.report.add(f"{what}: answer, p95", sent.waited_ms(0.95), "ms")

    def _check(self, service: Service, sent: Sent) -> None:
        service.check_stored(sent.accepted)


def _only(status: int, sent: Sent) -> Sent:
    if set(sent.answers) != {status}:
        raise Wrong(f"answers other than {status}: {sent.answers}")
    return sent
