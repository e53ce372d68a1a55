"""Where an ended episode is written before the call returns: append-only files that survive the process.

One write of a whole line hands an episode to the kernel, so kill -9 cannot lose it. A thread calls `sync` at least
once a second to put it on the disk, so a power cut loses at most that second.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path

from gapwatch_client.spool_segments import OpenSegment, create_segment, seal

SEGMENT_BYTES = 4 * 1024 * 1024


class Spool:
    """The writing side. Every process has its own segments, so processes may share a directory."""

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.directory = directory
        self._segment_bytes = segment_bytes
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, OpenSegment] = {}
        self._retired: list[OpenSegment] = []
        self._unsynced: set[str] = set()
        self._directory_changed = False

    def append(self, domain: str, payload: bytes) -> None:
        """Write the episode to the file before returning, or raise OSError."""
        line = seal(payload)
        with self._lock:
            segment = self._open.get(domain)
            if segment is None or (segment.size and segment.size + len(line) > self._segment_bytes):
                segment = self._next_segment(domain)
            written = 0
            try:
                written = os.write(segment.fd, line)
                if written != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                if written:
                    self._take_back(domain, segment)
                raise
            segment.size += written
            self._unsynced.add(domain)

    def _next_segment(self, domain: str) -> OpenSegment:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = create_segment(self.directory, domain)
        former = self._open.get(domain)
        if former is not None:
            self._retired.append(former)
        self._open[domain] = fresh
        self._directory_changed = True
        return fresh

    def _take_back(self, domain: str, segment: OpenSegment) -> None:
        """Remove half a line, written on a full disk. A reader would skip it, but would count it as damaged."""
        try:
            os.ftruncate(segment.fd, segment.size)
        except OSError:
            self._retired.append(self._open.pop(domain))

    def sync(self) -> bool:
        """Make what is written so far survive a power cut, without blocking writers. False if nothing was due."""
        with self._lock:
            retired, self._retired = self._retired, []
            current = [self._open[domain] for domain in self._unsynced if domain in self._open]
            self._unsynced.clear()
            directory_changed, self._directory_changed = self._directory_changed, False
        for segment in (*retired, *current):
            with contextlib.suppress(OSError):
                os.fsync(segment.fd)
        if directory_changed:
            _sync_directory(self.directory)
        for segment in retired:
            # Closing releases the lock, which tells senders that the segment is complete.
            os.close(segment.fd)
        return bool(retired or current)

    def close(self) -> None:
        with self._lock:
            self._retired += self._open.values()
            self._open.clear()
        self.sync()

    def forget_after_fork(self) -> None:
        """In a child: the segments are the parent's. Closing our copies leaves its locks in place."""
        for segment in (*self._open.values(), *self._retired):
            with contextlib.suppress(OSError):
                os.close(segment.fd)
        self._start_afresh()


def _sync_directory(directory: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
