"""Real examples for the OpenAPI document: a robot's failed grasp, and the simulated one beside it."""

from __future__ import annotations

from typing import Any

REAL: dict[str, Any] = {
    "id": "0192f0c4-7a3e-7c11-9f2a-5d0c6e1b8a44",
    "domain": "real",
    "policy": {"name": "bin-pick", "version": "1.4.0"},
    "task": "pick-mug",
    "deployment": "berlin-line-3",
    "robot": "ur5e-012",
    "site": "berlin",
    "stage": "supervised",
    "started_at": "2026-11-02T09:14:03.120Z",
    "duration_s": 11.8,
    "outcome": "failure",
    "reward": 0.41,
    "metrics": {"cycle_time_s": 11.8, "energy_j": 210.0},
    "conditions": {"lighting": "dim", "object": "glass", "clutter": 3, "human_present": False},
    "signals": {"peak_force_n": 31.2, "loop_latency_ms_p95": 18.0, "image_brightness": 0.31},
    "failure": {"phase": "contact", "labels": ["slip"], "note": "lost grip on lift"},
    "safety": {"violations": 0, "interventions": 1, "overrides": 1},
    "session": "2026-11-02-am",
    "pair": "scene-17/seed-4",
    "contract": {"action_scale": 0.5, "control_hz": 50, "joint_order": ["j1", "j2"]},
    "links": {"video": "https://example.com/video/17.mp4"},
    "provenance": {"git_sha": "4c1d9a0", "seed": 4, "calibration_id": "2026-10-30"},
}
SIM: dict[str, Any] = {
    "id": "0192f0c4-7a3e-7c11-9f2a-5d0c6e1b8a45",
    "domain": "sim",
    "policy": {"name": "bin-pick", "version": "1.4.0"},
    "task": "pick-mug",
    "simulator": {"name": "mujoco", "version": "3.3.0"},
    "started_at": "2026-11-01T20:00:00Z",
    "outcome": "success",
    "conditions": {"lighting": "dim", "object": "glass", "clutter": 3},
    "pair": "scene-17/seed-4",
}
STORED = REAL | {"received_at": "2026-11-02T09:14:16.402Z", "revision": 1}

one_episode: dict[int | str, dict[str, Any]] = {
    200: {"description": "The episode.", "content": {"application/json": {"example": STORED}}}
}
episode_page: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of episodes.",
        "content": {"application/json": {"example": {"episodes": [STORED], "next": None}}},
    }
}
export: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            "text/csv": {"example": "id,domain,policy.name\n0192f0c4,real,bin-pick\n"},
            "application/x-ndjson": {},
            "application/vnd.apache.parquet": {},
        },
    }
}
rejected: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of refused records.",
        "content": {
            "application/json": {
                "example": {
                    "rejected": [
                        {
                            "id": 7,
                            "received_at": "2026-11-02T09:14:16.402Z",
                            "key_prefix": "gw_3kX9aB2c",
                            "code": "unknown-field",
                            "errors": [
                                {
                                    "pointer": "/outcom",
                                    "code": "unknown-field",
                                    "message": "This field is not part of the record.",
                                }
                            ],
                            "record": '{"id": "e-1", "outcom": "success"}',
                        }
                    ],
                    "next": None,
                }
            }
        },
    }
}
