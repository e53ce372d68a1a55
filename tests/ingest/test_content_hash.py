"""Content hashes are stored with episodes, so the hash of a record may never change.

`golden_hashes.json` and the spool were written by the first release. Neither may ever be written again: a hash that
differs here is a robot whose retry after an upgrade gets a conflict instead of `duplicate`.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from gapwatch_client.backlog import Backlog
from sqlalchemy import text

from gapwatch.ingest.body import JSON
from gapwatch.ingest.clock_skew import SenderClock
from gapwatch.ingest.reading import Reader
from gapwatch.record import LATER_FIELDS, EpisodeRecord
from gapwatch.store.core.database import Database
from gapwatch.store.core.pool import make_pool
from gapwatch.store.write.accept import Acceptor

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden_hashes.json").read_text())
SPOOL = HERE / "spool_of_the_first_release"
NOW = datetime(2026, 11, 19, tzinfo=UTC)


def sender_clock(skew_s: float | None = None) -> SenderClock:
    return SenderClock(NOW + timedelta(seconds=skew_s or 0), skew_s)


def spooled_records() -> list[bytes]:
    return Backlog(SPOOL).gather().payloads


@pytest.mark.parametrize("golden", GOLDEN["records"], ids=lambda golden: golden["what"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_record_has_the_hash_it_had_in_the_first_release(golden, ascii_only):
    clock = sender_clock(golden["clock_skew_s"])
    raw = json.dumps(golden["record"], ensure_ascii=ascii_only).encode()
    single = Reader().read_one(1, raw, clock)
    batch = asyncio.run(Reader().read_batch(1, b"[" + b",".join([raw] * 20) + b"]", JSON, clock))
    assert {single.content_hash.hex()} == {golden["content_hash"]}
    assert {episode.content_hash.hex() for episode in batch.episodes} == {golden["content_hash"]}


def test_a_spool_of_the_first_release_has_the_hashes_it_had():
    episodes = [Reader().read_one(1, raw, sender_clock()) for raw in spooled_records()]
    assert {episode.id: episode.content_hash.hex() for episode in episodes} == GOLDEN["spool"]


@pytest.fixture
def upgraded(database: Database) -> Callable[..., list[dict[str, Any]]]:
    """A database in which this release stored everything golden, taken over by a release with two more fields."""
    with database.transaction() as connection:
        project_id = connection.execute(
            text("INSERT INTO projects (slug, name) VALUES ('p', 'p') RETURNING id")
        ).scalar_one()

    async def store() -> None:
        pool = make_pool(database.url, size=1)
        await pool.open()
        reader = Reader()
        for golden in GOLDEN["records"]:
            raw = json.dumps(golden["record"]).encode()
            episode = reader.read_one(project_id, raw, sender_clock(golden["clock_skew_s"]))
            assert await Acceptor(pool, 1000).store([episode]) == ["accepted"]
        spooled = [reader.read_one(project_id, raw, sender_clock()) for raw in spooled_records()]
        assert set(await Acceptor(pool, 1000).store(spooled)) == {"accepted"}
        await pool.close()

    asyncio.run(store())
    with database.transaction() as connection:
        for table in ("episodes", "episode_revisions"):
            connection.execute(
                text(f"ALTER TABLE {table} ADD COLUMN imagined_word text, ADD COLUMN imagined_object jsonb")
            )

    def send(*batches: tuple[float | None, list[str]]) -> list[dict[str, Any]]:
        lines = "\n".join(
            json.dumps({"project_id": project_id, "clock_skew_s": skew_s, "records": records})
            for skew_s, records in batches
        )
        done = subprocess.run(
            [sys.executable, HERE / "next_release.py", database.url],
            input=lines,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return send


def test_what_was_stored_before_a_field_was_added_is_a_duplicate_after_it(upgraded, database):
    with database.transaction() as connection:
        stored = connection.execute(text("SELECT id, encode(content_hash, 'hex') FROM episodes")).all()
    hashes = {golden["record"]["id"]: golden["content_hash"] for golden in GOLDEN["records"]}
    assert dict(map(tuple, stored)) == hashes | GOLDEN["spool"]
    spooled = [raw.decode() for raw in spooled_records()]
    records = [(golden["clock_skew_s"], [json.dumps(golden["record"])]) for golden in GOLDEN["records"]]
    *answers, of_spool = upgraded(*records, (None, spooled))
    assert [answer["statuses"] for answer in answers] == [["duplicate"]] * len(records)
    assert [answer["hashes"] for answer in answers] == [[golden["content_hash"]] for golden in GOLDEN["records"]]
    assert of_spool["statuses"] == ["duplicate"] * len(spooled)


def test_an_added_field_is_stored_and_hashed_where_it_is_present(upgraded, database):
    plain = GOLDEN["records"][0]["record"]
    plan = {"planner": "rrt", "cost": 1.5}
    variants = {
        "absent": plain,
        "null": plain | {"imagined_word": None, "imagined_object": None},
        "a word": plain | {"imagined_word": "ada"},
        "the word elsewhere": plain | {"pair": "ada"},
        "an object": plain | {"imagined_object": plan},
        "both": plain | {"imagined_word": "ada", "imagined_object": plan},
    }
    [answer] = upgraded((None, [json.dumps(each) for each in variants.values()]))
    hashes = dict(zip(variants, answer["hashes"], strict=True))
    assert hashes["null"] == hashes["absent"] == GOLDEN["records"][0]["content_hash"]
    assert len(set(hashes.values())) == len(variants) - 1
    assert answer["statuses"] == ["duplicate"] * 2 + ["conflict"] * 4

    new = variants["both"] | {"id": "new"}
    same = new | {"imagined_object": {"cost": 1.5, "planner": "rrt"}}
    zero, negative = (
        new | {"id": "zero", "imagined_object": {"planner": "rrt", "cost": cost}} for cost in (0.0, -0.0)
    )
    several = [[new], [same], [new | {"imagined_word": "bob"}], [zero], [negative]]
    answers = upgraded(*((None, [json.dumps(each) for each in batch]) for batch in several))
    statuses = [status for answer in answers for status in answer["statuses"]]
    assert statuses == ["accepted", "duplicate", "conflict", "accepted", "duplicate"]
    with database.transaction() as connection:
        row = connection.execute(
            text("SELECT imagined_word, imagined_object, clock_skew_s FROM episodes WHERE id = 'new'")
        ).one()
    assert tuple(row) == ("ada", plan, None)


def test_a_key_that_stands_twice_in_an_added_field_is_refused(upgraded):
    record = json.dumps(GOLDEN["records"][0]["record"] | {"imagined_object": {"planner": "rrt", "cost": 1.5}})
    [answer] = upgraded((None, [record, record.replace('"cost"', '"cost": 2, "cost"')]))
    assert (answer["statuses"], answer["refused"]) == (["conflict"], ["duplicate-key"])


def test_the_fields_of_the_first_release_come_first_and_every_later_one_is_hashed():
    first = (
        *(
            "id",
            "domain",
            "policy",
            "task",
            "started_at",
            "outcome",
            "deployment",
            "robot",
            "site",
            "simulator",
            "stage",
        ),
        *("duration_s", "reward", "metrics", "conditions", "signals", "failure", "safety", "session", "pair"),
        *("contract", "embedding", "links", "provenance"),
    )
    fields = EpisodeRecord.__struct_fields__
    assert fields[: len(first)] == first
    assert set(fields[len(first) :]) <= {field.column for field in LATER_FIELDS}
