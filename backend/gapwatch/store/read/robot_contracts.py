"""Which robot ran under which contract, from a bounded number of the newest episodes of a deployment."""

from __future__ import annotations

from typing import NamedTuple

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.read.selection import CellFilter, Scope, Window, time_clauses

MOST_READ = 5_000


class RobotContract(NamedTuple):
    """Episodes of one robot under one contract; 0 stands for those that sent none."""

    robot: str | None
    contract_id: int
    episodes: int


def robot_contracts(
    connection: Connection, project_id: int, scope: Scope, window: Window, wanted: CellFilter
) -> list[RobotContract]:
    """Those of the newest episodes of the side that match the filter."""
    matching, parameters = wanted.clauses()
    times, bounds = time_clauses(window)
    statement = f"""
        SELECT r.name AS robot, coalesce(e.contract_id, 0) AS contract_id, count(*) AS episodes
        FROM (SELECT e.* FROM episodes e WHERE e.project_id = %(project_id)s AND {scope.clauses("e")}{times}
              ORDER BY e.started_at DESC LIMIT {MOST_READ}) e
        LEFT JOIN robots r ON r.project_id = e.project_id AND r.id = e.robot_id
        WHERE true{matching} GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
    """  # noqa: S608 - names of ours
    parameters |= bounds | scope.parameters() | {"project_id": project_id}
    with named_cursor(connection, RobotContract) as cursor:
        return cursor.execute(sql.SQL(statement), parameters).fetchall()
