"""Senders that write down what was acknowledged, a killer, and the comparison of the two with the tables."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import redis

from gapwatch.rollup.verify import verify_project
from parts import Project, Service, clean_environment, episode, wait_until

OUTCOMES = ("success", "failure", "aborted", "abandoned")
KINDS = ("web", "worker", "pool process", "beat", "redis", "redis wiped", "postgres")
PROBLEM_JSON = "application/problem+json"
# Impatient on purpose: a sender that waits for Retry-After would hide how soon the service is back.
PAUSE_S = 0.05
GIVE_UP_AFTER_S = 60.0
LARGEST_BATCH = 40
WEB_PROCESSES = 2
DELETED = "deleted"
# Seen: 340,000 left after 300 s of kills, of ninety days and many places, were folded in 84 s, beside the watch.
LEAST_FOLDED_A_SECOND = 3_000
SECRET = "a secret of the tests, long enough for the service"


class Ledger:
    """What was acknowledged, in a file outside the service: a line an episode, written after the 2xx only.

    The last line of an episode says how it stands: its outcome, or that it was deleted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = path.open("a")

    def write(self, words: dict[str, str]) -> None:
        lines = "".join(f"{id_} {word}\n" for id_, word in words.items())
        with self._lock:
            self._file.write(lines)
            self._file.flush()

    def close(self) -> None:
        self._file.close()

    def read(self) -> dict[str, str]:
        return dict(line.split() for line in self.path.read_text().splitlines())


@dataclass
class Tally:
    """What all senders saw together."""

    statuses: Counter[int] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    # Requests that needed more than one try, those of them that an earlier try had stored, and requests that
    # were sent once more after their acknowledgement.
    retried: int = 0
    already_stored: int = 0
    repeated: int = 0
    corrected: int = 0
    deleted: int = 0
    acknowledged_at: list[float] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Parcel:
    """One request with its bytes, so that every try sends the same."""

    episodes: list[dict[str, Any]]
    path: str
    body: bytes
    headers: dict[str, str]


