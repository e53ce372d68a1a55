"""Which project a request writes to: a key is checked on every request and looked up once a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from cachetools import LRUCache, TTLCache
from starlette.requests import Request

from gapwatch.access.keys import PREFIX_LENGTH, KeyHolder, KeyNumber, bearer, hash_key
from gapwatch.errors import Forbidden, NotSignedIn
from gapwatch.store.core.pool import Pool
from gapwatch.store.people.keys import find_key, touch_key

# A revoked key stops working within this time on every process.
REMEMBER_S = 0.8
TOUCH_EVERY_S = 60.0
MOST_REMEMBERED = 10_000
ANSWER_WITHIN_S = 5.0


class Keyring:
    def __init__(self, pool: Pool, server_secret: bytes) -> None:
        self._pool = pool
        self._server_secret = server_secret
        # With the time before the look-up: a key that is revoked during it must not live longer.
        self._holders: LRUCache[str, tuple[float, KeyHolder | None]] = LRUCache(MOST_REMEMBERED)
        self._looking: dict[str, asyncio.Task[KeyHolder | None]] = {}
        self._lately_touched: TTLCache[KeyNumber, None] = TTLCache(MOST_REMEMBERED, TOUCH_EVERY_S)

    async def authorize(self, authorization: list[str], scope: str, client: str | None) -> KeyHolder:
        """Return the holder of a valid key with the scope."""
        return _allowed(await self.know(authorization, client), scope)

    async def know(self, authorization: list[str], client: str | None) -> KeyHolder:
        """Return the holder of a valid key. Absent, wrong, revoked, expired and used from where it may not be get
        one answer. `client` is the address of the sender.
        """
        secret = bearer(authorization[0]) if len(authorization) == 1 else None
        holder = None
        if secret is not None:
            holder = await self._find(secret[:PREFIX_LENGTH])
            presented = hash_key(self._server_secret, secret)
            if holder is not None and not (
                holder.is_valid(presented, datetime.now(UTC)) and holder.is_from_here(client)
            ):
                holder = None
        if holder is None:
            raise NotSignedIn(
                "Send a valid API key as `Authorization: Bearer gw_…`.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return holder

    async def of_request(self, request: Request) -> KeyHolder:
        client = request.client.host if request.client else None
        return await self.know(request.headers.getlist("authorization"), client)

    def needs(self, scope: str) -> Callable[[Request], Awaitable[KeyHolder]]:
        """Return a FastAPI dependency: the holder of a key with the scope."""

        async def holder(request: Request) -> KeyHolder:
            known: KeyHolder | None = getattr(request.state, "key_holder", None)
            if known is not None:  # found by the web process that this one works for
                return _allowed(known, scope)
            return _allowed(await self.of_request(request), scope)

        return holder

    async def _find(self, prefix: str) -> KeyHolder | None:
        """Look up who a key belongs to. Remember it for a moment, and also that there is no such key."""
        now = time.monotonic()
        remembered = self._holders.get(prefix)
        if remembered is not None and now - remembered[0] < REMEMBER_S:
            return remembered[1]
        looking = self._looking.get(prefix)
        if looking is None:
            # Hundreds of robots with one key ask at one moment: it is looked up once for all of them.
            looking = self._looking[prefix] = asyncio.create_task(self._look_up(prefix, now))
            looking.add_done_callback(lambda _: self._looking.pop(prefix, None))
        return await asyncio.shield(looking)

    async def _look_up(self, prefix: str, now: float) -> KeyHolder | None:
        async with self._pool.answering(ANSWER_WITHIN_S) as connection:
            holder = await find_key(connection, prefix)
            if holder is not None and holder.key not in self._lately_touched:
                self._lately_touched[holder.key] = None
                await touch_key(connection, holder)
        self._holders[prefix] = (now, holder)
        return holder


def _allowed(holder: KeyHolder, scope: str) -> KeyHolder:
    if not holder.may(scope):
        raise Forbidden(f"This key has the scope {holder.scope}; this call needs {scope}.")
    return holder
