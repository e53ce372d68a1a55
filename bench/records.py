"""The record that every figure is about: 8 conditions, 12 signals, about 1.1 KB of JSON.

Ids are ordered by time like those our client makes (UUID version 7). All ids of one set share their first
eight digits, so that `renew` turns encoded records into new ones without encoding them again.
"""

from __future__ import annotations

import gzip
import json
import pickle
import random
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

BATCH = 500

POLICIES = [("bin-pick", "1.4.0"), ("bin-pick", "1.5.0"), ("kitting", "0.9.2"), ("depalletize", "2.0.1")]
TASKS = ["pick-mug", "pick-pouch", "place-tote", "insert-peg", "fold-box", "open-drawer"]
SITES = ["berlin", "lyon", "osaka", "austin"]
DEPLOYMENTS = [f"{site}-line-{line}" for site in SITES for line in range(1, 7)]
# What differs from attempt to attempt, and what belongs to the deployment.
LIGHTING = ["bright", "dim", "mixed", "backlit"]
OBJECTS = ["mug", "glass", "pouch", "carton", "bottle", "bag"]
BACKGROUNDS = ["plain", "cluttered", "moving"]
SURFACES = ["rubber", "steel", "wood", "felt"]
GRIPPERS = ["two-finger", "suction", "soft"]
CAMERAS = ["wrist", "overhead"]
SIGNALS = {
    "peak_force_n": (31.0, 6.0),
    "mean_force_n": (11.0, 2.0),
    "tracking_rmse_rad": (0.021, 0.004),
    "loop_latency_ms_p95": (18.0, 3.0),
    "loop_latency_ms_max": (42.0, 9.0),
    "image_brightness": (0.45, 0.12),
    "image_sharpness": (0.62, 0.08),
    "depth_missing_ratio": (0.05, 0.02),
    "gripper_slip_mm": (1.4, 0.6),
    "joint_temperature_c": (41.0, 3.0),
    "battery_v": (47.6, 0.5),
    "action_delay_ms": (34.0, 5.0),
}
# A UUID of version 7 starts with 48 bits of milliseconds; its first eight digits change every 65.536 s.
_LOW_BITS = 16


def make_records(count: int, *, seed: int = 7, until: datetime | None = None) -> list[dict[str, Any]]:
    """`count` real episodes of the last six hours, oldest first, the same ones for the same seed."""
    chance = random.Random(seed)
    until = until or datetime.now(UTC)
    return [_record(chance, i / count, until) for i in range(count)]


def _record(chance: random.Random, age: float, until: datetime) -> dict[str, Any]:
    index = chance.randrange(len(DEPLOYMENTS))
    name, version = POLICIES[index % len(POLICIES)]
    started_at = until - timedelta(seconds=60 + 6 * 3600 * (1 - age))
    duration_s = round(chance.gauss(11.8, 2.0), 2)
    failed = chance.random() < 0.14
    record = {
        "id": _time_ordered_id(chance, until, age),
        "domain": "real",
        "policy": {"name": name, "version": version},
        "task": TASKS[index % len(TASKS)],
        "deployment": DEPLOYMENTS[index],
        "robot": f"ur5e-{index * 2 + chance.randrange(2):03}",
        "site": SITES[index // 6],
        "stage": "supervised",
        "started_at": started_at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{started_at.microsecond // 1000:03}Z",
        "duration_s": abs(duration_s),
        "outcome": "failure" if failed else "success",
        "reward": round(chance.random(), 3),
        "metrics": {"cycle_time_s": abs(duration_s), "energy_j": round(chance.gauss(210, 30), 1)},
        "conditions": {
            "lighting": chance.choice(LIGHTING),
            "object": chance.choice(OBJECTS),
            "background": chance.choice(BACKGROUNDS),
            "surface": SURFACES[index % len(SURFACES)],
            "gripper": GRIPPERS[index % len(GRIPPERS)],
            "camera": CAMERAS[index % len(CAMERAS)],
            "clutter": chance.randrange(12),
            "human_present": chance.random() < 0.2,
        },
        # As a robot computes them, with all their digits.
        "signals": {signal: chance.gauss(*shape) for signal, shape in SIGNALS.items()},
        "safety": {"violations": 0, "interventions": int(chance.random() < 0.05), "overrides": 0},
        "session": f"{started_at:%Y-%m-%d}-{'am' if started_at.hour < 12 else 'pm'}",
    }
    if failed:
        record["failure"] = {"phase": chance.choice(["approach", "contact", "lift"]), "labels": ["slip"]}
    return record


def _time_ordered_id(chance: random.Random, until: datetime, age: float) -> str:
    high = int(until.timestamp() * 1000) >> _LOW_BITS
    ms = (high << _LOW_BITS) + int(age * (1 << _LOW_BITS))
    rest = chance.getrandbits(74)
    return str(uuid.UUID(int=ms << 80 | 0x7 << 76 | (rest >> 62) << 64 | 0b10 << 62 | rest & (1 << 62) - 1))


def renew(encoded: bytes, number: int) -> bytes:
    """The same records under other ids, later ones for higher numbers."""
    start = encoded.index(b'"id":"') + len(b'"id":"')
    high = encoded[start : start + 8]
    return encoded.replace(b'"%s-' % high, b'"%08x-' % (int(high, 16) + number))


def ids_of(path: Path, number: int) -> tuple[str, str]:
    """The two bounds between which the ids of renewed bodies lie."""
    _, body = read_bodies(path)[0]
    start = body.index(b'"id":"') + len(b'"id":"')
    high = f"{int(body[start : start + 8], 16) + number:08x}"
    return f"{high}-", f"{high}."


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def batches(items: Sequence[Any], size: int = BATCH) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def write_bodies(path: Path, bodies: Iterable[tuple[int, bytes]]) -> Path:
    """Encoded bodies with their number of records, for another process to send."""
    path.write_bytes(pickle.dumps(list(bodies)))
    return path


@lru_cache(maxsize=2)
def read_bodies(path: Path, number: int = 0, packed: bool = False) -> list[tuple[int, bytes]]:
    bodies = [(count, renew(body, number) if number else body) for count, body in pickle.loads(path.read_bytes())]
    return [(count, gzip.compress(body, 6)) for count, body in bodies] if packed else bodies