class Sender(threading.Thread):
    """Sends until told to stop, and tries each request until it is acknowledged."""

    def __init__(
        self,
        project: Project,
        ledger: Ledger,
        tally: Tally,
        *,
        seed: int,
        retried_statuses: frozenset[int] = frozenset({429, 503}),
    ) -> None:
        super().__init__(name=f"{type(self).__name__.lower()}-{seed}")
        self._project = project
        self._ledger = ledger
        self._tally = tally
        self._random = random.Random(seed)
        self._retried_statuses = retried_statuses
        self._stopping = threading.Event()
        self._stopped_at = 0.0

    def stop(self) -> None:
        self._stopped_at = time.monotonic()
        self._stopping.set()

    def run(self) -> None:
        acknowledged: list[Parcel] = []
        with self._project.client() as client:
            client.timeout = 10
            while not self._stopping.is_set():
                parcel = self._pack()
                if self._deliver(client, parcel, is_new=True):
                    acknowledged = [*acknowledged[-20:], parcel]
                if acknowledged and self._random.random() < 0.15:
                    with self._tally.lock:
                        self._tally.repeated += 1
                    self._deliver(client, self._random.choice(acknowledged), is_new=False)

    def _pack(self) -> Parcel:
        kind = self._random.choice(["single", "single", "array", "lines"])
        count = 1 if kind == "single" else self._random.randint(1, LARGEST_BATCH)
        episodes = [self._make_episode() for _ in range(count)]
        if kind == "lines":
            body = "\n".join(map(json.dumps, episodes)).encode()
        else:
            body = json.dumps(episodes[0] if kind == "single" else episodes).encode()
        headers = {"Content-Type": "application/x-ndjson" if kind == "lines" else "application/json"}
        if self._random.random() < 0.3:
            headers["Content-Encoding"] = "gzip"
            body = gzip.compress(body, 1)
        with self._tally.lock:
            self._tally.sent |= {record["id"]: record["outcome"] for record in episodes}
        return Parcel(episodes, "/episodes" if kind == "single" else "/episodes/batch", body, headers)

    def _make_episode(self) -> dict[str, Any]:
        pick = self._random.choice
        record = episode(
            policy={"name": pick(["bin-pick", "fold-towel"]), "version": pick(["1.4.0", "1.5.0"])},
            task=pick(["pick-mug", "pick-glass", "stack"]),
            deployment=pick(["berlin-line-3", "oslo-1", "turin-2"]),
            robot=f"arm-{self._random.randint(1, 9)}",
            outcome=pick(OUTCOMES),
            started_at=self._some_time(),
            conditions={"lighting": pick(["dim", "bright"]), "clutter": self._random.randint(0, 5)},
            signals={"peak_force_n": self._random.uniform(1, 40)},
        )
        if self._random.random() < 0.4:
            record |= {"domain": "sim", "simulator": {"name": "mujoco", "version": pick(["3.2", "3.3"])}}
            del record["deployment"]
        # Names never seen before, so that registration is interrupted too.
        if self._random.random() < 0.03:
            record["task"] = f"task-{uuid.uuid4().hex[:8]}"
        if self._random.random() < 0.03 and record["domain"] == "real":
            record["deployment"] = f"line-{uuid.uuid4().hex[:8]}"
        return record

    def _some_time(self) -> str:
        return (datetime.now(UTC) - timedelta(seconds=self._random.randint(1, 90 * 86400))).isoformat()

    def _deliver(self, client: httpx.Client, parcel: Parcel, *, is_new: bool) -> bool:
        """Only what is acknowledged goes into the ledger."""
        count = len(parcel.episodes)
        answer, tries = self._until_acknowledged(
            lambda: client.post(parcel.path, content=parcel.body, headers=parcel.headers)
        )
        if answer is None:
            return False
        self._ledger.write({record["id"]: record["outcome"] for record in parcel.episodes})
        body = answer.json()
        if "sent" in body:
            accepted, duplicates = body["accepted"], body["duplicates"]
        else:
            accepted, duplicates = int(body["status"] == "accepted"), int(body["status"] == "duplicate")
        # All or none of a request is stored. Only a try whose answer got lost can have stored it before.
        expected = {(count, 0)} if is_new else {(0, count)}
        if tries > 1:
            expected.add((0, count))
        if (accepted, duplicates) not in expected:
            what = "a new request" if is_new else "a request acknowledged before"
            self._surprise(f"{accepted} accepted and {duplicates} duplicates of {count}, try {tries} of {what}")
        with self._tally.lock:
            self._tally.already_stored += is_new and accepted == 0
        return True

    def _until_acknowledged(self, send: Callable[[], httpx.Response]) -> tuple[httpx.Response | None, int]:
        """The answer and how many tries it took; None for an answer that nobody should get."""
        tally = self._tally
        tries = 0
        while True:
            tries += 1
            try:
                answer = send()
            except httpx.TransportError as error:
                with tally.lock:
                    tally.broken[type(error).__name__] += 1
            else:
                with tally.lock:
                    tally.statuses[answer.status_code] += 1
                # What a lost answer deleted is not there any more.
                deleted = answer.status_code == httpx.codes.NOT_FOUND and answer.request.method == "DELETE"
                if answer.is_success or (deleted and tries > 1):
                    break
                self._look_at(answer)
                if answer.status_code not in self._retried_statuses:
                    return None, tries
            if self._stopping.is_set() and time.monotonic() > self._stopped_at + GIVE_UP_AFTER_S:
                self._surprise(f"not acknowledged within {GIVE_UP_AFTER_S:.0f} s of the last kill")
                return None, tries
            time.sleep(PAUSE_S)
        with tally.lock:
            tally.acknowledged_at.append(time.monotonic())
            tally.retried += tries > 1
        return answer, tries

    def _look_at(self, answer: httpx.Response) -> None:
        """A refusal is a problem+json; one that asks to try again says when."""
        if answer.status_code not in self._retried_statuses:
            self._surprise(f"{answer.status_code}: {answer.text[:300]}")
        elif answer.headers.get("content-type") != PROBLEM_JSON or "retry-after" not in answer.headers:
            self._surprise(f"{answer.status_code} without a problem or Retry-After: {answer.text[:300]}")

    def _surprise(self, what: str) -> None:
        with self._tally.lock:
            self._tally.surprises.append(f"{self.name}: {what}")


