"""The reading side of a spool directory: episodes still to be sent, whichever process wrote them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gapwatch_client.spool_segments import SEGMENT, SIM, UNFINISHED, SegmentFile, list_segments, unseal

BATCH_RECORDS = 1000
# Small enough that splitting it into lines does not hold the GIL for long.
BATCH_BYTES = 1024 * 1024
# The client writes no longer lines.
LONGEST_LINE = 1024 * 1024 + 16
# After this many lines the sending thread yields: left alone it would release the GIL only every five
# milliseconds, and a control loop must not wait that long.
_LINES_AT_A_TIME = 200
_ABANDONED_S = 60.0
# Parsing a record of a mebibyte would hold the GIL for long; its start stands among the first fields.
_STARTED_AT = re.compile(rb'"started_at": ?"([^"]{10,40})"')
_LOOK_FOR_START = 4096


@dataclass
class Batch:
    """Episodes of one request, and the offset that each segment is sent up to once the server answers."""

    payloads: list[bytes] = field(default_factory=list)
    reached: dict[SegmentFile, int] = field(default_factory=dict)
    damaged: int = 0
    size: int = 0


class Backlog:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._in_flight: frozenset[Path] = frozenset()

    def gather(
        self,
        most: int = BATCH_RECORDS,
        most_bytes: int = BATCH_BYTES,
        breathe: Callable[[], None] | None = None,
        after: Batch | None = None,
    ) -> Batch:
        """Return the next batch, real episodes first. Segments sent completely are removed along the way.

        `after` is a batch in flight, not settled yet: this one starts behind it.
        """
        batch = Batch()
        under_way = {segment.path: offset for segment, offset in after.reached.items()} if after else {}
        for segment in list_segments(self.directory):
            offset = under_way.get(segment.path) or segment.sent()
            if offset < segment.size:
                reached = self._take(segment, offset, batch, most, most_bytes, breathe)
                if reached > offset:
                    batch.reached[segment] = reached
            elif segment.path not in under_way and _is_final(segment):
                segment.remove()
            if len(batch.payloads) >= most or batch.size >= most_bytes:
                break
        self._in_flight = frozenset([*under_way, *(segment.path for segment in batch.reached)])
        return batch

    def _take(
        self,
        segment: SegmentFile,
        offset: int,
        batch: Batch,
        most: int,
        most_bytes: int,
        breathe: Callable[[], None] | None,
    ) -> int:
        """Add lines to the batch and return the offset after the last one."""
        room = max(most_bytes - batch.size, LONGEST_LINE)
        try:
            fd = os.open(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            return offset
        try:
            read = os.pread(fd, room, offset)
        finally:
            os.close(fd)
        lines = read.split(b"\n")
        tail = lines.pop()
        for number, line in enumerate(lines):
            if len(batch.payloads) >= most or batch.size >= most_bytes:
                return offset
            if breathe and number % _LINES_AT_A_TIME == _LINES_AT_A_TIME - 1:
                breathe()
            payload = unseal(line)
            if payload is not None:
                batch.payloads.append(payload)
                batch.size += len(payload) + 1
            elif line:
                batch.damaged += 1
            offset += len(line) + 1
        ended = offset + len(tail) >= segment.size and _is_final(segment)
        if tail and (ended or len(tail) >= LONGEST_LINE):
            # The owner was killed during a write. Its call never returned, so nobody was promised this episode.
            batch.damaged += 1
            offset += len(tail)
        return offset

    def settle(self, batch: Batch) -> None:
        """Record that the batch was answered. On a full disk it is sent again and the server deduplicates."""
        for segment, reached in batch.reached.items():
            with contextlib.suppress(OSError):
                if reached >= segment.size and _is_final(segment):
                    segment.remove()
                elif segment.path.exists():
                    segment.set_sent(reached)

    def release(self) -> None:
        """Nothing is in flight. A batch that was not answered will be gathered again."""
        self._in_flight = frozenset()

    def pending_bytes(self) -> int:
        return sum(max(segment.size - segment.sent(), 0) for segment in list_segments(self.directory))

    def pending(self) -> Counter[str]:
        """Count episodes by domain. Reads every file: for people who ask, not for a control loop."""
        counts: Counter[str] = Counter()
        for segment in list_segments(self.directory):
            counts[segment.domain] += _lines_after(segment, segment.sent())
        return counts

    def oldest_s(self) -> float | None:
        """Age of the oldest unsent segment."""
        waiting = [s for s in list_segments(self.directory) if s.sent() < s.size]
        created_us = min((int(s.path.name.partition("-")[0]) for s in waiting), default=None)
        return None if created_us is None else max(0.0, time.time() - created_us / 1e6)

    def age_s(self, batch: Batch) -> float | None:
        """Age of the oldest record of a batch, as little as it can be known to be at most.

        It was written after its segment was created, and after what it tells of had begun; a segment may be as old
        as its process, and history that is pushed tells of long ago.
        """
        if not batch.payloads or not batch.reached:
            return None
        first = next(iter(batch.reached))
        written_at = int(first.path.name.partition("-")[0]) / 1e6
        match = _STARTED_AT.search(batch.payloads[0], 0, _LOOK_FOR_START)
        if match:
            with contextlib.suppress(ValueError, OverflowError):
                started = datetime.fromisoformat(match[1].decode().replace("Z", "+00:00"))
                written_at = max(written_at, started.timestamp()) if started.tzinfo else written_at
        return max(0.0, time.time() - written_at)

    def drop_oldest(self, most_bytes: int) -> Counter[str]:
        """Shrink the directory to a size, sim before real, oldest first. Return how many episodes were dropped."""
        dropped: Counter[str] = Counter()
        segments = list_segments(self.directory)
        excess = sum(segment.size for segment in segments) - most_bytes
        for segment in sorted(segments, key=lambda s: (s.domain != SIM, s.path.name)):
            if excess <= 0:
                break
            if segment.path in self._in_flight or not segment.is_complete():
                continue
            lost = _lines_after(segment, segment.sent())
            segment.remove()
            excess -= segment.size
            dropped[segment.domain] += lost
        return dropped

    def tidy(self) -> None:
        """Remove what a killed process left: unfinished files, and progress files without a segment."""
        with contextlib.suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    path = Path(entry.path)
                    lonely = path.suffix == ".sent" and not path.with_suffix(SEGMENT).exists()
                    abandoned = path.suffix == UNFINISHED and time.time() - entry.stat().st_mtime > _ABANDONED_S
                    if lonely or abandoned:
                        path.unlink()


class SendingLock:
    """One process at a time sends from a directory. The lock ends with the process, however it ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "sending.lock"
        self._fd: int | None = None

    @property
    def is_held(self) -> bool:
        return self._fd is not None

    def try_acquire(self) -> bool:
        if self._fd is not None:
            return True
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self._fd = fd
        return True

    def release(self) -> None:
        """Also safe in a forked child: closing its copy leaves the parent's lock in place."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _is_final(segment: SegmentFile) -> bool:
    """Whether nobody writes it any more and nothing was added since it was listed."""
    try:
        return segment.is_complete() and segment.path.stat().st_size == segment.size
    except FileNotFoundError:
        return False


def _lines_after(segment: SegmentFile, offset: int) -> int:
    try:
        with segment.path.open("rb") as file:
            file.seek(offset)
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except FileNotFoundError:
        return 0
