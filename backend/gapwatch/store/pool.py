"""The asynchronous connections of the ingest routes."""

from __future__ import annotations

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from gapwatch.errors import UnsafeServer
from gapwatch.store.database import session_options

Pool = AsyncConnectionPool[AsyncConnection]


def make_pool(url: str, *, size: int) -> Pool:
    """Opened by the caller inside its event loop.

    Sequential scans are off: on a fresh table without statistics the planner would scan all of it to look
    for known ids (measured 68 against 15 µs a row).
    """
    options = f"{session_options(statement_timeout_s=15)} -c enable_seqscan=off"

    async def check(connection: AsyncConnection) -> None:
        try:
            await AsyncConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            # Postgres restarted: the other idle connections died too and are replaced at once, not one by one.
            await pool.check()
            raise

    pool: Pool = AsyncConnectionPool(
        url,
        min_size=1,
        max_size=size,
        # Short, because after a restart of Postgres the next request is what makes the pool try again.
        timeout=1.5,
        open=False,
        configure=_refuse_unsafe_server,
        # Postgres may have restarted since the connection was last used.
        check=check,
        reconnect_timeout=1,
        kwargs={
            "autocommit": True,
            "connect_timeout": 5,
            "keepalives_idle": 30,
            "application_name": "gapwatch-ingest",
            "options": options,
        },
    )
    return pool


async def _refuse_unsafe_server(connection: AsyncConnection) -> None:
    cursor = await connection.execute("SHOW fsync")
    if await cursor.fetchone() != ("on",):
        raise UnsafeServer
