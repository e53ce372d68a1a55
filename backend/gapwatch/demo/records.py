"""Episodes of the demo world as records of the API, version 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapwatch.demo.experiment import lighting_of
from gapwatch.demo.labels import label_failures
from gapwatch.demo.world import OBJECTS, SURFACES, Run

# Shares of real episodes that somebody ended for other reasons, and of failures with an intervention.
INTERRUPTED, INTERVENED = 0.008, 0.4
NOTES = {
    "slip": "lost grip on lift",
    "dark": "image too dark to see the object",
    "too_heavy": "heavier than it looks",
    "occluded": "hidden behind other things",
    "lag": "arrived late",
    "miscalibrated": "gripper beside the object",
    "wrong_scale": "moved the wrong way from the first step",
    "hesitation": "person pulled back",
}


@dataclass(frozen=True)
class StorySide:
    """One side of a story: a run, the fields that all its episodes share, and the columns that differ.

    `labelled` is the share of failures that somebody looked at, `interrupted` of episodes that somebody ended.
    """

    run: Run
    day: NDArray[np.float64]
    shared: Mapping[str, Any]
    columns: Mapping[str, Sequence[Any]]
    shifts: Sequence[str]
    labelled: float
    interrupted: float


def records_of(
    side: StorySide, started_ms: NDArray[np.int64], generator: np.random.Generator
) -> list[dict[str, Any]]:
    """One record per episode. Ids are ordered by time and depend only on the generator, so they are repeatable."""
    run, n = side.run, side.run.scene.n
    ids = ids_of(started_ms, generator)
    looked = generator.random(n) < side.labelled
    labels = label_failures(run, generator)
    intervened, interrupted = generator.random(n) < INTERVENED, generator.random(n) < side.interrupted
    q = run.quantities
    light, things = lighting_of(q.brightness).tolist(), np.array(OBJECTS)[run.scene.objects].tolist()
    floors, clutter = np.array(SURFACES)[run.scene.surfaces].tolist(), q.clutter.astype(int).tolist()
    durations = np.round(run.duration_s, 2).tolist()
    energy = np.round(150 + 12 * run.duration_s * q.mass_kg**0.5 * q.wear, 1).tolist()
    rewards = np.round(
        np.where(run.failed, 0.08 * np.maximum(run.failed_in, 0), 1 - 0.01 * run.duration_s), 3
    ).tolist()
    signals = _signal_rows(run.signals, n)
    failed_in, started = run.failed_in.tolist(), started_ms.tolist()
    is_real = side.shared["domain"] == "real"
    records = []
    for i in range(n):
        record = dict(side.shared)
        record["id"] = ids[i]
        record["started_at"] = _timestamp(started[i])
        for name, values in side.columns.items():
            if values[i] is not None:
                record[name] = values[i]
        record["duration_s"] = durations[i]
        record["reward"] = rewards[i]
        record["metrics"] = {"cycle_time_s": durations[i], "energy_j": energy[i]}
        conditions: dict[str, Any] = {
            "lighting": light[i],
            "object": things[i],
            "surface": floors[i],
            "clutter": clutter[i],
        }
        conditions["shift"] = side.shifts[i]
        if run.scene.handover:
            conditions["human_present"] = True
        record["conditions"] = conditions
        record["signals"] = signals[i]
        if interrupted[i]:
            record["outcome"] = "aborted"
        elif failed_in[i] < 0:
            record["outcome"] = "success"
        else:
            record["outcome"] = "failure"
            record["failure"] = _failure(run.phases[failed_in[i]], labels[i] if looked[i] else [])
            if is_real and intervened[i]:
                record["safety"] = {"violations": 0, "interventions": 1, "overrides": 0}
        records.append(record)
    return records


def ids_of(started_ms: NDArray[np.int64], generator: np.random.Generator) -> list[str]:
    """UUIDs of version 7."""
    high = generator.integers(0, 1 << 12, len(started_ms))
    low = generator.integers(0, 1 << 62, len(started_ms))
    ids = []
    for ms, a, b in zip(started_ms.tolist(), high.tolist(), low.tolist(), strict=True):
        digits = f"{ms:012x}7{a:03x}{(2 << 62) | b:016x}"
        ids.append(f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}")
    return ids


def _timestamp(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _failure(phase: str, labels: list[str]) -> dict[str, Any]:
    failure: dict[str, Any] = {"phase": phase}
    if labels:
        failure["labels"] = labels
        if labels[0] in NOTES:
            failure["note"] = NOTES[labels[0]]
    return failure


def _signal_rows(signals: Mapping[str, NDArray[np.float64]], n: int) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = [{} for _ in range(n)]
    for name, values in signals.items():
        rounded = np.round(values, 4)
        for i in np.flatnonzero(np.isfinite(rounded)).tolist():
            rows[i][name] = float(rounded[i])
    return rows
