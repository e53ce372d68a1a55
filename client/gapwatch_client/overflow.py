"""Episodes that could not be written because the disk is full or read-only: kept in memory, up to a bound."""

from __future__ import annotations

import threading
from collections import deque

from gapwatch_client.spool import Spool

MOST_RECORDS = 10_000


class Overflow:
    """The last resort, and the only part where kill -9 can lose an episode."""

    def __init__(self, most: int = MOST_RECORDS) -> None:
        self._most = most
        self.forget_after_fork()

    def forget_after_fork(self) -> None:
        """In a child: the waiting episodes are the parent's to write."""
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, bytes]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, domain: str, payload: bytes) -> str | None:
        """Add an episode. Beyond the bound, drop the oldest, sim before real, and return its domain."""
        with self._lock:
            self._waiting.append((domain, payload))
            if len(self._waiting) <= self._most:
                return None
            oldest = next((entry for entry in self._waiting if entry[0] == "sim"), self._waiting[0])
            self._waiting.remove(oldest)
            return oldest[0]

    def oldest(self, most: int) -> list[bytes]:
        with self._lock:
            return [payload for _, payload in list(self._waiting)[:most]]

    def forget(self, payloads: list[bytes]) -> None:
        """Remove episodes that were sent."""
        gone = set(payloads)
        with self._lock:
            self._waiting = deque(entry for entry in self._waiting if entry[1] not in gone)

    def move_to(self, spool: Spool) -> None:
        """Write as many to the disk as fit."""
        while True:
            with self._lock:
                if not self._waiting:
                    return
                domain, payload = self._waiting[0]
                try:
                    spool.append(domain, payload)
                except OSError:
                    return
                self._waiting.popleft()
