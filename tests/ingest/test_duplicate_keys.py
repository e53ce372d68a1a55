"""Counting colons: a key that stands twice is always noticed, and ordinary records need no second look."""

import json

import msgspec
import pytest

from gapwatch.ingest.duplicate_keys import CONTEXT_FIELDS, OUTCOME_FIELDS, OWN_FIELDS, record_may_repeat_keys
from gapwatch.record import EpisodeRecord
from parts import episode

FULL = episode(
    id="a:b",
    simulator={"name": "mujoco", "version": "3:3"},
    started_at="2026-11-02T09:14:03.120Z",
    duration_s=11.8,
    reward=0.41,
    metrics={"energy:j": 210},
    conditions={"lighting": "dim: 3", "clutter": 3, "surface": None},
    signals={"force": 31.2},
    failure={"phase": "contact", "labels": ["a:b"], "note": 'she said "a": b'},
    safety={"violations": 0},
    session="am",
    contract={"frames": {"base": "m:s"}, "order": ["j1"]},
    embedding=[0.12],
    links={"video": "https://example.com/v"},
    provenance={"seed": 4},
)


def may_repeat_keys(raw: bytes) -> bool:
    return record_may_repeat_keys(raw, msgspec.json.decode(raw, type=EpisodeRecord))


def keys_of(value, path=()):
    """The path of every key, at every depth; a contract's keys are compared elsewhere."""
    for name, member in value.items():
        yield (*path, name)
        if isinstance(member, dict) and name != "contract":
            yield from keys_of(member, (*path, name))


def written_with_twice(value, path) -> str:
    """JSON in which the key at the path stands twice, with the same value."""
    members = []
    for name, member in value.items():
        inner = written_with_twice(member, path[1:]) if len(path) > 1 and name == path[0] else json.dumps(member)
        members += [f"{json.dumps(name)}:{inner}"] * (2 if path == (name,) else 1)
    return "{" + ",".join(members) + "}"


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " :\t")])
@pytest.mark.parametrize("time", ["2026-11-02T09:14:03Z", "2026-11-02T09:14:03+00:00", "2026-11-02T09:14:03-0530"])
def test_an_ordinary_record_needs_no_second_look(separators, time):
    for record in (FULL | {"started_at": time}, episode(started_at=time)):
        assert not may_repeat_keys(json.dumps(record, separators=separators).encode())


@pytest.mark.parametrize("path", list(keys_of(FULL)), ids="/".join)
@pytest.mark.parametrize("time", ["2026-11-02T09:14:03Z", "2026-11-02T09:14:03+01:00", "2026-11-02T09:14:03+0100"])
def test_a_key_that_stands_twice_is_noticed_at_every_depth(path, time):
    raw = written_with_twice(FULL | {"started_at": time}, path).encode()
    assert may_repeat_keys(raw)


def test_an_escaped_colon_cannot_make_up_for_a_key_that_stands_twice():
    raw = (
        json.dumps(FULL).replace('"reward": 0.41', '"reward": 0.41, "reward": 0.41').replace("dim:", r"dim\u003a")
    )
    assert raw.count(":") == json.dumps(FULL).count(":")
    assert may_repeat_keys(raw.encode())


def test_every_field_of_the_record_is_counted_once():
    counted = (*CONTEXT_FIELDS, *OUTCOME_FIELDS, *OWN_FIELDS, "id", "started_at", "duration_s", "reward")
    assert sorted(counted) == sorted(EpisodeRecord.__struct_fields__)
