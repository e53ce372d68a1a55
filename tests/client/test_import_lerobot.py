"""LeRobot's evaluation output and its datasets of version 2 and 3, written as LeRobot lays them out."""

import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MOTORS = ["shoulder.pos", "elbow.pos"]
FPS = 10


def write_evaluation(path: Path) -> Path:
    """As `eval_policy_all` returns it and the script dumps it."""
    metrics = {
        "sum_rewards": [1.0, 0.0, 0.5],
        "max_rewards": [1.0, 0.0, 0.5],
        "successes": [True, False, False],
        "video_paths": ["outputs/eval/videos/eval_episode_0.mp4"],
    }
    safe = metrics | {"safety_costs": [0.0, 2.0, 0.0], "violation_steps": [0, 2, 0]}
    content = {
        "per_task": [
            {"task_group": "libero_10", "task_id": 0, "metrics": metrics},
            {"task_group": "libero_10", "task_id": 1, "metrics": safe},
        ],
        "per_group": {"libero_10": {"avg_sum_reward": 0.5, "pc_success": 33.3}},
        "overall": {"avg_sum_reward": float("nan"), "pc_success": 33.3, "eval_s": 12.5},
    }
    path.write_text(json.dumps(content, indent=2))
    return path


def test_an_evaluation_gives_an_episode_for_each_rollout(bring, stored, project, tmp_path):
    path = write_evaluation(tmp_path / "eval_info.json")
    status, told = bring(path, "--set", "policy=smolvla@200k")
    assert status == 0, told
    episodes = stored()
    assert sorted(e["task"] for e in episodes) == ["libero_10/0"] * 3 + ["libero_10/1"] * 3
    assert sum(e["outcome"] == "success" for e in episodes) == 2
    [violating] = [e for e in episodes if e.get("safety", {}).get("violations")]
    assert (violating["safety"]["violations"], violating["metrics"]["safety_cost"]) == (2, 2)
    assert violating["simulator"] == {"name": "libero_10", "version": "unversioned"}
    assert "video_paths: stays with the evaluation; only https links are kept (2 values" in told
    assert "overall: averages" in told
    assert "started_at: LeRobot records no times" in told
    assert "0 new, 6 already there" in bring(tmp_path, "--set", "policy=smolvla@200k")[1]
    assert project.stored() == 6


def test_the_former_form_has_seeds(bring, stored, tmp_path):
    episodes = [
        {"episode_ix": n, "sum_reward": 1.0 * n, "max_reward": 1.0, "success": n == 1, "seed": 1000 + n}
        for n in range(2)
    ]
    path = tmp_path / "eval_info.json"
    path.write_text(json.dumps({"per_episode": episodes, "aggregated": {"pc_success": 50.0}}))
    given = ["--set", "policy=act@1", "--set", "task=pusht", "--set", "simulator=gym-pusht@0.1"]
    assert bring(path, *given)[0] == 0
    assert {e["provenance"]["seed"]: e["outcome"] for e in stored()} == {1000: "failure", 1001: "success"}


def frames(index: int, length: int, start: int) -> pd.DataFrame:
    rows = [
        {
            "observation.state": [0.1 * n, -2.0],
            "action": [0.2 * n, 1.0 + index],
            "timestamp": n / FPS,
            "frame_index": n,
            "episode_index": index,
            "index": start + n,
            "task_index": index % 2,
            "next.reward": 1.0 if n == length - 1 else 0.0,
            "next.done": n == length - 1,
            "next.success": index != 1 and n == length - 1,
        }
        for n in range(length)
    ]
    return pd.DataFrame(rows)


