"""SQL of API keys on the asynchronous connections of the ingest routes."""

from __future__ import annotations

from psycopg import AsyncConnection

from gapwatch.access.keys import KeyHolder


async def find_key(connection: AsyncConnection, prefix: str) -> KeyHolder | None:
    cursor = await connection.execute(
        """
        SELECT project_id, id, prefix, scope, key_hash, expires_at, revoked_at
        FROM api_keys WHERE prefix = %s
        """,
        (prefix,),
    )
    row = await cursor.fetchone()
    return None if row is None else KeyHolder(*row)


async def touch_key(connection: AsyncConnection, holder: KeyHolder) -> None:
    await connection.execute(
        "UPDATE api_keys SET last_used_at = now() WHERE project_id = %s AND id = %s",
        (holder.project_id, holder.key_id),
    )
