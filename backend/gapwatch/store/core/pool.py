"""The asynchronous connections of the ingest routes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from gapwatch.errors import ServiceUnavailable, UnsafeServer
from gapwatch.store.core.copy_exchange import prepare_probe
from gapwatch.store.core.database import session_options

# A connection that was used this recently is not checked before it is used again.
TRUSTED_S = 1.0
PLANNING = "-c enable_seqscan=off -c plan_cache_mode=force_custom_plan"


class Pool(AsyncConnectionPool[AsyncConnection]):
    """Opened by the caller inside its event loop.

    The look-up of known ids is planned each time, and without sequential scans: a plan from when the table was
    small or had no statistics would later read all of it (2 ms at 10,000 rows instead of 0.2).
    """

    def __init__(self, url: str, *, size: int) -> None:
        options = f"{session_options(statement_timeout_s=15)} {PLANNING}"
        self._last_used: WeakKeyDictionary[AsyncConnection, float] = WeakKeyDictionary()
        super().__init__(
            url,
            min_size=1,
            max_size=size,
            # Short, because after a restart of Postgres the next request is what makes the pool try again.
            timeout=1.5,
            open=False,
            configure=_configure,
            check=self._check_idle,
            reset=self._note_use,
            reconnect_timeout=1,
            kwargs={
                "autocommit": True,
                # psycopg forgets prepared statements after a rollback; `copy_exchange` prepares its own.
                "prepare_threshold": None,
                "connect_timeout": 5,
                "keepalives_idle": 30,
                "application_name": "gapwatch-ingest",
                "options": options,
            },
        )

    @asynccontextmanager
    async def answering(self, within_s: float) -> AsyncIterator[AsyncConnection]:
        """Lend a connection for so many seconds. Raise ServiceUnavailable when the database does not answer."""
        try:
            # A frozen server answers neither a query nor its statement_timeout.
            async with asyncio.timeout(within_s), self.connection() as connection:
                yield connection
        except (psycopg.OperationalError, PoolTimeout, TimeoutError) as error:
            raise ServiceUnavailable("The database is not answering; try again shortly.") from error

    def distrust(self) -> None:
        """After a connection failed: check each of the others before it is used again."""
        self._last_used.clear()

    async def _note_use(self, connection: AsyncConnection) -> None:
        self._last_used[connection] = time.monotonic()

    async def _check_idle(self, connection: AsyncConnection) -> None:
        """Check a connection that was idle: Postgres may have restarted since it was last used."""
        if time.monotonic() - self._last_used.get(connection, -TRUSTED_S) < TRUSTED_S:
            return
        try:
            await AsyncConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            # Postgres restarted: the other idle connections died too and are replaced at once, not one by one.
            await self.check()
            raise


def make_pool(url: str, *, size: int) -> Pool:
    return Pool(url, size=size)


async def _configure(connection: AsyncConnection) -> None:
    cursor = await connection.execute("SHOW fsync")
    if await cursor.fetchone() != ("on",):
        raise UnsafeServer
    await prepare_probe(connection)