def write_dataset(root: Path, version: str, lengths=(5, 8, 6)) -> Path:
    """meta/ and data/ as each version has them; the camera's video is not needed."""
    (root / "meta").mkdir(parents=True)
    features = {
        "observation.state": {"dtype": "float32", "shape": [2], "names": {"motors": MOTORS}},
        "action": {"dtype": "float32", "shape": [2], "names": MOTORS},
        "observation.images.wrist": {
            "dtype": "video",
            "shape": [480, 640, 3],
            "names": ["height", "width", "channels"],
        },
    }
    info = {
        "codebase_version": version,
        "robot_type": "so100_follower",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "fps": FPS,
        "features": features,
    }
    tasks = ["Put the block in the bowl", "Stack the cups"]
    tables = [frames(n, length, sum(lengths[:n])) for n, length in enumerate(lengths)]
    if version.startswith("v2"):
        info["data_path"] = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
        lines = [
            {"episode_index": n, "tasks": [tasks[n % 2]], "length": length} for n, length in enumerate(lengths)
        ]
        (root / "meta" / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        lines = [{"task_index": n, "task": task} for n, task in enumerate(tasks)]
        (root / "meta" / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        files = {f"data/chunk-000/episode_{n:06d}.parquet": table for n, table in enumerate(tables)}
    else:
        info["data_path"] = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
        index = pd.Index(tasks, name="task")
        pd.DataFrame({"task_index": [0, 1]}, index=index).to_parquet(root / "meta" / "tasks.parquet")
        meta = root / "meta" / "episodes" / "chunk-000"
        meta.mkdir(parents=True)
        rows = [
            {"episode_index": n, "tasks": [tasks[n % 2]], "length": length} for n, length in enumerate(lengths)
        ]
        pq.write_table(pa.Table.from_pylist(rows), meta / "file-000.parquet")
        files = {"data/chunk-000/file-000.parquet": pd.concat(tables, ignore_index=True)}
    for name, table in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        table.to_parquet(root / name, index=False)
    (root / "meta" / "info.json").write_text(json.dumps(info))
    return root


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_a_dataset_gives_an_episode_each_with_signals_and_the_contract(bring, stored, project, tmp_path, version):
    root = write_dataset(tmp_path / "dataset", version)
    given = ["--set", "policy=act@7", "--set", "deployment=bench-1"]
    status, told = bring(root, *given)
    assert status == 0, told
    by_index = {e["provenance"]["episode_index"]: e for e in stored()}
    assert sorted(by_index) == [0, 1, 2]
    second = by_index[1]
    assert (second["outcome"], second["task"], second["robot"]) == ("failure", "Stack the cups", "so100_follower")
    assert (second["duration_s"], second["reward"], second["metrics"]["steps"]) == (0.8, 1, 8)
    assert second["signals"]["action_elbow_pos_rms"] == pytest.approx(2)
    assert second["signals"]["state_elbow_pos_mean"] == pytest.approx(-2)
    assert second["signals"]["action_shoulder_pos_peak"] == pytest.approx(1.4)
    assert second["contract"]["action"]["action"]["order"] == ["shoulder_pos", "elbow_pos"]
    assert second["contract"]["control_hz"] == FPS
    assert second["contract"]["cameras"]["wrist"]["shape"] == [480, 640, 3]
    assert by_index[0]["outcome"] == "success"
    assert "observation.images.wrist: pictures stay in the dataset" in told
    assert "0 new, 3 already there" in bring(root, *given)[1]
    assert project.stored() == 3


def test_a_dataset_without_successes_asks_for_them(bring, project, tmp_path):
    root = write_dataset(tmp_path / "dataset", "v2.0", lengths=(4,))
    path = next((root / "data").rglob("*.parquet"))
    pd.read_parquet(path).drop(columns="next.success").to_parquet(path, index=False)
    given = ["--set", "policy=act@7", "--set", "deployment=bench-1"]
    status, told = bring(root, *given)
    assert status == 65
    assert "1 episodes not sent: no outcome" in told
    assert "there is no next.success; --set outcome=success" in told
    assert bring(root, *given, "--set", "outcome=success")[0] == 0
    assert project.stored() == 1


def test_the_same_dataset_at_another_time_of_day_is_no_new_one(bring, project, tmp_path):
    root = write_dataset(tmp_path / "dataset", "v3.0")
    given = ["--set", "policy=act@7", "--set", "deployment=bench-1"]
    bring(root, *given)
    os.utime(root / "meta" / "info.json", (1_700_000_000, 1_700_000_000))
    status, told = bring(root, *given)
    assert "3 already there with other content (the first stands)" in told
    assert (status, project.stored()) == (0, 3)
