"""What one key may take: a token bucket for its rate, and few lanes for its batches.

One noisy sender is slowed down, the others are not.

Buckets live in the process, so that ingest never waits for anything but Postgres; each of several web
processes gives out its share of the rate.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass

from gapwatch.errors import TooManyRequests

BURST_S = 2.0
MOST_BUCKETS = 10_000
# Batches of one key that are read and stored at the same time; fewer than there are database connections.
LANES = 4


@dataclass
class _Bucket:
    tokens: float
    at: float


class Buckets:
    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._most = max(1.0, per_second * BURST_S)
        self._buckets: dict[int, _Bucket] = {}

    def check(self, key_id: int) -> None:
        """Refuse while the bucket is empty. Asked before a body is read, so that refusing costs little."""
        bucket = self._filled(key_id)
        if bucket.tokens <= 0:
            seconds = math.ceil(-bucket.tokens / self._rate) or 1
            raise TooManyRequests(
                f"This key may send {self._rate:g} episodes a second; try again in {seconds} s.",
                headers={"Retry-After": str(seconds)},
            )

    def take(self, key_id: int, episodes: int) -> None:
        """A batch larger than the bucket puts it into debt and the next request waits that long."""
        self._filled(key_id).tokens -= episodes

    def _filled(self, key_id: int) -> _Bucket:
        now = time.monotonic()
        bucket = self._buckets.get(key_id)
        if bucket is None:
            if len(self._buckets) >= MOST_BUCKETS:
                self._buckets.clear()
            bucket = self._buckets[key_id] = _Bucket(self._most, now)
        bucket.tokens = min(self._most, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        return bucket


class Lanes:
    """Bounds the memory and the connections that the batches of one key hold at a time."""

    def __init__(self) -> None:
        self._lanes: dict[int, asyncio.Semaphore] = {}

    def of(self, key_id: int) -> asyncio.Semaphore:
        return self._lanes.setdefault(key_id, asyncio.Semaphore(LANES))