class Editor(Sender):
    """Sends episodes, then corrects most of them and deletes some."""

    def run(self) -> None:
        with self._project.client("admin") as client:
            client.timeout = 10
            while not self._stopping.is_set():
                record = self._make_episode()
                address = f"/episodes/{record['id']}"
                with self._tally.lock:
                    self._tally.sent[record["id"]] = record["outcome"]
                answer, _ = self._until_acknowledged(lambda record=record: client.post("/episodes", json=record))
                if answer is None:
                    continue
                self._ledger.write({record["id"]: record["outcome"]})
                # Another outcome at another time: it leaves one place in the rollups and enters another.
                record |= {
                    "outcome": self._random.choice(OUTCOMES),
                    "started_at": self._some_time(),
                    "reward": 0.5,
                }
                answer, _ = self._until_acknowledged(
                    lambda record=record, address=address: client.put(address, json=record)
                )
                if answer is None:
                    continue
                self._ledger.write({record["id"]: record["outcome"]})
                self._tally.corrected += 1
                if self._random.random() < 0.3:
                    answer, _ = self._until_acknowledged(lambda address=address: client.delete(address))
                    if answer is not None:
                        self._ledger.write({record["id"]: DELETED})
                        self._tally.deleted += 1
                self._stopping.wait(0.02)


@contextlib.contextmanager
def sending(
    project: Project, ledger_path: Path, *, senders: int, seed: int, **options: Any
) -> Iterator[tuple[Ledger, Tally]]:
    """Senders and an editor for the length of a block; at its end each finishes the request it has under way."""
    ledger, tally = Ledger(ledger_path), Tally()
    threads = [Sender(project, ledger, tally, seed=seed + number, **options) for number in range(senders)]
    threads.append(Editor(project, ledger, tally, seed=seed + senders, **options))
    for thread in threads:
        thread.start()
    try:
        yield ledger, tally
    finally:
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join()
        ledger.close()


@dataclass
class Outage:
    """A killed Postgres: when, and when its successor took connections."""

    killed_at: float
    accepting_at: float | None = None


class Killer(threading.Thread):
    """Kills one part after another at random times, every kind equally often."""

    def __init__(self, service: Service, *, seed: int, seconds: float, least: int) -> None:
        super().__init__(name="killer")
        self._service = service
        self._random = random.Random(seed)
        self._until = time.monotonic() + seconds
        self._least = least
        self._database_url = service.database_url
        self._redis_url = service.running["redis_url"]
        self._watchers: list[threading.Thread] = []
        self._stopping = threading.Event()
        self.kills: list[tuple[float, str]] = []
        self.outages: list[Outage] = []

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        deck: list[str] = []
        while not self._stopping.is_set() and not self._is_done():
            deck = deck or self._random.sample(KINDS, len(KINDS))
            kind = deck.pop()
            if self._kill(kind):
                self.kills.append((time.monotonic(), kind))
            else:  # not up yet: its turn comes later
                deck.insert(0, kind)
            # Now and then two at once.
            self._stopping.wait(0.05 if self._random.random() < 0.15 else self._random.uniform(0.5, 2.5))
        for watcher in self._watchers:
            watcher.join()

    def _is_done(self) -> bool:
        """When the time is over; on a busy machine a little later, so that enough was killed."""
        now = time.monotonic()
        return now > self._until and (len(self.kills) >= self._least or now > self._until + 20)

    def _kill(self, kind: str) -> bool:
        try:
            if kind == "redis wiped":
                with contextlib.closing(redis.Redis.from_url(self._redis_url)) as client:
                    return bool(client.flushall())
            victims = self._victims(kind)
            if not victims:
                return False
            if kind == "worker":
                os.killpg(victims[0], signal.SIGKILL)
            else:
                os.kill(self._random.choice(victims), signal.SIGKILL)
        except (psutil.Error, ProcessLookupError, redis.RedisError):
            return False
        if kind == "postgres":
            self._watch(Outage(time.monotonic()))
        return True

    def _victims(self, kind: str) -> list[int]:
        if kind == "pool process":
            workers = self._service.children("gapwatch worker")
            return [child.pid for pid in workers for child in psutil.Process(pid).children()]
        words = {"redis": "valkey-server", "postgres": "bin/postgres"}
        return self._service.children(words.get(kind, f"gapwatch {kind}"))

    def _watch(self, outage: Outage) -> None:
        self.outages.append(outage)

        def until_it_accepts() -> None:
            deadline = time.monotonic() + GIVE_UP_AFTER_S
            while time.monotonic() < deadline:
                with contextlib.suppress(psycopg.OperationalError):
                    psycopg.connect(self._database_url, connect_timeout=2).close()
                    outage.accepting_at = time.monotonic()
                    return
                time.sleep(0.02)

        watcher = threading.Thread(target=until_it_accepts, name="watcher")
        watcher.start()
        self._watchers.append(watcher)


