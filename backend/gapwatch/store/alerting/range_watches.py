"""SQL of the watch over ranges: which deployments have something to be held against."""

from __future__ import annotations

from sqlalchemy import Connection, text

# A deployment that sent nothing and was identified by nobody for so long has nothing new.
LATELY = "30 days"
MOST_DEPLOYMENTS = 1000


def deployments_to_judge(connection: Connection) -> list[tuple[int, int]]:
    """Of projects with declared ranges: deployments that sent episodes lately, or that an event measured.

    Not while history is imported: what it opens comes first, and is told in one line.
    """
    rows = connection.execute(
        text(f"""
        SELECT d.project_id, d.id FROM deployments d
        WHERE d.project_id IN (SELECT DISTINCT project_id FROM simulator_ranges)
          AND NOT EXISTS (SELECT 1 FROM backfills b WHERE b.project_id = d.project_id AND b.closed_at IS NULL)
          AND (d.described_at > now() - interval '{LATELY}'
               OR EXISTS (SELECT 1 FROM events e WHERE e.project_id = d.project_id AND e.details ? 'values'
                          AND e.created_at > now() - interval '{LATELY}'))
        ORDER BY 1, 2 LIMIT {MOST_DEPLOYMENTS}
        """)  # noqa: S608 - constants of ours
    )
    return [(row.project_id, row.id) for row in rows]
