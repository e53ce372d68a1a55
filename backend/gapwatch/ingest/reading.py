"""The bytes of a request into episodes: all records together, and one by one only where something looks odd.

Together means one decode for all, a few looks at the whole text instead of many at each record, and rules that
are checked once for what many records share. Whatever does not pass goes through `checks.py` record by record,
which finds the same and says why. The two ways agree on what is accepted; only their cost differs.
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
from gapwatch.ingest.checks import EARLIEST, FARTHEST_AHEAD, Refused, check_record
from gapwatch.ingest.clock_skew import SenderClock
from gapwatch.ingest.duplicate_keys import may_repeat_keys
from gapwatch.ingest.normalise import normalise_text
from gapwatch.ingest.packing.packed_episodes import PackedEpisode, pack_episodes
from gapwatch.ingest.packing.packing_cache import PackingCache
from gapwatch.record import LARGEST_RECORD_BYTES, EpisodeRecord

# Other requests get their turn after so many records.
AT_A_TIME = 500
# What is told and kept of refused records: enough to find the typo, not enough to fill memory or disk.
MOST_FAULTS = 1000
MOST_KEPT = 100

_decode_all = msgspec.json.Decoder(list[EpisodeRecord]).decode
_decode = msgspec.json.Decoder(EpisodeRecord).decode
# Letters of ids that need no second look; any other is looked at by the rules.
_PLAIN = (ascii_letters + digits + "-_.:~@+=,;!$&()*").encode()
# The one character that cannot be stored.
_ESCAPED_NUL = b"\\u0000"


class _Odd(Exception):
    """There is something to look at more closely."""


_TO_LOOK_AT = (_Odd, Refused, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@dataclass
class Read:
    """What a request holds: episodes with their places in it, and what is wrong with the others."""

    sent: int
    episodes: list[PackedEpisode] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    rejected: int = 0
    kept: list[tuple[bytes, list[Fault]]] = field(default_factory=list)
    """The first of the refused records, with their faults."""

    def refuse(self, place: int, raw: bytes, faults: list[Fault]) -> None:
        # Every refused record is named; beyond a thousand faults, with its first reason only.
        told = faults if len(self.faults) < MOST_FAULTS else faults[:1]
        self.faults += [Fault(**fault, index=place) for fault in told]
        self.rejected += 1
        if len(self.kept) < MOST_KEPT:
            self.kept.append((raw, faults))


class Reader:
    """Remembers what records share, from one request to the next."""

    def __init__(self) -> None:
        self._cache = PackingCache()

    def read_one(self, project_id: int, raw: bytes, clock: SenderClock) -> PackedEpisode:
        """The one record of a request, or Refused."""
        if len(raw) <= LARGEST_RECORD_BYTES:
            try:
                [episode] = self._together(project_id, [_decode(raw)], raw, clock)
            except _TO_LOOK_AT:
                pass
            else:
                return episode
        return self._alone(project_id, raw, clock)

    async def read_batch(self, project_id: int, body: bytes, kind: str, clock: SenderClock) -> Read:
        if kind == JSON and len(body) <= LARGEST_RECORD_BYTES:
            try:
                records = _decode_all(body)
                if 0 < len(records) <= MOST_ITEMS:
                    episodes = self._together(project_id, records, body, clock)
                    return Read(len(records), episodes, list(range(len(records))))
            except _TO_LOOK_AT:
                pass
        items = split_batch(body, kind)
        read = Read(len(items))
        for start in range(0, len(items), AT_A_TIME):
            part = items[start : start + AT_A_TIME]
            try:
                if max(map(len, part)) > LARGEST_RECORD_BYTES:
                    raise _Odd
                read.episodes += self._together(project_id, list(map(_decode, part)), b"".join(part), clock)
                read.places += range(start, start + len(part))
            except _TO_LOOK_AT:
                await self._one_by_one(project_id, start, part, clock, read)
            await asyncio.sleep(0)
        return read

    async def _one_by_one(
        self, project_id: int, start: int, items: Sequence[bytes], clock: SenderClock, read: Read
    ) -> None:
        for place, raw in enumerate(items, start):
            try:
                read.episodes.append(self._alone(project_id, raw, clock))
                read.places.append(place)
            except Refused as refused:
                read.refuse(place, raw, refused.faults)
                # Explaining takes time; others get their turn.
                await asyncio.sleep(0)

    def _alone(self, project_id: int, raw: bytes, clock: SenderClock) -> PackedEpisode:
        record = check_record(raw, clock.now)
        [episode] = pack_episodes(self._cache, project_id, [record], clock.skew_s)
        return episode

    def _together(
        self, project_id: int, records: list[EpisodeRecord], text: bytes, clock: SenderClock
    ) -> list[PackedEpisode]:
        """All of them; or one of _TO_LOOK_AT."""
        has_escapes = b"\\" in text
        if has_escapes and _ESCAPED_NUL in text:
            raise _Odd
        if (has_escapes or not text.isascii()) and not all(map(normalise_text, records)):
            raise _Odd
        times = [record.started_at for record in records]
        if min(times) < EARLIEST or max(times) > clock.now + FARTHEST_AHEAD:
            raise _Odd
        ids = "".join([record.id for record in records])
        if not ids.isascii() or ids.encode().translate(None, _PLAIN):
            raise _Odd
        episodes = pack_episodes(self._cache, project_id, records, clock.skew_s)
        if may_repeat_keys(text, ids, episodes):
            raise _Odd
        return episodes