@contextlib.contextmanager
def killing(service: Service, *, seed: int, seconds: float, least: int) -> Iterator[Killer]:
    killer = Killer(service, seed=seed, seconds=seconds, least=least)
    killer.start()
    try:
        yield killer
    finally:
        killer.stop()
        killer.join()


@dataclass(frozen=True)
class Recovery:
    """What a kill of Postgres cost: seconds until it took connections, and from then to an acknowledgement."""

    down_s: float
    waiting_s: float


def recoveries(killer: Killer, acknowledged_at: list[float]) -> list[Recovery]:
    """One for each kill of Postgres, unless it was killed again or all web processes were meanwhile."""
    times = sorted(acknowledged_at)
    measured = []
    for outage in killer.outages:
        accepting_at = outage.accepting_at
        assert accepting_at is not None, "a killed Postgres did not come back"
        answered_at = next((at for at in times if at > accepting_at), None)
        assert answered_at is not None, "nothing was acknowledged after a kill of Postgres"
        again = any(outage.killed_at < other.killed_at < answered_at for other in killer.outages)
        # A web process needs a few seconds to start; while one of the two lives, the service does.
        webs = [at for at, kind in killer.kills if kind == "web" and outage.killed_at - 5 < at < answered_at]
        if not again and len(webs) < WEB_PROCESSES:
            measured.append(Recovery(accepting_at - outage.killed_at, answered_at - accepting_at))
    return measured


