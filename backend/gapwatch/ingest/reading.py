"""The bytes of a request into packed episodes: all records together, one by one only where something looks odd.

Together means one decode for all, a few looks at the whole text instead of many at each record, and rules that are
checked once for what many records share. Whatever does not pass goes through `checks.py` record by record, which
finds the same and says why. Both ways accept the same records; only their cost differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_letters, digits

import msgspec

from gapwatch.errors import Fault
from gapwatch.ingest.batch import MOST_ITEMS, split_batch
from gapwatch.ingest.body import JSON
from gapwatch.ingest.checks import RecordRefused, check_record
from gapwatch.ingest.clock_skew import SenderClock
from gapwatch.ingest.duplicate_keys import may_repeat_keys
from gapwatch.ingest.normalise import normalise_text
from gapwatch.ingest.packing.packed_episodes import PackedEpisode, pack_episodes
from gapwatch.ingest.packing.packing_cache import PackingCache
from gapwatch.record import EARLIEST, FARTHEST_AHEAD, LARGEST_RECORD_BYTES, EpisodeRecord

# Let other requests run after this many records.
RECORDS_AT_A_TIME = 500
# Of refused records so much is answered and kept: enough to find the typo, not enough to fill memory or disk.
MOST_FAULTS = 1000
MOST_KEPT = 100

_decode_all = msgspec.json.Decoder(list[EpisodeRecord]).decode
_decode = msgspec.json.Decoder(EpisodeRecord).decode
# Letters of ids that need no second look; the rules judge any other.
_PLAIN_LETTERS = (ascii_letters + digits + "-_.:~@+=,;!$&()*").encode()
# The one character that cannot be stored.
_ESCAPED_NUL = b"\\u0000"


class _LooksOdd(Exception):
    """Something has to be looked at more closely."""


_ODD = (_LooksOdd, RecordRefused, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@dataclass
class ParsedBatch:
    """The episodes of a request with their indexes in it, and what is wrong with the other records."""

    sent: int
    episodes: list[PackedEpisode] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    rejected: int = 0
    kept: list[tuple[bytes, list[Fault]]] = field(default_factory=list)
    """The first of the refused records, with their faults."""

    def refuse(self, index: int, raw: bytes, faults: list[Fault]) -> None:
        # Every refused record is named; beyond a thousand faults, with its first reason only.
        named = faults if len(self.faults) < MOST_FAULTS else faults[:1]
        self.faults += [Fault(**fault, index=index) for fault in named]
        self.rejected += 1
        if len(self.kept) < MOST_KEPT:
            self.kept.append((raw, faults))


class Reader:
    """Reads requests. Remembers what records share, from one request to the next."""

    def __init__(self) -> None:
        self._cache = PackingCache()

    def read_one(self, project_id: int, raw: bytes, clock: SenderClock) -> PackedEpisode:
        """Read the only record of a request. Raise RecordRefused."""
        if len(raw) <= LARGEST_RECORD_BYTES:
            try:
                [episode] = self._read_together(project_id, [_decode(raw)], raw, clock)
            except _ODD:
                pass
            else:
                return episode
        return self._read_alone(project_id, raw, clock)

    async def read_batch(self, project_id: int, body: bytes, kind: str, clock: SenderClock) -> ParsedBatch:
        if kind == JSON and len(body) <= LARGEST_RECORD_BYTES:
            try:
                records = _decode_all(body)
                if 0 < len(records) <= MOST_ITEMS:
                    episodes = self._read_together(project_id, records, body, clock)
                    return ParsedBatch(len(records), episodes, list(range(len(records))))
            except _ODD:
                pass
        items = split_batch(body, kind)
        batch = ParsedBatch(len(items))
        for start in range(0, len(items), RECORDS_AT_A_TIME):
            part = items[start : start + RECORDS_AT_A_TIME]
            try:
                if max(map(len, part)) > LARGEST_RECORD_BYTES:
                    raise _LooksOdd
                records = list(map(_decode, part))
                batch.episodes += self._read_together(project_id, records, b"".join(part), clock)
                batch.indexes += range(start, start + len(part))
            except _ODD:
                await self._read_each(project_id, start, part, clock, batch)
            await asyncio.sleep(0)
        return batch

    async def _read_each(
        self, project_id: int, start: int, items: Sequence[bytes], clock: SenderClock, batch: ParsedBatch
    ) -> None:
        for index, raw in enumerate(items, start):
            try:
                batch.episodes.append(self._read_alone(project_id, raw, clock))
                batch.indexes.append(index)
            except RecordRefused as refused:
                batch.refuse(index, raw, refused.faults)
                # Explaining takes time: let other requests run.
                await asyncio.sleep(0)

    def _read_alone(self, project_id: int, raw: bytes, clock: SenderClock) -> PackedEpisode:
        record = check_record(raw, clock.now)
        [episode] = pack_episodes(self._cache, project_id, [record], clock.skew_s)
        return episode

    def _read_together(
        self, project_id: int, records: list[EpisodeRecord], text: bytes, clock: SenderClock
    ) -> list[PackedEpisode]:
        """Check and pack all of them. Raise one of _ODD if any needs a closer look."""
        has_escapes = b"\\" in text
        if has_escapes and _ESCAPED_NUL in text:
            raise _LooksOdd
        if (has_escapes or not text.isascii()) and not all(map(normalise_text, records)):
            raise _LooksOdd
        times = [record.started_at for record in records]
        if min(times) < EARLIEST or max(times) > clock.now + FARTHEST_AHEAD:
            raise _LooksOdd
        ids = "".join([record.id for record in records])
        if not ids.isascii() or ids.encode().translate(None, _PLAIN_LETTERS):
            raise _LooksOdd
        episodes = pack_episodes(self._cache, project_id, records, clock.skew_s)
        if may_repeat_keys(text, ids, episodes):
            raise _LooksOdd
        return episodes
