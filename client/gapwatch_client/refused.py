"""The dead-letter file: records the server refused, each with its reasons, until somebody retries them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = "refused.ndjson"
FORMER = "refused.old.ndjson"
RETRYING = "refused.retrying.ndjson"
LARGEST_BYTES = 64 * 1024 * 1024
MOST_UNWRITTEN = 10_000


class RefusedRecords:
    def __init__(self, directory: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        self._directory = directory
        self._largest_bytes = largest_bytes
        self._unwritten: list[bytes] = []

    @property
    def path(self) -> Path:
        return self._directory / FILE

    def add(self, refusals: list[tuple[bytes, list[dict[str, Any]]]]) -> None:
        """Write the refusals to disk before returning; on a full disk they wait in memory for the next call."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._unwritten += [
            json.dumps({"at": now, "reasons": reasons}).encode()[:-1] + b', "record": %s}\n' % payload
            for payload, reasons in refusals
        ]
        del self._unwritten[:-MOST_UNWRITTEN]
        with contextlib.suppress(OSError):
            self._write(b"".join(self._unwritten))
            self._unwritten.clear()

    def _write(self, lines: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            before = os.fstat(fd).st_size
            if os.write(fd, lines) != len(lines):
                os.ftruncate(fd, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
        finally:
            os.close(fd)
        if before + len(lines) > self._largest_bytes:
            # Two files are enough: records refused for days are all refused for the same reason.
            self.path.replace(self._directory / FORMER)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each as {"at", "reasons", "record"}, the oldest first."""
        for name in (RETRYING, FORMER, FILE):
            yield from _entries(self._directory / name)

    def reasons(self) -> Counter[str]:
        """How often each reason occurred, by pointer, code and message."""
        counts: Counter[str] = Counter()
        for entry in self:
            counts.update(
                f"{r.get('pointer') or '/'} {r.get('code')}: {r.get('message')}" for r in entry["reasons"]
            )
        return counts

    def take(self) -> Iterator[dict[str, Any]]:
        """Yield every record to be spooled again; the files are deleted only after the last one."""
        retrying = self._directory / RETRYING
        for name in (FORMER, FILE):
            with contextlib.suppress(FileNotFoundError):
                moved = (self._directory / name).read_bytes()
                with retrying.open("ab") as file:
                    file.write(moved)
                    file.flush()
                    os.fsync(file.fileno())
                (self._directory / name).unlink()
        for entry in _entries(retrying):
            yield entry["record"]
        retrying.unlink(missing_ok=True)


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for line in file:
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    entry = json.loads(line)
                    entry["reasons"], entry["record"]
                    yield entry
    except FileNotFoundError:
        return
