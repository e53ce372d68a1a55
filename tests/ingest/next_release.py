"""The next release, with two fields more: `python next_release.py DATABASE_URL < lines` stores what it is given.

A field takes a line in the struct, a line in `LATER_FIELDS` and a column. This runs as a process of its own, because
the record has to have its fields before other modules are imported.

Each line is a batch: {"project_id": …, "clock_skew_s": …, "records": [text of a record, …]}. Each answer is a line
too: the statuses, the content hashes and the codes of what was refused.
"""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta

from msgspec import UNSET, Struct, UnsetType

from gapwatch import record


class Plan(Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    planner: record.Name
    cost: float | None | UnsetType = UNSET


class EpisodeRecord(record.EpisodeRecord, kw_only=True):
    imagined_word: record.Name | None | UnsetType = UNSET
    imagined_object: Plan | None | UnsetType = UNSET


def add_fields() -> None:
    record.EpisodeRecord = EpisodeRecord
    imagined = (record.LaterField("imagined_word", "text"), record.LaterField("imagined_object", "jsonb"))
    record.LATER_FIELDS += imagined


async def main(url: str) -> None:
    from gapwatch.ingest.body import JSON
    from gapwatch.ingest.clock_skew import SenderClock
    from gapwatch.ingest.reading import Reader
    from gapwatch.store.core.pool import make_pool
    from gapwatch.store.write.accept import Acceptor

    pool = make_pool(url, size=1)
    await pool.open()
    acceptor, reader = Acceptor(pool, 1000), Reader()
    for line in sys.stdin:
        batch = json.loads(line)
        skew_s = batch["clock_skew_s"]
        clock = SenderClock(datetime(2026, 11, 19, tzinfo=UTC) + timedelta(seconds=skew_s or 0), skew_s)
        body = f"[{','.join(batch['records'])}]".encode()
        read = await reader.read_batch(batch["project_id"], body, JSON, clock)
        answer = {
            "statuses": await acceptor.store(read.episodes),
            "hashes": [episode.content_hash.hex() for episode in read.episodes],
            "refused": [fault["code"] for fault in read.faults],
        }
        print(json.dumps(answer))
    await pool.close()


if __name__ == "__main__":
    add_fields()
    asyncio.run(main(sys.argv[1]))
