"""Refuse to write before the disk is full.

When Postgres cannot write its log it stops, and reading stops with it. Ingest therefore ends while there
is still room: writes are answered 507, pages and queries go on, and everything heals once space is freed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from gapwatch.errors import DiskFull

# A few segments of Postgres' log (16 MiB each), the largest batch, and room for the folds of what is stored.
LEAST_FREE_BYTES = 96 * 1024 * 1024
LOOK_EVERY_S = 0.5


class DiskSpaceGuard:
    """Watches the disk of the embedded cluster; an outside Postgres reports its own full disk."""

    def __init__(self, cluster: Path) -> None:
        self._cluster = cluster
        self._looked_at = -LOOK_EVERY_S
        self._is_full = False

    def refuse_when_full(self) -> None:
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            self._is_full = self._free_bytes() < LEAST_FREE_BYTES
        if self._is_full:
            raise DiskFull

    def _free_bytes(self) -> int:
        try:
            disk = os.statvfs(self._cluster)
        except OSError:
            return LEAST_FREE_BYTES
        return disk.f_bavail * disk.f_frsize
