"""The files of a spool directory: their names, and the lines in them.

A segment belongs to one process, holds episodes of one domain and is append-only. Its owner locks the file while
it lives; a segment that nobody has locked is complete. A `.sent` file says how far it is sent.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

REAL, SIM = "real", "sim"
SEGMENT = ".seg"
PROGRESS = ".sent"
UNFINISHED = ".new"

_NAME = re.compile(r"\d{16}-\d+-[0-9a-f]{8}-(real|sim)\.seg")
_CHECKSUM_DIGITS = 8


def seal(payload: bytes) -> bytes:
    """One line: a checksum, a space and the JSON. The checksum exposes half-written lines."""
    return b"%08x %s\n" % (zlib.crc32(payload), payload)


def unseal(line: bytes) -> bytes | None:
    """The JSON of a line without its newline, or None if it is damaged."""
    payload = line[_CHECKSUM_DIGITS + 1 :]
    return payload if line[: _CHECKSUM_DIGITS + 1] == b"%08x " % zlib.crc32(payload) else None


@dataclass
class OpenSegment:
    """A segment that this process is writing."""

    path: Path
    fd: int
    size: int = 0


def create_segment(directory: Path, domain: str) -> OpenSegment:
    """Create a file, locked before it gets its name: a sender must not take it for a dead process's."""
    name = f"{time.time_ns() // 1_000:016d}-{os.getpid()}-{os.urandom(4).hex()}-{domain}"
    unfinished = directory / (name + UNFINISHED)
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = unfinished.with_suffix(SEGMENT)
        unfinished.rename(path)
    except OSError:
        os.close(fd)
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    return OpenSegment(path, fd)


@dataclass(frozen=True)
class SegmentFile:
    """A segment as a reader sees it."""

    path: Path
    domain: str
    size: int

    @property
    def progress_path(self) -> Path:
        return self.path.with_suffix(PROGRESS)

    def sent(self) -> int:
        """Bytes that need not be sent again. If unknown, they are sent again and the server deduplicates."""
        try:
            return min(int(self.progress_path.read_bytes() or 0), self.size)
        except (OSError, ValueError):
            return 0

    def set_sent(self, offset: int) -> None:
        fd = os.open(self.progress_path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(fd, b"%020d" % offset, 0)
        finally:
            os.close(fd)

    def is_complete(self) -> bool:
        """Whether nobody writes it any more: its owner started another, exited or was killed."""
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def remove(self) -> None:
        for path in (self.path, self.progress_path):
            try:
                path.unlink()
            except FileNotFoundError:
                continue


def list_segments(directory: Path) -> list[SegmentFile]:
    """Segments of every process in the directory: real before sim, then oldest first."""
    segments = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                if match:
                    try:
                        segments.append(SegmentFile(Path(entry.path), match[1], entry.stat().st_size))
                    except FileNotFoundError:  # sent and removed by another process just now
                        continue
    except OSError:  # not created yet, or impossible to create
        return []
    return sorted(segments, key=lambda segment: (segment.domain, segment.path.name))
