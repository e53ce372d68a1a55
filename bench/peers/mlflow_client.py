"""Logs episodes with MLflow the way its users do. Runs in MLflow's own virtual environment, imports nothing of ours.

`runs`: one run per episode, conditions and ids as parameters, signals as metrics: five calls of its API, as below.
`metrics`: one run per process, the signals of many episodes in batches of 1,000 metrics, the most that one call
accepts. That is the fastest way in, and it keeps neither conditions nor ids.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import mlflow
from mlflow.entities import Metric

MOST_METRICS = 1000


def log_run(episode: dict[str, Any]) -> None:
    with mlflow.start_run(run_name=episode["id"]):
        mlflow.log_params(
            {
                "id": episode["id"],
                "policy": episode["policy"]["name"],
                "policy_version": episode["policy"]["version"],
                **{name: episode[name] for name in ("domain", "task", "deployment", "robot", "site", "stage")},
                **{name: episode[name] for name in ("session", "started_at", "outcome")},
                **episode["conditions"],
            }
        )
        mlflow.log_metrics(
            episode["signals"]
            | episode["metrics"]
            | {"duration_s": episode["duration_s"], "reward": episode["reward"]}
            | {"success": float(episode["outcome"] == "success")}
        )


def log_runs(episodes: list[dict[str, Any]], until: float) -> int:
    done = 0
    while time.monotonic() < until:
        log_run(episodes[done % len(episodes)])
        done += 1
    return done


def log_metrics(episodes: list[dict[str, Any]], until: float) -> int:
    done = 0
    with mlflow.start_run() as run:
        client = mlflow.MlflowClient()
        while time.monotonic() < until:
            metrics: list[Metric] = []
            taken = 0
            while True:
                episode = episodes[(done + taken) % len(episodes)]
                values = episode["signals"] | {"success": float(episode["outcome"] == "success")}
                if len(metrics) + len(values) > MOST_METRICS:
                    break
                now_ms = int(time.time() * 1000)
                metrics += [Metric(name, value, now_ms, done + taken) for name, value in values.items()]
                taken += 1
            client.log_batch(run.info.run_id, metrics=metrics)
            done += taken
    return done


def work(mode: str, episodes: list[dict[str, Any]], seconds: float, start: Any, counts: Any) -> None:
    start.wait()
    began = time.monotonic()
    done = (log_runs if mode == "runs" else log_metrics)(episodes, began + seconds)
    counts.put((done, began, time.monotonic()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["runs", "metrics"])
    parser.add_argument("--url", required=True)
    parser.add_argument("--episodes", type=Path, required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    mlflow.set_tracking_uri(options.url)
    mlflow.set_experiment(f"bench-{options.mode}")
    episodes = json.loads(options.episodes.read_text())
    # Forked after the import, which takes seconds of CPU time.
    context = multiprocessing.get_context("fork")
    start, counts = context.Barrier(options.processes), context.Queue()
    processes = [
        context.Process(
            target=work,
            args=(options.mode, episodes[i :: options.processes], options.seconds, start, counts),
            daemon=True,
        )
        for i in range(options.processes)
    ]
    for process in processes:
        process.start()
    results = [counts.get(timeout=options.seconds + 120) for _ in processes]
    for process in processes:
        process.join(10)
    done = sum(count for count, _, _ in results)
    seconds = max(ended for _, _, ended in results) - min(began for _, began, _ in results)
    print(json.dumps({"episodes": done, "seconds": seconds}))


if __name__ == "__main__":
    main()
