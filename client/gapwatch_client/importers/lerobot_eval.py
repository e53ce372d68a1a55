"""`eval_info.json`, as LeRobot's evaluation writes it: an outcome and a return for each episode of each task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gapwatch_client.importers.mapping import Row
from gapwatch_client.importers.report import ImportReport

NAME = "eval_info.json"


def read_evaluation(path: Path, report: ImportReport) -> Iterator[Row]:
    """Both forms: `per_task` lists (since 0.4) and `per_episode` objects (before)."""
    content = path.read_bytes()
    info = json.loads(content)
    digest = hashlib.sha256(content).hexdigest()
    written_at = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat()
    report.assumed(
        "started_at", "LeRobot records no times; the file's own is taken (--set started_at=… sets another)"
    )
    for number, values in enumerate(_episodes(info, report)):
        shared: dict[str, Any] = {"domain": "sim", "started_at": written_at}
        group = values.get("conditions.task_group")
        if group:
            shared["simulator.name"] = group
            report.assumed(
                "simulator.name", "taken from the task group (--set simulator=NAME@VERSION sets another)"
            )
        yield Row(f"{digest}/{number}", shared | values)


def count_episodes(path: Path) -> int:
    return sum(1 for _ in _episodes(json.loads(path.read_bytes()), ImportReport()))


def _episodes(info: dict[str, Any], report: ImportReport) -> Iterator[dict[str, Any]]:
    for task in info.get("per_task", ()):
        metrics = task.get("metrics", {})
        columns = {
            "reward": metrics.get("sum_rewards", []),
            "metrics.max_reward": metrics.get("max_rewards", []),
            "outcome": metrics.get("successes", []),
            "metrics.safety_cost": metrics.get("safety_costs", []),
            "safety.violations": metrics.get("violation_steps", []),
        }
        for name in ("video_paths", "predicted_video_paths", "constraint_violations"):
            for value in metrics.get(name) or ():
                report.left_out(name, "stays with the evaluation; only https links are kept", value)
        named = {"task": f"{task.get('task_group')}/{task.get('task_id')}"}
        named["conditions.task_group"] = task.get("task_group")
        for index in range(len(columns["outcome"])):
            taken = {name: values[index] for name, values in columns.items() if index < len(values)}
            yield named | taken | {"provenance.episode_index": index}
    for episode in info.get("per_episode", ()):
        taken = {
            "reward": episode.get("sum_reward"),
            "metrics.max_reward": episode.get("max_reward"),
            "outcome": episode.get("success"),
            "metrics.safety_cost": episode.get("safety_cost"),
            "safety.violations": episode.get("violation_steps"),
            "provenance.episode_index": episode.get("episode_ix"),
            "provenance.seed": episode.get("seed"),
        }
        yield {name: value for name, value in taken.items() if value is not None}
    for name in ("overall", "aggregated", "per_group"):
        if name in info:
            report.left_out(name, "averages; the service makes its own from the episodes")
