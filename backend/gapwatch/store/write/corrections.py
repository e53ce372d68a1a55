"""Correct and delete stored episodes: the old row moves to the revisions, and the rollups follow."""

from __future__ import annotations

from psycopg import AsyncConnection, sql
from psycopg.types.json import Jsonb

from gapwatch.store.tables.episodes import EpisodeTable
from gapwatch.store.write.repeats import forget_repeat

_SHARED = [column.name for column in EpisodeTable.__table__.columns]
_MOVE = sql.SQL(
    "INSERT INTO episode_revisions ({columns}, ended_by, actor)"
    " SELECT {columns}, %s, %s FROM episodes WHERE project_id = %s AND id = %s"
).format(columns=sql.SQL(", ").join(map(sql.Identifier, _SHARED)))


async def standing_revision(
    connection: AsyncConnection, project_id: int, episode_id: str
) -> tuple[int, bytes] | None:
    """Return the revision and content hash of an episode, or None; lock it until the transaction ends.

    The lock is on its id and not on its row: a correction replaces the row, and whoever waited for the old row
    would find it gone.
    """
    await connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (project_id, episode_id))
    cursor = await connection.execute(
        "SELECT revision, content_hash FROM episodes WHERE project_id = %s AND id = %s",
        (project_id, episode_id),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    revision, content_hash = row
    return revision, bytes(content_hash)


async def end_revision(
    connection: AsyncConnection,
    project_id: int,
    episode_id: str,
    revision: int,
    *,
    ended_by: str,
    actor: str,
) -> None:
    """Move the standing row to the revisions, and leave the work that takes it out of the numbers."""
    key = (project_id, episode_id)
    await connection.execute(_MOVE, (ended_by, actor, *key))
    await connection.execute("DELETE FROM episodes WHERE project_id = %s AND id = %s", key)
    await forget_repeat(connection, project_id, episode_id)
    await leave_work(connection, project_id, episode_id, revision, -1)
    await connection.execute(
        "INSERT INTO audit_entries (project_id, actor, action, subject, details) VALUES (%s, %s, %s, %s, %s)",
        (project_id, actor, f"episode.{ended_by}", f"episode/{episode_id}", Jsonb({"revision": revision})),
    )


async def leave_work(
    connection: AsyncConnection, project_id: int, episode_id: str, revision: int, sign: int
) -> None:
    await connection.execute(
        "INSERT INTO work (project_id, kind, episode_ids, revision, sign) VALUES (%s, 'fold', %s, %s, %s)",
        (project_id, [episode_id], revision, sign),
    )
