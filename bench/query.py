"""Measures reading: drop, ledger, slices and trend over HTTP while the table grows a hundredfold, compared with the
same question asked of the stored episodes in SQL and in pandas.

`python -m bench.query [--stored 100000 1000000 10000000] [--json FILE]`; bench/README.md says what each figure is.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import fill, raw_questions, records  # noqa: E402
from bench.report import Report  # noqa: E402
from bench.senders import quantile  # noqa: E402
from bench.service import PROJECT, Service, Wrong, scratch_directory, serving  # noqa: E402
from gapwatch.accounts import make_key  # noqa: E402
from gapwatch.garbage_collection import collect_seldom  # noqa: E402
from gapwatch.rollup.fold import fold_due_work  # noqa: E402
from gapwatch.settings import Settings  # noqa: E402
from gapwatch.store.core.database import Database  # noqa: E402

LEVELS = (100_000, 1_000_000, 10_000_000)
PATTERNS = 8_000
REQUESTS = 80
RAW_ROUNDS = 3
# Beyond this pandas needs gigabytes.
MOST_FOR_PANDAS = 1_000_000
# Four policies in one deployment each: a deployment holds an eighth of the episodes, its baseline as many.
DEPLOYMENTS = 4
QUESTIONS = ("drop", "ledger", "slices", "trend")
DUE = """
INSERT INTO work (project_id, kind, episode_ids)
SELECT project_id, 'fold', array_agg(id) FROM (
    SELECT project_id, id, row_number() OVER (ORDER BY seq) / 500 AS part FROM episodes WHERE seq > %s
) AS fresh GROUP BY project_id, part
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, nargs="+", metavar="N", default=LEVELS)
    parser.add_argument("--json", type=Path, metavar="FILE", default=ROOT / ".cache/bench/query.json")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report()
    began = time.monotonic()
    try:
        with scratch_directory(ROOT / ".cache" / "bench") as directory, serving(directory / "query") as service:
            measure(service, report, sorted(options.stored))
        judge(report, sorted(options.stored))
    finally:
        report.show()
    report.write(options.json, command=sys.argv[1:], seconds=round(time.monotonic() - began))


def measure(service: Service, report: Report, levels: list[int]) -> None:
    key = reading_key(service)
    for level in filled(service, report, levels):
        measure_level(service, report, key, level)


def filled(service: Service, report: Report, levels: list[int]) -> Iterator[int]:
    """Measure at each number of episodes, once that many are stored and folded."""
    send_patterns(service)
    stored = 0
    for level in levels:
        print(f"filling up to {level:,} episodes and folding them …", flush=True)
        seq = service.value("SELECT coalesce(max(seq), 0) FROM episodes")
        fill.fill_episodes(service.database_url, service.project_id, level - stored)
        stored = level
        report.add(f"folding up to {level:,}", fold_new(service, seq), "ep/s")
        check_folded(service)
        yield level


def measure_level(service: Service, report: Report, key: str, level: int) -> None:
    for question in QUESTIONS:
        times = [ask(service, key, question, number) for number in range(REQUESTS)]
        report.add(name(question, level), quantile(times, 0.95), "ms")
        report.add(f"{name(question, level)}, median", quantile(times, 0.5), "ms")
    measure_raw(service, report, level)


def measure_raw(service: Service, report: Report, level: int) -> None:
    with service.connect() as connection:
        where = raw_questions.parameters(connection, service.project_id, deployment(0))

        def in_sql(statement: str) -> Any:
            return connection.execute(statement, where).fetchall()  # type: ignore[arg-type]

        def in_pandas(answer: Callable[[pd.DataFrame], Any]) -> Any:
            return answer(pd.DataFrame(in_sql(raw_questions.ROWS)))

        for question, statement in raw_questions.STATEMENTS.items():
            times = [timed(lambda s=statement: in_sql(s)) for _ in range(RAW_ROUNDS)]
            report.add(f"{question} by SQL over the episodes, {level:,}", quantile(times, 0.5), "ms")
            if level <= MOST_FOR_PANDAS:
                took = timed(lambda a=raw_questions.PANDAS[question]: in_pandas(a))
                report.add(f"{question} by pandas over the episodes, {level:,}", took, "ms")


