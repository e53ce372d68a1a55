"""Successes and failures of each robot and site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.read.selection import Selection, time_clauses, whole_days
from gapwatch.store.read.window_edges import WindowEdges, numbered


class PlaceCount(NamedTuple):
    """Of a robot at a site, each by its number or its name; None where an episode names none."""

    robot: int | str | None
    site: int | str | None
    successes: int
    failures: int


class _PlaceRow(NamedTuple):
    side: int
    robot_id: int
    site_id: int
    successes: int
    failures: int


_PLACES = """
    (SELECT {side} AS side, robot_id, site_id, sum(successes)::bigint AS successes,
            sum(failures)::bigint AS failures
     FROM rollup_places WHERE project_id = %(project_id)s AND {clauses} GROUP BY 2, 3)
"""


def each_place_counts(
    connection: Connection, project_id: int, selections: Sequence[Selection], edges: WindowEdges | None = None
) -> list[list[PlaceCount]]:
    """Read several selections of real episodes in one query."""
    edges = edges or WindowEdges(connection, project_id)
    statements: list[str] = []
    parameters: dict[str, Any] = {"project_id": project_id}
    for side, (scope, window) in enumerate(selections):
        days = whole_days(window)
        if days is None:
            continue
        times, own = time_clauses(days, "bucket_at")
        statements.append(_PLACES.format(side=side, clauses=numbered(scope.clauses() + times, str(side))))
        parameters |= {f"{name}_{side}": value for name, value in (scope.parameters() | own).items()}
    sums: list[dict[tuple[int, int], list[int]]] = [{} for _ in selections]
    if statements:
        with named_cursor(connection, _PlaceRow) as cursor:
            for row in cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall():
                sums[row.side][row.robot_id, row.site_id] = [row.successes, row.failures]
    for of_side, at_edges in zip(sums, edges.counted(selections), strict=True):
        for (_, _, cell), counts in at_edges.cells.items():
            total = of_side.setdefault((cell.robot_id or 0, cell.site_id or 0), [0, 0])
            total[0] += counts[0]
            total[1] += counts[1]
    return [
        [
            PlaceCount(robot_id or None, site_id or None, successes, failures)
            for (robot_id, site_id), (successes, failures) in sorted(of_side.items())
            if successes + failures
        ]
        for of_side in sums
    ]
