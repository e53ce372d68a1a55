"""MCAP recordings, written by the real library."""

import json
import struct

import pytest
from mcap.writer import Writer

START = 1_793_600_000_000_000_000
MS = 1_000_000


def write_recording(path, *, metadata=None, messages=200):
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("wrench", "jsonschema", b"{}")
        wrench = writer.register_channel("/ft_sensor/wrench", "json", schema)
        raw = writer.register_schema("std_msgs/msg/Float32", "ros2msg", b"float32 data")
        battery = writer.register_channel("/battery", "cdr", raw)
        for number in range(messages):
            at = START + number * 10 * MS
            value = {"header": {"stamp": {"sec": 9, "nanosec": 9}}, "force": {"x": 0.0, "z": float(-number)}}
            value |= {"joints": [1.0, 2.0], "points": [0.0] * 100, "frame": "tool0", "contact": number > 100}
            writer.add_message(wrench, at, json.dumps(value).encode(), at - 2 * MS, number)
            if number % 20 == 0:
                writer.add_message(battery, at, struct.pack("<If", 0x10000, 24.0), at, number)
        if metadata:
            writer.add_metadata("episode", metadata)
        writer.finish()
    return path


def test_a_recording_is_one_episode_with_summaries_by_topic(bring, stored, project, tmp_path):
    told_inside = {
        "task": "insert-peg",
        "outcome": "failure",
        "conditions.lighting": "dim",
        "failure.phase": "insert",
    }
    path = write_recording(tmp_path / "run 7.mcap", metadata=told_inside | {"operator": "ana"})
    given = ["--set", "policy=peg@2", "--set", "deployment=cell-4"]
    status, told = bring(path, *given)
    assert status == 0, told
    [episode] = stored()
    assert (episode["task"], episode["outcome"], episode["failure"]) == (
        "insert-peg",
        "failure",
        {"phase": "insert"},
    )
    assert episode["conditions"] == {"lighting": "dim"}
    assert episode["duration_s"] == pytest.approx(1.99)
    assert episode["provenance"]["recording"] == "run 7.mcap"
    signals = episode["signals"]
    assert signals["ft_sensor_wrench_force_z_peak"] == 199
    assert signals["ft_sensor_wrench_force_z_mean"] == pytest.approx(-99.5)
    assert signals["ft_sensor_wrench_joints_1_rms"] == pytest.approx(2)
    assert signals["ft_sensor_wrench_rate_hz"] == pytest.approx(100)
    assert signals["ft_sensor_wrench_gap_ms_peak"] == pytest.approx(10)
    assert signals["ft_sensor_wrench_latency_ms_p95"] == pytest.approx(2, rel=0.01)
    assert signals["battery_rate_hz"] == pytest.approx(5)
    assert not any("points" in name or "stamp" in name for name in signals)
    assert "/battery: cdr messages are not read; install mcap-ros2-support; rates are (10 values)" in told
    assert "operator: not mapped" in told
    assert "0 new, 1 already there" in bring(path, *given)[1]
    assert project.stored() == 1


def test_a_recording_says_nothing_of_its_outcome_unless_told(bring, project, tmp_path):
    path = write_recording(tmp_path / "plain.mcap")
    given = ["--set", "policy=peg@2", "--set", "deployment=cell-4", "--set", "task=insert-peg"]
    status, told = bring(path, *given)
    assert (status, project.stored()) == (65, 0)
    assert "no outcome; say it with --set outcome=…" in told
    assert bring(path, *given, "--set", "outcome=success")[0] == 0


def test_a_recording_without_messages_or_with_a_cut_end_is_told(bring, tmp_path):
    empty = write_recording(tmp_path / "empty.mcap", messages=0)
    assert "the recording has no messages" in bring(empty)[1]
    cut = write_recording(tmp_path / "cut.mcap")
    cut.write_bytes(cut.read_bytes()[:-500])
    status, told = bring(cut)
    assert status == 65
    assert "cannot be read as mcap" in told
