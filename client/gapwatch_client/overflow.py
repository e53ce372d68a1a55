"""What could not be written, because the disk is full or closed to us: kept in memory, bounded, until it can."""

from __future__ import annotations

import threading
from collections import deque

from gapwatch_client.spool import Spool

MOST_RECORDS = 10_000


class Overflow:
    """The last resort, and the one place where kill -9 can lose an episode."""

    def __init__(self, most: int = MOST_RECORDS) -> None:
        self._most = most
        self.forget_after_fork()

    def forget_after_fork(self) -> None:
        """In a child: what waits here is the parent's to write."""
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, bytes]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, domain: str, payload: bytes) -> str | None:
        """The domain of the episode that had to go for it beyond the bound: a sim one while there is one."""
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
        """They were sent."""
        gone = set(payloads)
        with self._lock:
            self._waiting = deque(entry for entry in self._waiting if entry[1] not in gone)

    def move_to(self, spool: Spool) -> None:
        """To the disk, as far as it takes them."""
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
