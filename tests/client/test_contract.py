"""Contracts built by both sides, and the difference as the service finds it."""

import numpy as np
from gapwatch_client import Contract, Gapwatch

from gapwatch.statistics.causes.contracts import compare_contracts


def describe(order, scale, prompt="pick the mug") -> Contract:
    return (
        Contract(control_hz=50, action_chunk=8)
        .observation("arm_position", order=order, unit="rad", frame="base", hz=500)
        .action("arm_velocity", order=order, unit="rad/s", scale=scale, limits=[-1, 1])
        .gains(kp=np.array([100.0, 80.0]), kd=[2, 1.5])
        .rates(policy=10, controller=500)
        .preprocessing("resize", size=[224, 224])
        .preprocessing("normalise", mean=0.5, std=0.25)
        .prompt(prompt)
        .camera(
            "wrist", resolution=(640, 480), fx=600.1, fy=600.2, cx=320, cy=240, distortion=[0, 0], frame="tool0"
        )
    )


def test_everything_that_was_said_is_in_it_as_plain_json():
    told = describe(["j1", "j2"], 0.5).as_dict()
    assert told["control_hz"] == 50
    assert told["action_chunk"] == 8
    assert told["observation"]["arm_position"] == {
        "order": ["j1", "j2"],
        "unit": "rad",
        "frame": "base",
        "hz": 500,
    }
    assert told["gains"] == {"kp": [100.0, 80.0], "kd": [2, 1.5]}
    assert [step["step"] for step in told["preprocessing"]] == ["resize", "normalise"]
    assert told["cameras"]["wrist"]["intrinsics"]["fx"] == 600.1
    assert told["cameras"]["wrist"]["resolution"] == [640, 480]


def test_the_service_finds_the_swapped_joints_first_and_the_scale_after():
    sim, real = describe(["j1", "j2"], 0.5), describe(["j2", "j1"], 1.0, "grab the mug")
    found = compare_contracts(sim.as_dict(), real.as_dict())
    assert found.verdict == "differs"
    assert [d.field for d in found.differences][:2] == [
        "action.arm_velocity.order",
        "observation.arm_position.order",
    ]
    assert {d.field for d in found.differences} == {
        "action.arm_velocity.order",
        "observation.arm_position.order",
        "action.arm_velocity.scale",
        "prompt",
    }
    assert compare_contracts(sim.as_dict(), describe(["j1", "j2"], 0.5).as_dict()).verdict == "comparable"


def test_differences_can_be_looked_at_without_a_service():
    sim, real = describe(["j1", "j2"], 0.5), describe(["j1", "j2"], 1.0).add(extra=1)
    assert sim.differences(real) == ["action.arm_velocity.scale: 0.5 or 1.0", "extra: nothing or 1"]
    assert sim.differences(sim.as_dict()) == []


def test_both_sides_send_it_and_the_service_stores_two(project, tmp_path):
    with Gapwatch(project.url, project.keys["ingest"], tmp_path, task="t", policy="p@1") as gw:
        gw.episode(simulator="mujoco@3", contract=describe(["j1", "j2"], 0.5)).end()
        gw.episode(simulator="mujoco@3", contract=describe(["j1", "j2"], 0.5)).end()
        gw.episode(deployment="line-3", contract=describe(["j2", "j1"], 0.5)).end()
        assert gw.flush()
    with project.client("read") as reader:
        found = [
            e["contract"]["action"]["arm_velocity"]["order"] for e in reader.get("/episodes").json()["episodes"]
        ]
    assert sorted(found) == [["j1", "j2"], ["j1", "j2"], ["j2", "j1"]]
