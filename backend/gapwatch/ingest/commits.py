"""Group commit: single episodes that arrive at the same moment share one transaction.

Each answer still waits for its own commit. While one transaction is on its way to disk the next group
gathers, so the busier the service the larger the groups; an idle service commits at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gapwatch.errors import ServiceUnavailable
from gapwatch.ingest.packing.packed_episodes import PackedEpisode
from gapwatch.store.write.accept import Acceptor, Status

LARGEST_GROUP = 500
MOST_WAITING = 20_000


class GroupCommit:
    def __init__(self, acceptor: Acceptor, stored: Callable[[], None]) -> None:
        """`stored` is called after each commit that added an episode."""
        self._acceptor = acceptor
        self._stored = stored
        self._waiting: list[tuple[PackedEpisode, asyncio.Future[Status]]] = []
        self._running: asyncio.Task[None] | None = None

    async def store(self, episode: PackedEpisode) -> Status:
        if len(self._waiting) >= MOST_WAITING:
            raise ServiceUnavailable("Too many episodes are waiting to be stored; try again shortly.")
        future: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._waiting.append((episode, future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._commit_groups())
        # A sender that hangs up cancels its own future and not its group.
        return await future

    async def _commit_groups(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:LARGEST_GROUP], self._waiting[LARGEST_GROUP:]
            try:
                statuses = await self._store([episode for episode, _ in group])
            except Exception as error:
                await self._store_each(group, error)
                continue
            for (_, future), status in zip(group, statuses, strict=True):
                if not future.done():
                    future.set_result(status)

    async def _store(self, episodes: list[PackedEpisode]) -> list[Status]:
        statuses = await self._acceptor.store(episodes)
        if "accepted" in statuses or "repeated" in statuses:
            self._stored()
        return statuses

    async def _store_each(
        self, group: list[tuple[PackedEpisode, asyncio.Future[Status]]], error: Exception
    ) -> None:
        """Answer a failed group. Unless the database is away, an episode is to blame: store each alone."""
        for episode, future in group:
            try:
                if isinstance(error, ServiceUnavailable) or len(group) == 1:
                    raise error
                [status] = await self._store([episode])
            except Exception as own_error:
                if not future.done():
                    future.set_exception(own_error)
            else:
                if not future.done():
                    future.set_result(status)
