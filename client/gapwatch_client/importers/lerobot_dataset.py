"""A LeRobotDataset, version 2 or 3: recorded episodes in Parquet, described by `meta/info.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gapwatch_client.contract import Contract
from gapwatch_client.importers.mapping import Row
from gapwatch_client.importers.report import ImportReport
from gapwatch_client.summaries import Summary

INFO = Path("meta") / "info.json"
# A vector of more numbers than this is summarised by its norm alone.
MOST_NAMED = 16
_BOOKKEEPING = {"episode_index", "frame_index", "timestamp", "index", "task_index"}


def read_dataset(root: Path, report: ImportReport) -> Iterator[Row]:
    info = json.loads((root / INFO).read_text(encoding="utf-8"))
    vectors = _vectors(info, report)
    tasks = _tasks(root)
    contract = _contract(info, vectors).as_dict()
    fps = float(info.get("fps") or 0)
    recorded_at = datetime.fromtimestamp((root / INFO).stat().st_mtime, timezone.utc).isoformat()
    report.assumed("started_at", "the dataset has no times of day; that of meta/info.json is taken")
    shared: dict[str, Any] = {"started_at": recorded_at, "contract": contract}
    if info.get("robot_type") not in {None, "", "unknown"}:
        shared["robot"] = info["robot_type"]
    for frames in _episodes(root, info):
        yield _row(frames, vectors, tasks, fps, shared, report)


def count_episodes(root: Path) -> int | None:
    total = json.loads((root / INFO).read_text(encoding="utf-8")).get("total_episodes")
    return total if isinstance(total, int) else None


def _row(
    frames: dict[str, list[Any]],
    vectors: dict[str, list[str]],
    tasks: dict[int, str],
    fps: float,
    shared: dict[str, Any],
    report: ImportReport,
) -> Row:
    index = int(frames["episode_index"][0])
    length = len(frames["episode_index"])
    values = dict(shared) | {"provenance.episode_index": index, "metrics.steps": length}
    if fps:
        values["duration_s"] = length / fps
    task = tasks.get(int(frames["task_index"][0])) if "task_index" in frames else None
    if task:
        values |= {"task": task[:128].strip(), "provenance.prompt": task}
    if "next.reward" in frames:
        values["reward"] = sum(map(_number, frames["next.reward"]))
    if "next.success" in frames:
        values["outcome"] = "success" if any(map(_number, frames["next.success"])) else "failure"
    else:
        report.assumed("outcome", "there is no next.success; --set outcome=success where all are demonstrations")
    for name, members in vectors.items():
        if name in frames:
            values |= {f"signals.{key}": value for key, value in _signals(name, members, frames[name]).items()}
    digest = hashlib.sha256()
    for name in sorted(frames):
        digest.update(json.dumps([name, frames[name]], default=str).encode())
    return Row(f"lerobot/{digest.hexdigest()}", values)


def _signals(name: str, members: list[str], samples: list[Any]) -> dict[str, float]:
    short = name.replace("observation.", "").replace(".", "_")
    rows = [sample if isinstance(sample, list) else [sample] for sample in samples]
    if len(members) > MOST_NAMED:
        members, rows = ["norm"], [[sum(x * x for x in row) ** 0.5] for row in rows]
    signals: dict[str, float] = {}
    for index, member in enumerate(members):
        summary = Summary()
        for row in rows:
            if index < len(row) and row[index] is not None:
                summary.add(float(row[index]))
        base = f"{short}_{member}"
        kept = {f"{base}_peak", f"{base}_rms", f"{base}_mean"}
        signals.update({key: value for key, value in summary.signals(base).items() if key in kept})
    return signals


def _vectors(info: dict[str, Any], report: ImportReport) -> dict[str, list[str]]:
    """The features that become signals, with the names of their numbers."""
    vectors: dict[str, list[str]] = {}
    for name, feature in info.get("features", {}).items():
        kind, shape = str(feature.get("dtype")), list(feature.get("shape") or [1])
        if name in _BOOKKEEPING or name.startswith("next."):
            continue
        if kind in {"video", "image"}:
            report.left_out(name, "pictures stay in the dataset")
        elif not kind.startswith(("float", "int")) or len(shape) != 1:
            report.left_out(name, f"{kind} of shape {shape} is not summed up")
        else:
            vectors[name] = _names(feature.get("names"), int(shape[0]))
    return vectors


def _names(names: Any, size: int) -> list[str]:
    """Names from a list, or a list in an object ({"motors": […]}); otherwise indices."""
    if isinstance(names, dict) and len(names) == 1:
        [names] = names.values()
    if isinstance(names, list) and len(names) == size:
        return [str(name).replace(".", "_") for name in names]
    return [str(number) for number in range(size)]


def _contract(info: dict[str, Any], vectors: dict[str, list[str]]) -> Contract:
    contract = Contract(control_hz=info.get("fps"))
    for name, members in vectors.items():
        if name == "action":
            contract.action(name, order=members)
        else:
            contract.observation(name, order=members)
    for name, feature in info.get("features", {}).items():
        if feature.get("dtype") in {"video", "image"}:
            contract.camera(name.rpartition(".")[2], shape=feature.get("shape"))
    return contract


def _tasks(root: Path) -> dict[int, str]:
    legacy, present = root / "meta" / "tasks.jsonl", root / "meta" / "tasks.parquet"
    if legacy.exists():
        rows = [json.loads(line) for line in legacy.read_text(encoding="utf-8").splitlines() if line.strip()]
    elif present.exists():
        import pyarrow.parquet as pq

        rows = pq.read_table(present).to_pylist()
    else:
        return {}
    tasks = {}
    for row in rows:
        # Version 3 keeps the sentence in the data frame's index, whose name varies.
        texts = [value for name, value in row.items() if name != "task_index" and isinstance(value, str)]
        if texts:
            tasks[int(row["task_index"])] = texts[0]
    return tasks


def _episodes(root: Path, info: dict[str, Any]) -> Iterator[dict[str, list[Any]]]:
    """The frames of each episode as columns. A file has one episode in version 2, several in version 3."""
    import pyarrow.parquet as pq

    pictures = {n for n, f in info.get("features", {}).items() if f.get("dtype") in {"video", "image"}}
    frames: dict[str, list[Any]] = {}
    current = None
    for path in sorted((root / "data").rglob("*.parquet")):
        with pq.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name not in pictures]
            for batch in file.iter_batches(batch_size=5000, columns=columns):
                for frame in batch.to_pylist():
                    if frame["episode_index"] != current:
                        if frames:
                            yield frames
                        frames, current = {name: [] for name in columns}, frame["episode_index"]
                    for name in columns:
                        frames[name].append(frame[name])
    if frames:
        yield frames


def _number(value: Any) -> float:
    return float(value[0] if isinstance(value, list) else value or 0)
