"""SQL of API keys on the asynchronous connections of the ingest routes."""

from __future__ import annotations

from psycopg import AsyncConnection
from psycopg.rows import class_row

from gapwatch.access.keys import KeyHolder


async def find_key(connection: AsyncConnection, prefix: str) -> KeyHolder | None:
    cursor = connection.cursor(row_factory=class_row(KeyHolder))
    await cursor.execute(
        """
        SELECT project_id, id AS key_id, prefix, scope, key_hash, expires_at, revoked_at, networks
        FROM api_keys WHERE prefix = %s
        """,
        (prefix,),
    )
    return await cursor.fetchone()


async def touch_key(connection: AsyncConnection, holder: KeyHolder) -> None:
    await connection.execute(
        "UPDATE api_keys SET last_used_at = now() WHERE project_id = %s AND id = %s",
        (holder.project_id, holder.key_id),
    )
