"""Find keys that are repeated within one object, by counting colons.

The decoder keeps the last of two equal keys and says nothing. But then the text has more colons than its decoded
records would have if they were written again, so the two counts are compared. A difference only means "maybe": the
records are then parsed one by one with the standard library's parser, which sees every key (`explain.py`).

Writing the records again in order to count takes 1.6 µs a record, a tenth of reading and packing it (15 µs, 2
cores). In a batch the second count is therefore put together: parts that many episodes share keep their count
(`EpisodeContext.colons`, `EpisodeOutcome.colons`), and what is left is a few keys. Adding up takes 0.05 µs, and
counting the colons of the text 0.4 µs.

Three things bend the counts. An escaped colon (`\\u003a`) is a colon only once decoded: such a text is "maybe". A
time may be sent with an offset, `+01:00` for `Z`: these colons are counted apart. Keys of a contract are not
decoded: its own count is taken as it is, and its keys are compared when it is first seen (`checks.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET

from gapwatch.record import EpisodeRecord, Failure

CONTEXT_FIELDS = (
    *("domain", "policy", "task", "deployment", "robot", "site", "simulator", "stage"),
    *("conditions", "signals", "metrics", "contract"),
)
OUTCOME_FIELDS = ("outcome", "session", "failure", "safety")
NUMBER_FIELDS = ("duration_s", "reward")
_ALL_BUT_ID_AND_TIME = tuple(name for name in EpisodeRecord.__struct_fields__ if name not in {"id", "started_at"})
# Whatever is left, later fields too.
OWN_FIELDS = tuple(
    name for name in _ALL_BUT_ID_AND_TIME if name not in {*CONTEXT_FIELDS, *OUTCOME_FIELDS, *NUMBER_FIELDS}
)
# The keys of `id` and `started_at`, and the two colons in a time that ends with Z.
_COLONS_OF_ID_AND_TIME = 4

_encode = msgspec.json.Encoder().encode
_ESCAPED_COLON = re.compile(rb"\\u003[aA]")
_TIME_WITH_OFFSET = re.compile(rb'"started_at"\s*:\s*"[^"]*[+-]\d\d:\d\d"')


class CountedEpisode(Protocol):
    @property
    def colons(self) -> int:
        """Those of all fields but `id` and `started_at`."""
        ...


def count_colons(record: EpisodeRecord, names: Iterable[str]) -> int:
    """Count the colons of some fields' JSON: of their own keys, of all inside them and of texts."""
    fields = {name: value for name in names if (value := getattr(record, name)) is not UNSET}
    return _encode(fields).count(b":")


def count_own_colons(record: EpisodeRecord) -> int:
    """Count those of what only one episode says: OWN_FIELDS, and the note of a failure."""
    colons = count_colons(record, OWN_FIELDS)
    if isinstance(record.failure, Failure) and record.failure.note is not UNSET:
        colons += _encode({"note": record.failure.note}).count(b":")
    return colons


def may_repeat_keys(text: bytes, joined_ids: str, episodes: Sequence[CountedEpisode]) -> bool:
    """Return whether a key may be repeated in the text of these episodes."""
    colons = 0
    for episode in episodes:
        colons += episode.colons
    return _has_more_colons(text, joined_ids, len(episodes), colons)


def record_may_repeat_keys(raw: bytes, record: EpisodeRecord) -> bool:
    """Return whether a key may be repeated in a record that is not packed yet."""
    return _has_more_colons(raw, record.id, 1, count_colons(record, _ALL_BUT_ID_AND_TIME))


def _has_more_colons(text: bytes, joined_ids: str, records: int, colons: int) -> bool:
    if b"\\" in text and _ESCAPED_COLON.search(text):
        return True
    surplus = text.count(b":") - colons - _COLONS_OF_ID_AND_TIME * records - joined_ids.count(":")
    if surplus == 0:
        return False
    # The repeated key may be `started_at` itself; then offsets explain nothing.
    return text.count(b'"started_at"') != records or surplus != len(_TIME_WITH_OFFSET.findall(text))
