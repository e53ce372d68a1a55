"""A person's category and note on an episode. The former version is kept, and the numbers follow.

The content hash stays that of the sender's record, so a late retry of it is a duplicate and no conflict.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit
from gapwatch.store.tables.episodes import EpisodeTable

_COLUMNS = ", ".join(column.name for column in EpisodeTable.__table__.columns)
_KEEP = text(f"""
INSERT INTO episode_revisions ({_COLUMNS}, ended_by, actor)
SELECT {_COLUMNS}, 'correction', :actor FROM episodes WHERE project_id = :p AND id = :id
""")  # noqa: S608 - made of our own column names
_LABEL = text("""
UPDATE episodes SET revision = revision + 1, failure_category = :category, failure_note = :note
WHERE project_id = :p AND id = :id
""")
_FOLLOW = text("""
INSERT INTO work (project_id, kind, episode_ids, revision, sign) VALUES
    (:p, 'fold', ARRAY[:id], :revision, -1), (:p, 'fold', ARRAY[:id], :revision + 1, 1)
""")


def label_episode(
    connection: Connection, project_id: int, episode_id: str, *, category: str | None, note: str | None, actor: str
) -> bool:
    """Return whether there is such an episode. Repeating what is stored changes nothing."""
    key = {"p": project_id, "id": episode_id}
    # The same lock as a correction by the sender takes.
    connection.execute(text("SELECT pg_advisory_xact_lock(:p, hashtext(:id))"), key)
    row = connection.execute(
        text("SELECT revision, failure_category, failure_note FROM episodes WHERE project_id = :p AND id = :id"),
        key,
    ).first()
    if row is None:
        return False
    if (row.failure_category, row.failure_note) == (category, note):
        return True
    connection.execute(_KEEP, key | {"actor": actor})
    connection.execute(_LABEL, key | {"category": category, "note": note})
    if row.failure_category != category:
        connection.execute(_FOLLOW, key | {"revision": row.revision})
    audit(
        connection,
        project_id,
        actor,
        "episode.labelled",
        f"episode/{episode_id}",
        revision=row.revision,
        category=category,
        was=row.failure_category,
    )
    return True