def worst_gap(acknowledged_at: list[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(sorted(acknowledged_at)))


def stop(service: Service) -> int:
    """Stop it, whatever it takes; the parts of a killed supervisor die with it."""
    try:
        return service.stop()
    except subprocess.TimeoutExpired:
        service.process.kill()
        return service.process.wait()


def wait_for_postgres(service: Service, within_s: float = 30) -> None:
    def accepts() -> bool:
        psycopg.connect(service.database_url, connect_timeout=2).close()
        return True

    wait_until(accepts, within_s, pause_s=0.02, what="Postgres taking connections")


def settle(service: Service, project: Project, within_s: float = 40) -> float:
    """Wait until the service is ready and nothing is left to fold; how many seconds that took.

    What the last kill left is given the time that it takes at `LEAST_FOLDED_A_SECOND`, and no more.
    """
    began = time.monotonic()
    wait_for_postgres(service)
    left = project.value("SELECT coalesce(sum(cardinality(episode_ids)), 0) FROM work WHERE project_id = :p")
    within_s += float(left) / LEAST_FOLDED_A_SECOND
    answers: list[str] = []

    def is_ready() -> bool:
        answer = httpx.get(f"{service.url}/readyz")
        answers.append(answer.text)
        return answer.status_code == httpx.codes.OK

    try:
        wait_until(is_ready, within_s, what=f"readiness after the last kill, {left} episodes to fold,")
    except AssertionError as late:
        raise AssertionError(f"{late}: {answers[-1:]}") from None
    wait_until(
        lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0,
        within_s,
        what="everything folded",
    )
    return time.monotonic() - began


@dataclass
class Findings:
    """How the tables differ from the ledger and from themselves; all empty when every promise was kept."""

    lost: set[str]
    doubled: int
    wrong_outcome: set[str]
    still_there: set[str]
    never_sent: set[str]
    rollups: dict[str, str]
    stored: int

    @property
    def is_clean(self) -> bool:
        differences = (self.lost, self.wrong_outcome, self.still_there, self.never_sent, self.rollups)
        return self.doubled == 0 and not any(differences)


def compare(project: Project, acknowledged: dict[str, str], sent: dict[str, str]) -> Findings:
    """`acknowledged` is a ledger; `sent` holds everything that was ever tried."""
    rows = project.rows(
        "SELECT id, outcome, domain, CASE domain WHEN 'real' THEN deployment_id ELSE simulator_id END,"
        " policy_id, task_id, started_at FROM episodes WHERE project_id = :p"
    )
    stored = {id_: outcome for id_, outcome, *_ in rows}
    deleted = {id_ for id_, word in acknowledged.items() if word == DELETED}
    standing = {id_: word for id_, word in (sent | acknowledged).items() if id_ not in deleted}
    return Findings(
        lost=acknowledged.keys() - deleted - stored.keys(),
        doubled=len(rows) - len(stored),
        wrong_outcome={id_ for id_, outcome in stored.items() if standing.get(id_, outcome) != outcome},
        still_there=deleted & stored.keys(),
        never_sent=stored.keys() - sent.keys(),
        rollups=_compare_rollups(project, rows),
        stored=len(rows),
    )


def _compare_rollups(project: Project, rows: list[tuple[Any, ...]]) -> dict[str, str]:
    """Recount every tier in Python, sharing nothing with the code that folds; and let `verify` look at the rest."""
    recount: Counter[tuple[Any, ...]] = Counter()
    for _, outcome, domain, source, policy, task, started_at in rows:
        hour = started_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        day = hour.replace(hour=0)
        for tier, bucket in (("hour", hour), ("day", day), ("month", day.replace(day=1))):
            recount[domain, source, policy, task, tier, bucket, outcome] += 1
    counted: Counter[tuple[Any, ...]] = Counter()
    for *place, successes, failures, aborted, abandoned in project.rows(
        "SELECT domain, source_id, policy_id, task_id, tier, bucket_at, successes, failures, aborted, abandoned"
        " FROM rollup_counts WHERE project_id = :p"
    ):
        place[-1] = place[-1].astimezone(UTC)
        for outcome, count in zip(OUTCOMES, (successes, failures, aborted, abandoned), strict=True):
            if count:
                counted[*place, outcome] += count
    verified = verify_project(project.database, project.id, project.slug)
    return {
        str(place): f"{counted[place]} counted, {recount[place]} stored"
        for place in recount.keys() | counted.keys()
        if counted[place] != recount[place]
    } | {f"{table} {key}": f"{found}, not {wanted}" for table, key, found, wanted in verified.examples}


def internal_errors(log: str) -> list[str]:
    """Lines of the service's log that tell of an answer 500 or of an error nobody expected."""
    return [line for line in log.splitlines() if '"status": 500' in line or '"unexpected error"' in line]


class Webs:
    """Web processes by the dozen, on one port and without the rest of the service."""

    def __init__(self, database_url: str, data_dir: Path) -> None:
        self._forker = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forked_webs.py")],
            env=clean_environment(
                GAPWATCH_DATABASE_URL=database_url,
                # Nobody listens there: an answer never waits for Redis.
                GAPWATCH_REDIS_URL=f"unix://{data_dir}/no-redis",
                GAPWATCH_DATA_DIR=str(data_dir),
                GAPWATCH_SECRET_KEY=SECRET,
                GAPWATCH_LOG_LEVEL="error",
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.url = f"http://127.0.0.1:{self._forker.stdout.readline().strip()}"

    def start(self) -> int:
        self._forker.stdin.write("\n")
        self._forker.stdin.flush()
        pid = int(self._forker.stdout.readline())
        assert httpx.get(f"{self.url}/healthz", timeout=10).is_success
        return pid

    def close(self) -> None:
        self._forker.stdin.close()
        self._forker.wait()
        self._forker.stdout.close()
