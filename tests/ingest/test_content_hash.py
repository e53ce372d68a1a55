"""Content hashes are stored with episodes, so the hash of a record may never change.

`golden_hashes.json` and the spool were written by the first release. Neither may ever be written again: a hash that
differs here is a robot whose retry after an upgrade gets a conflict instead of `duplicate`.
"""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from gapwatch_client.backlog import Backlog

from gapwatch.ingest.body import JSON
from gapwatch.ingest.clock_skew import SenderClock
from gapwatch.ingest.reading import Reader

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
