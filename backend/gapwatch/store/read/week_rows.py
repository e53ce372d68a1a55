"""Rows of the week: outcomes by deployment, robot and day of two weeks, and the incidents of the last one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.store.core.driver import named_cursor


class WeekPlace(NamedTuple):
    """Real outcomes of one robot on one day."""

    deployment: str
    robot_id: int
    day: datetime
    successes: int
    failures: int


def week_places(connection: Connection, project_id: int, since: datetime, until: datetime) -> list[WeekPlace]:
    statement = """
        SELECT d.slug AS deployment, r.robot_id, r.bucket_at AS day, sum(r.successes)::bigint AS successes,
               sum(r.failures)::bigint AS failures
        FROM deployments d JOIN rollup_places r ON r.project_id = d.project_id AND r.domain = 'real'
             AND r.source_id = d.id
        WHERE d.project_id = %(p)s AND r.bucket_at >= %(since)s AND r.bucket_at < %(until)s
        GROUP BY 1, 2, 3 HAVING sum(r.successes + r.failures) > 0 ORDER BY 1, 3, 2
    """
    with named_cursor(connection, WeekPlace) as cursor:
        return cursor.execute(sql.SQL(statement), {"p": project_id, "since": since, "until": until}).fetchall()


@dataclass(frozen=True)
class WeekIncident:
    id: int
    deployment: str
    state: str
    severity: str
    owner: str | None
    opened_at: datetime
    resolved_at: datetime | None


def week_incidents(connection: Connection, project_id: int, since: datetime) -> list[WeekIncident]:
    """Those that are open, and those that were opened or closed since; the newest first."""
    rows = connection.execute(
        text("""
        SELECT i.id, d.slug AS deployment, i.state, i.severity, i.owner, i.opened_at, i.resolved_at
        FROM incidents i JOIN deployments d ON d.project_id = i.project_id AND d.id = i.deployment_id
        WHERE i.project_id = :p AND (i.state <> 'resolved' OR i.opened_at >= :since OR i.resolved_at >= :since)
        ORDER BY i.opened_at DESC, i.id DESC LIMIT 500
        """),
        {"p": project_id, "since": since},
    ).all()
    return [WeekIncident(*row) for row in rows]