def judge(report: Report, levels: list[int]) -> None:
    few, many = levels[0], levels[-1]
    for question in QUESTIONS:
        report.judge_ratio(
            f"{question}, p95 at {few:,} / at {many:,}", name(question, few), name(question, many), 1 / 1.5
        )
        report.judge_ratio(
            f"{question}: SQL over {many:,} episodes / ours, p95",
            f"{question} by SQL over the episodes, {many:,}",
            name(question, many),
            50,
        )


def name(question: str, level: int) -> str:
    return f"{question} over HTTP, p95, {level:,} stored"


def deployment(number: int) -> str:
    return records.DEPLOYMENTS[number]


def send_patterns(service: Service) -> None:
    """The episodes that filling multiplies: as many sim as real, in four deployments."""
    chance = random.Random(3)
    made = []
    for number, record in enumerate(records.make_records(PATTERNS)):
        index = number % DEPLOYMENTS
        policy, version = records.POLICIES[index % len(records.POLICIES)]
        record |= {"deployment": deployment(index), "policy": {"name": policy, "version": f"{version}-{index}"}}
        record |= {"task": records.TASKS[index], "site": records.SITES[0], "robot": f"ur5e-{index}-{number % 3}"}
        for fixed in ("surface", "gripper", "camera"):
            record["conditions"][fixed] = {"surface": "steel", "gripper": "suction", "camera": "wrist"}[fixed]
        if number // DEPLOYMENTS % 2:
            record |= {"domain": "sim", "simulator": {"name": "mujoco", "version": "3.3.0"}}
            record["outcome"] = "failure" if chance.random() < 0.06 else "success"
            for field in ("deployment", "robot", "site", "stage", "failure"):
                record.pop(field, None)
        elif record["outcome"] == "failure" and chance.random() < 0.5:
            record["failure"] = {"phase": record["failure"]["phase"]}
        made.append(record)
    target = service.target("/episodes/batch")
    with httpx.Client(headers={"Authorization": f"Bearer {service.key}"}, timeout=60, trust_env=False) as client:
        for batch in records.batches(made):
            client.post(f"http://{target.host}:{target.port}{target.path}", json=batch).raise_for_status()
    service.wait_until_folded()


def reading_key(service: Service) -> str:
    database = Database(service.database_url)
    secret = Settings(data_dir=service.data_dir).server_secret()
    key = make_key(database, secret, project=PROJECT, scope="read", name="bench")
    database.close()
    return key


def fold_new(service: Service, seq: int) -> float:
    """Fold what filling added with the worker's own code, in one process. Return episodes per second."""
    with service.folding_paused():
        fresh = service.value("SELECT count(*) FROM episodes WHERE seq > %s", seq)
        with service.connect() as connection:
            connection.execute(DUE, (seq,))
        database = Database(service.database_url, pool_size=1, statement_timeout_s=600)
        collect_seldom()
        began = time.monotonic()
        fold_due_work(database)
        seconds = time.monotonic() - began
        database.close()
        with service.connect() as connection:
            # Measure reading, not rules going through a year of episodes at the same time.
            connection.execute("TRUNCATE watch_due")
    with service.connect() as connection:
        connection.execute("VACUUM ANALYZE")
    return fresh / seconds


def check_folded(service: Service) -> None:
    stored = service.value("SELECT count(*) FROM episodes")
    counted = service.value("SELECT sum(successes + failures) FROM rollup_cells WHERE tier = 'month'")
    if stored != counted:
        raise Wrong(f"{stored} stored, {counted} in the numbers")


def ask(service: Service, key: str, question: str, number: int) -> float:
    """One request per call, with the windows that people ask for, in turn."""
    now = datetime.now(UTC)
    since = [None, "30d", "90d", (now - timedelta(days=200, hours=5)).isoformat()][number % 4]
    parameters = {} if since is None else {"since": since}
    url = f"{service.running['url']}/api/v1/deployments/{deployment(number % DEPLOYMENTS)}/{question}"
    headers = {"Authorization": f"Bearer {key}"}

    def get() -> None:
        answer = CLIENT.get(url, params=parameters, headers=headers)
        if answer.status_code != 200:
            raise Wrong(f"{question} answered {answer.status_code}: {answer.text[:300]}")

    if number < DEPLOYMENTS:
        get()  # the first of each is not counted: code and caches become warm
    return timed(get)


CLIENT = httpx.Client(timeout=120, trust_env=False)


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()
