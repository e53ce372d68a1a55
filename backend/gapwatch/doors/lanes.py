"""Lanes: how many costly requests of one project run at a time, so that none of them takes what others need.

A lane is of one process; each web process has its own. Waiting costs neither a thread nor a database connection.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from gapwatch.errors import ServiceUnavailable, TooManyRequests

RETRY_AFTER_S = 5


class Lanes:
    """One lane a project. `what` completes the sentence of a refusal: "… two exports at a time"."""

    def __init__(
        self,
        what: str,
        *,
        overall: int,
        at_once: int,
        waiting: int,
        wait_s: float = 10.0,
        refuse_after_s: float = 0.0,
    ) -> None:
        self._what = what
        self._overall = overall
        self._at_once = at_once
        self._most_waiting = waiting
        self._wait_s = wait_s
        # Somebody who asks again at once is slowed down by this, at no cost to us.
        self._refuse_after_s = refuse_after_s
        self._running: Counter[int] = Counter()
        # In the order of arrival. Whoever stands before a project with a full lane does not hold it up.
        self._queue: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def running(self) -> int:
        return self._running.total()

    @asynccontextmanager
    async def of(self, project_id: int) -> AsyncIterator[None]:
        await self.enter(project_id)
        try:
            yield
        finally:
            self.leave(project_id)

    async def enter(self, project_id: int) -> None:
        """Return when it is this request's turn; `leave` has to follow. Raise 429 or 503 when it does not come."""
        if self._has_room(project_id):
            self._running[project_id] += 1
            return
        if sum(waiter == project_id for waiter, _ in self._queue) >= self._most_waiting:
            refusal = self._refusal(project_id)
            await asyncio.sleep(self._refuse_after_s)
            raise refusal
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (project_id, turn)
        self._queue.append(entry)
        try:
            async with asyncio.timeout(self._wait_s):
                await asyncio.shield(turn)
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done():  # the turn came in the same moment
                self.leave(project_id)
            else:
                self._queue.remove(entry)
            if isinstance(error, TimeoutError):
                raise self._refusal(project_id) from None
            raise

    def leave(self, project_id: int) -> None:
        self._running[project_id] -= 1
        if not self._running[project_id]:
            del self._running[project_id]
        # Those of other projects first: whoever asks often does not always come first.
        for entry in sorted(self._queue, key=lambda entry: entry[0] == project_id):
            waiter, turn = entry
            if self._has_room(waiter):
                self._queue.remove(entry)
                self._running[waiter] += 1
                turn.set_result(None)

    def _has_room(self, project_id: int) -> bool:
        """The second half of all places is given out one a project: nobody takes the last ones."""
        free = self._overall - self.running
        most = self._at_once if free > self._overall // 2 else 1
        return free > 0 and self._running[project_id] < most

    def _refusal(self, project_id: int) -> TooManyRequests | ServiceUnavailable:
        if self._running[project_id]:
            return TooManyRequests(
                f"This project may run {self._what} at a time; try again when one has ended.",
                headers={"Retry-After": str(RETRY_AFTER_S)},
            )
        return ServiceUnavailable(
            "Other projects' long requests take all the room there is for them; try again shortly.",
            retry_after_s=RETRY_AFTER_S,
        )


class Places:
    """How many threads and database connections the pages of one project hold at a time. Nobody waits: they are
    held already when the project is known."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, project_id: int) -> Iterator[None]:
        with self._lock:
            if self._taken[project_id] >= self._most:
                raise TooManyRequests(
                    f"This project may load {self._most} pages at a time; load this one again.",
                    headers={"Retry-After": "1"},
                )
            self._taken[project_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[project_id] -= 1
                if not self._taken[project_id]:
                    del self._taken[project_id]
