"""The permits that robots ask this process for, kept in memory and up to date; those who wait are woken.

Waiting costs neither a thread nor a database connection. What is answered is at most five seconds old: when the
database does not answer, neither do we, and each robot decides by the fail-safe that its team chose.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from cachetools import LRUCache

from gapwatch.errors import ServiceUnavailable
from gapwatch.store.core.pool import Pool
from gapwatch.store.rollout import permits
from gapwatch.store.rollout.permits import Hearing, Permit, PermitConnection, PermitFeed, PermitPlace

FRESH_S = 5.0
# A place that nobody asked about for this long is followed no longer.
FORGET_AFTER_S = 120.0
MOST_SLUGS = 10_000
MOST_CLIENTS = 20_000
# Of one process; beyond it a robot is answered at once and asks again.
MOST_WAITING = 5_000
# A client that knows nothing new is written down again after this long.
SEEN_EVERY_S = 10.0


@dataclass
class _Followed:
    permit: Permit
    asked_at: float
    waiters: set[asyncio.Future[None]] = field(default_factory=set)


@dataclass
class _Client:
    revision: int
    asked_at: float
    knew_at: float
    stored_at: float = -SEEN_EVERY_S
    is_news: bool = True


class PermitBoard:
    def __init__(self, database_url: str, pool: Pool) -> None:
        self._pool = pool
        self._feed = PermitFeed(database_url)
        self._followed: dict[PermitPlace, _Followed] = {}
        self._places: LRUCache[tuple[int, str], PermitPlace] = LRUCache(MOST_SLUGS)
        self._clients: dict[tuple[PermitPlace, str], _Client] = {}
        self._looked_at: float | None = None
        self._waiting = 0
        self._is_ending = False
        self._following: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow what is decided, from within the event loop of the process."""
        self._following = asyncio.create_task(self._feed.follow(self._look, self._lose))

    def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()

    def let_go(self) -> None:
        """The process ends: whoever waits is answered now."""
        self._is_ending = True
        for followed in self._followed.values():
            _wake(followed)

    async def place_of(self, project_id: int, slug: str) -> PermitPlace | None:
        known = self._places.get((project_id, slug))
        if known is None:
            known = await permits.find_place(self._pool, project_id, slug)
            if known is not None:
                self._places[project_id, slug] = known
        return known

    async def current(self, place: PermitPlace) -> Permit | None:
        """What is followed already comes from memory, anything else from the database."""
        followed = self._followed.get(place)
        if followed is not None and self._is_fresh():
            followed.asked_at = time.monotonic()
            return followed.permit
        permit = await permits.read_permit(self._pool, place)
        known = self._followed.get(place)
        # What was read before the newest round is not news.
        if permit is not None and (known is None or permit.revision >= known.permit.revision):
            self._put(place, permit)
        return permit

    async def news(self, place: PermitPlace, tag: str, within_s: float) -> Permit:
        """Return when the permit has another tag, or after the time. Raise ServiceUnavailable if nobody knows."""
        until = time.monotonic() + within_s
        self._waiting += 1
        try:
            while True:
                followed = self._followed.get(place)
                if followed is None:
                    raise ServiceUnavailable("The database is not answering; try again shortly.")
                left = until - time.monotonic()
                if followed.permit.tag != tag or left <= 0 or self._is_ending or self._waiting > MOST_WAITING:
                    break
                followed.asked_at = time.monotonic()
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                followed.waiters.add(waiter)
                try:
                    await asyncio.wait((waiter,), timeout=left)
                finally:
                    followed.waiters.discard(waiter)
        finally:
            self._waiting -= 1
        # A change was just read. That there is none has to be known.
        if followed.permit.tag == tag and not self._is_fresh():
            raise ServiceUnavailable("The database is not answering; try again shortly.")
        return followed.permit

    def hear(self, place: PermitPlace, client: str, revision: int) -> None:
        """A client asks, and knows this revision."""
        now = time.monotonic()
        known = self._clients.get((place, client))
        if known is None:
            if len(self._clients) < MOST_CLIENTS:
                self._clients[place, client] = _Client(revision, now, now)
            return
        known.asked_at = now
        if revision > known.revision:
            known.revision, known.knew_at, known.is_news = revision, now, True

    async def _look(self, connection: PermitConnection) -> None:
        """One round: read what is followed, wake whom it concerns, and write down who knows what."""
        now = time.monotonic()
        for place in [p for p, one in self._followed.items() if now - one.asked_at > FORGET_AFTER_S]:
            if not self._followed[place].waiters:
                del self._followed[place]
        for place, permit in (await permits.read_permits(connection, list(self._followed))).items():
            self._put(place, permit)
        self._looked_at = time.monotonic()
        await self._store_hearings(connection)

    async def _store_hearings(self, connection: PermitConnection) -> None:
        now = time.monotonic()
        told = [
            (key, one)
            for key, one in self._clients.items()
            if one.is_news or (one.asked_at > one.stored_at and now - one.stored_at > SEEN_EVERY_S)
        ]
        await permits.store_hearings(
            connection,
            [
                Hearing(place, client, one.revision, now - one.asked_at, now - one.knew_at)
                for (place, client), one in told
            ],
        )
        for _, one in told:
            one.stored_at, one.is_news = now, one.knew_at > now
        for key in [key for key, one in self._clients.items() if now - one.asked_at > FORGET_AFTER_S]:
            del self._clients[key]

    def _put(self, place: PermitPlace, permit: Permit) -> None:
        followed = self._followed.get(place)
        if followed is None:
            self._followed[place] = _Followed(permit, time.monotonic())
        elif followed.permit != permit:
            followed.permit = permit
            _wake(followed)

    def _lose(self) -> None:
        self._looked_at = None

    def _is_fresh(self) -> bool:
        return self._looked_at is not None and time.monotonic() - self._looked_at < FRESH_S


def _wake(followed: _Followed) -> None:
    for waiter in followed.waiters:
        if not waiter.done():
            waiter.set_result(None)
