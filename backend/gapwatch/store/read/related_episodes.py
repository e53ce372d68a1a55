"""What stands around one episode: the other half of its pair, and who changed it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

MOST_PAIRED = 10


@dataclass(frozen=True)
class PairedEpisode:
    id: str
    domain: str
    outcome: str
    started_at: datetime


@dataclass(frozen=True)
class Change:
    at: datetime
    actor: str
    action: str
    details: dict[str, Any]


def paired_episodes(connection: Connection, project_id: int, record: dict[str, Any]) -> list[PairedEpisode]:
    """The episodes of the other domain that started from the same state, with the same policy and task."""
    if not record.get("pair"):
        return []
    rows = connection.execute(
        text("""
        SELECT e.id, CASE e.domain WHEN 'sim' THEN 'sim' ELSE 'real' END AS domain, e.outcome, e.started_at
        FROM episodes e
        JOIN policies p ON p.project_id = e.project_id AND p.id = e.policy_id
        JOIN tasks t ON t.project_id = e.project_id AND t.id = e.task_id
        WHERE e.project_id = :p AND e.pair = :pair AND (e.domain = 'sim') <> (:domain = 'sim')
          AND p.name = :policy AND p.version = :version AND t.name = :task
        ORDER BY e.started_at DESC LIMIT :most
        """),
        {
            "p": project_id,
            "pair": record["pair"],
            "domain": record["domain"],
            "policy": record["policy"]["name"],
            "version": record["policy"]["version"],
            "task": record["task"],
            "most": MOST_PAIRED,
        },
    )
    return [PairedEpisode(row.id, row.domain, row.outcome, row.started_at) for row in rows]


def changes_of(connection: Connection, project_id: int, episode_id: str) -> list[Change]:
    rows = connection.execute(
        text("""
        SELECT at, actor, action, details FROM audit_entries
        WHERE project_id = :p AND subject = :subject ORDER BY at DESC LIMIT 50
        """),
        {"p": project_id, "subject": f"episode/{episode_id}"},
    )
    return [Change(row.at, row.actor, row.action, row.details) for row in rows]
