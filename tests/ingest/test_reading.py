"""Records taken together and one by one: the same episodes, the same refusals, whatever way they came."""

import asyncio
import json
import random
from datetime import UTC, datetime

import pytest

from gapwatch.ingest.body import JSON, NDJSON
from gapwatch.ingest.checks import RecordRefused, check_record
from gapwatch.ingest.clock_skew import SenderClock
from gapwatch.ingest.packing import numbers
from gapwatch.ingest.packing.packed_episodes import pack_episodes
from gapwatch.ingest.packing.packing_cache import PackingCache
from gapwatch.ingest.reading import Reader
from parts import episode

NOW = datetime(2026, 11, 16, tzinfo=UTC)
CLOCK = SenderClock(NOW, None)
TIME = "2026-11-02T09:14:03.120Z"


def record(number: int = 0, **fields) -> dict:
    return episode(id=f"episode-{number:04}", started_at=TIME) | fields


def written(value) -> bytes:
    return json.dumps(value).encode()


def read(body: bytes, kind: str = JSON, reader: Reader | None = None):
    return asyncio.run((reader or Reader()).read_batch(1, body, kind, CLOCK))


def hashes(episodes) -> list[str]:
    return [episode.content_hash.hex() for episode in episodes]


def alone(raw: bytes):
    [episode] = pack_episodes(PackingCache(), 1, [check_record(raw, NOW)])
    return episode


@pytest.fixture
def only_together(monkeypatch):
    """Fails when a record has to be looked at by itself."""

    def refuse(*_):
        raise AssertionError("a record was looked at by itself")

    monkeypatch.setattr("gapwatch.ingest.reading.check_record", refuse)


def varied(count: int, seed: int = 1) -> list[dict]:
    chance = random.Random(seed)
    records = []
    for number in range(count):
        fields = {
            "duration_s": chance.random() * 20,
            "reward": chance.choice([0.0, -0.0, 0.5]),
            "signals": {name: chance.gauss(0, 1) for name in chance.sample("abcdef", chance.choice([0, 2, 6]))},
            "metrics": {"z": 1.5, "a": chance.random()},
            "conditions": {
                "light": chance.choice(["dim", "bright"]),
                "clutter": chance.randrange(4),
                "person": True,
            },
            "failure": {"phase": "lift", "labels": ["slip"], "note": "a: b"} if number % 7 == 0 else None,
            "provenance": {"seed": number, "none": None, "zero": -0.0},
            "links": {"video": "https://example.com/a:b"},
            "session": f"s-{number % 3}",
            "embedding": [0.5, -0.0] if number % 5 == 0 else None,
            "contract": {"b": [1, 2], "a": {"unit": "m:s"}},
        }
        kept = {name: value for name, value in fields.items() if chance.random() < 0.8}
        records.append(record(number, **kept))
    return records


def test_together_and_alone_give_the_same_rows(only_together):
    records = varied(300)
    found = read(written(records))
    assert found.sent == 300
    assert found.indexes == list(range(300))
    one_by_one = [alone(written(each)) for each in records]
    assert hashes(found.episodes) == hashes(one_by_one)
    assert [episode.row for episode in found.episodes] == [episode.row for episode in one_by_one]


def test_packed_as_an_array_and_each_by_itself_give_the_same_bytes(monkeypatch):
    records = varied(200, seed=2)
    as_array = read(written(records)).episodes
    monkeypatch.setattr(numbers, "FEWEST_FOR_ARRAY", 10**9)
    assert [episode.row for episode in read(written(records)).episodes] == [episode.row for episode in as_array]


EQUAL = {
    "order of keys": lambda r: dict(reversed(r.items())),
    "order of signals": lambda r: r | {"signals": dict(reversed(r["signals"].items()))},
    "null for absent": lambda r: r | {"robot": None, "failure": None, "provenance": {"seed": 4, "x": None}},
    "empty for absent": lambda r: r | {"metrics": {}, "safety": {}},
    "negative zero": lambda r: r | {"reward": -0.0},
    "another offset": lambda r: r | {"started_at": "2026-11-02T10:14:03.120+01:00"},
    "an offset of nothing": lambda r: r | {"started_at": "2026-11-02T09:14:03.120+00:00"},
    "whole numbers": lambda r: r | {"signals": {"b": 1, "a": 2}},
    "composed letters": lambda r: r | {"task": "cafe\u0301"},
}


@pytest.mark.parametrize("how", EQUAL)
def test_equal_content_has_equal_hashes_however_it_is_written(how):
    plain = record(signals={"b": 1.0, "a": 2.0}, reward=0.0, provenance={"seed": 4}, task="caf\u00e9")
    reader = Reader()
    first = reader.read_one(1, written(plain), CLOCK)
    again = reader.read_one(1, written(EQUAL[how](plain)), CLOCK)
    many = read(written([EQUAL[how](plain | {"id": f"x-{number:03}"}) for number in range(30)] + [plain]))
    assert again.content_hash == first.content_hash == many.episodes[-1].content_hash


OTHER = {
    "a signal": {"signals": {"b": 1.0, "a": 2.5}},
    "the names of signals": {"signals": {"b": 1.0, "c": 2.0}},
    "metric for signal": {"signals": {}, "metrics": {"b": 1.0, "a": 2.0}},
    "a condition": {"conditions": {"light": "dim"}},
    "a boolean for a word": {"conditions": {"light": True}},
    "a number for a boolean": {"conditions": {"light": 1}},
    "stage": {"stage": "full"},
    "robot": {"robot": "another"},
    "deployment": {"deployment": "another"},
    "time": {"started_at": "2026-11-02T09:14:03.121Z"},
    "outcome": {"outcome": "failure"},
    "note": {"failure": {"note": "x"}},
    "contract": {"contract": {"a": 1}},
}


