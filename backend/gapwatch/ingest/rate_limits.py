"""What one key may take: so many episodes a second, and so many batches at a time.

A noisy sender is slowed down, the others are not. The limits live in the process, so that ingest never waits for
anything but Postgres; each of several web processes gives out its share of the rate.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from weakref import WeakValueDictionary

from cachetools import LRUCache

from gapwatch.access.keys import KeyNumber
from gapwatch.errors import TooManyRequests

BURST_S = 2.0
# Of a key that is forgotten beyond these the bucket is full again.
MOST_KEYS = 10_000
# Fewer than there are database connections.
BATCHES_AT_A_TIME = 4


@dataclass
class _TokenBucket:
    tokens: float
    filled_at: float


class RateLimits:
    """A token bucket for each key."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._capacity = max(1.0, per_second * BURST_S)
        self._buckets: LRUCache[KeyNumber, _TokenBucket] = LRUCache(MOST_KEYS)

    def check(self, key: KeyNumber) -> None:
        """Refuse while the bucket is empty. Called before a body is read, so that refusing costs little."""
        bucket = self._filled(key)
        if bucket.tokens <= 0:
            seconds = math.ceil(-bucket.tokens / self._rate) or 1
            raise TooManyRequests(
                f"This key may send {self._rate:g} episodes a second; try again in {seconds} s.",
                headers={"Retry-After": str(seconds)},
            )

    def take(self, key: KeyNumber, episodes: int) -> None:
        """Take tokens. A batch larger than the bucket leaves a debt, and the next request waits that long."""
        self._filled(key).tokens -= episodes

    def _filled(self, key: KeyNumber) -> _TokenBucket:
        now = time.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _TokenBucket(self._capacity, now)
        bucket.tokens = min(self._capacity, bucket.tokens + (now - bucket.filled_at) * self._rate)
        bucket.filled_at = now
        return bucket


class BatchSlots:
    """Bound the memory and the connections that the batches of one key hold at a time."""

    def __init__(self) -> None:
        # A semaphore lives as long as a batch holds it or waits for it.
        self._slots: WeakValueDictionary[KeyNumber, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, key: KeyNumber) -> asyncio.Semaphore:
        return self._slots.setdefault(key, asyncio.Semaphore(BATCHES_AT_A_TIME))
