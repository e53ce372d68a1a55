"""Senders that are catching up: they say how old the oldest record is that waits in their spool.

It tells the watch that a robot is not silent but behind. A sender that is not behind costs nothing: its header is
read and forgotten, unless this process noted a moment ago that it was. Nothing here can refuse a request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import structlog
from cachetools import TTLCache

from gapwatch.access.keys import KeyNumber
from gapwatch.ingest.packing.packed_episodes import PackedEpisode
from gapwatch.store.write.accept import Acceptor
from gapwatch.store.write.spool_ages import robot_of

log = structlog.get_logger()

SPOOL_AGE = b"gapwatch-spool-age-s"
# Younger than this is the usual way of a record to us.
SMALLEST_AGE_S = 60.0
LARGEST_AGE_S = 10 * 366 * 86400.0
# A sender that empties its spool sends many batches a second, and is noted so often.
NOTE_EVERY_S = 10.0
REMEMBER_S = 3600.0
MOST_REMEMBERED = 10_000

# A key and a robot.
Sender: TypeAlias = tuple[KeyNumber, str | None]

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


class SpoolAges:
    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        self._lately_noted: TTLCache[Sender, None] = TTLCache(MOST_REMEMBERED, NOTE_EVERY_S)
        # Senders that this process noted as being behind.
        self._behind: TTLCache[Sender, None] = TTLCache(MOST_REMEMBERED, REMEMBER_S)

    async def note(self, key: KeyNumber, header: str, episodes: Sequence[PackedEpisode]) -> None:
        """Note what a sender said, if it says something. A header that is no number says nothing."""
        age_s = read_age(header)
        if age_s is None or not episodes:
            return
        # Many robots may share a key; the first robot of a batch stands for whoever sent it.
        sender = (key, robot_of(episodes[0].context))
        is_behind = age_s > SMALLEST_AGE_S
        if sender in self._lately_noted if is_behind else sender not in self._behind:
            return
        if is_behind:
            self._behind[sender] = None
        try:
            if not await self._acceptor.note_spool_age(episodes, age_s if is_behind else None):
                return
            if is_behind:
                self._lately_noted[sender] = None
            else:
                self._behind.pop(sender, None)
                self._lately_noted.pop(sender, None)
        except Exception as error:
            # The episodes are stored, which is what the sender asked for.
            log.warning("the age of a spool was not noted", error=type(error).__name__)


def read_age(header: str) -> float | None:
    """Seconds, or None for anything that is no age."""
    text = header.strip()
    return min(float(text), LARGEST_AGE_S) if _NUMBER.fullmatch(text) else None