@pytest.mark.parametrize("what", OTHER)
def test_other_content_has_another_hash(what):
    plain = record(signals={"b": 1.0, "a": 2.0})
    changed = [plain | other for other in OTHER.values()]
    found = hashes(read(written([plain, *({**each, "id": plain["id"]} for each in changed)])).episodes)
    assert len(set(found)) == len(found)
    assert hashes([alone(written(plain | OTHER[what]))]) == [found[1 + list(OTHER).index(what)]]


def test_hashes_stay_what_they_are():
    """They are stored: another hash for the same content makes retries after an upgrade look like conflicts."""
    smallest = {
        "id": "an-id",
        "domain": "real",
        "policy": {"name": "bin-pick", "version": "1.4.0"},
        "task": "pick-mug",
        "deployment": "line-3",
        "started_at": TIME,
        "outcome": "failure",
    }
    fullest = smallest | {
        "robot": "ur5e-012",
        "site": "berlin",
        "simulator": {"name": "mujoco", "version": "3.3.0"},
        "stage": "supervised",
        "duration_s": 11.8,
        "reward": 0.41,
        "metrics": {"cycle_time_s": 11.8, "energy_j": 210.0},
        "conditions": {"lighting": "dim", "clutter": 3, "human_present": False},
        "signals": {"peak_force_n": 31.2, "image_brightness": 0.31},
        "failure": {"phase": "contact", "labels": ["slip"], "category": "visual", "note": "lost grip"},
        "safety": {"violations": 0, "interventions": 1, "overrides": 1},
        "session": "2026-11-02-am",
        "pair": "scene-17/seed-4",
        "contract": {"action_scale": 0.5, "joint_order": ["j1", "j2"]},
        "embedding": [0.12, -0.4],
        "links": {"video": "https://example.com/1"},
        "provenance": {"git_sha": "abc", "seed": 4},
    }
    assert hashes([alone(written(smallest)), alone(written(fullest))]) == [
        "b62dbbbc1d39cc98a8e801907c69f3db",
        "e51ef2853e04c43e1aae10a629247d5a",
    ]


@pytest.mark.parametrize("offset", ["Z", "+00:00", "-05:30"])
@pytest.mark.parametrize("white", [(",", ":"), (", ", ": "), (" ,\n", " :\t")])
def test_ordinary_bodies_are_taken_together(only_together, offset, white):
    records = [record(n, started_at=f"2026-11-02T09:14:03{offset}", task="n: 1", pair=None) for n in range(40)]
    body = json.dumps(records, separators=white).encode()
    assert read(body).sent == 40
    lines = b"\n".join(written(each) for each in records)
    assert read(lines, NDJSON).sent == 40


@pytest.mark.parametrize(
    ("plain", "twice"),
    [
        (b'"outcome": "success"', b'"outcome": "failure", "outcome": "success"'),
        (b'"outcome": "success"', b'"outcome" : "failure", "outcome":"success"'),
        (b'"name": "bin-pick"', b'"name": "bin-pick", "name": "bin-pick"'),
        (b'"a": 1.0', b'"a": 2.0, "a": 1.0'),
        (b'"a": 1.0', b'"a": 2.0, "\\u0061": 1.0'),
        (b'"light": "a:b"', b'"light": "a\\u003ab", "light": "a:b"'),
        (b'"light": "a:b"', b'"light": "ab", "light": "a\\u003ab"'),
        (b'"note": "+01:00"', b'"note": "+01:00", "note": "+01:00"'),
    ],
)
@pytest.mark.parametrize("offset", ["Z", "+01:00", "+0100"])
def test_a_key_that_stands_twice_is_found_among_others(plain, twice, offset):
    each = [
        written(
            record(
                number,
                started_at=f"2026-11-02T09:14:03{offset}",
                signals={"a": 1.0},
                conditions={"light": "a:b"},
                provenance={"note": "+01:00"},
                session="2026+01:00",
            )
        )
        for number in range(20)
    ]
    assert plain in each[7]
    each[7] = each[7].replace(plain, twice, 1)
    for body, kind in ((b"[" + b",".join(each) + b"]", JSON), (b"\n".join(each), NDJSON)):
        found = read(body, kind)
        assert [(fault["index"], fault["code"]) for fault in found.faults] == [(7, "duplicate-key")]
        assert len(found.episodes) == 19
    with pytest.raises(RecordRefused):
        Reader().read_one(1, each[7], CLOCK)


def test_what_was_refused_once_is_refused_again():
    reader = Reader()
    good, bad = record(1), record(2, task="two\u200b lines")
    for _ in range(2):
        found = read(written([good, bad]), reader=reader)
        assert [(fault["index"], fault["code"]) for fault in found.faults] == [(1, "bad-name")]


def test_a_line_of_two_records_is_no_record():
    lines = [written(record(number)) for number in range(4)]
    found = read(b"\n".join([lines[0] + b"," + lines[1], lines[2], lines[3]]), NDJSON)
    assert [fault["index"] for fault in found.faults] == [0]


def test_a_batch_of_more_than_a_mebibyte_is_read_in_parts():
    records = [record(number, failure={"note": "x" * 500}) for number in range(2200)]
    records[1700]["outcome"] = "great"
    found = read(written(records))
    assert found.sent == 2200
    assert len(found.episodes) == 2199
    assert [fault["index"] for fault in found.faults] == [1700]
