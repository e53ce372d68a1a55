"""What is known of a simulator's parameters: declared ranges, identified values, and what episodes measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, text

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.core.event_scope import concerns
from gapwatch.store.read.selection import CellFilter, Scope, Window, time_clauses

MOST_IDENTIFICATIONS = 200
# Of each side, the newest: what the parameter is now.
MOST_MEASURED = 2000


@dataclass(frozen=True)
class IdentifiedValues:
    """A dated identification: values by parameter, each with its interval if it has one, and whose they are."""

    id: int
    at: datetime
    title: str
    site: str | None
    robots: tuple[str, ...]
    values: Mapping[str, Mapping[str, Any]]


class MeasuredSeries(NamedTuple):
    """What the newest episodes of one robot at one site measured of a signal or condition, newest first."""

    side: Literal["sim", "real"]
    kind: Literal["signal", "condition"]
    name: str
    robot: str | None
    site: str | None
    values: Sequence[float]
    newest_at: datetime


@dataclass(frozen=True)
class RangesRead:
    """`parameters` as declared for the simulator of the baseline; identifications newest first."""

    parameters: tuple[Mapping[str, Any], ...] = ()
    declared_at: datetime | None = None
    identified: tuple[IdentifiedValues, ...] = ()
    measured: tuple[MeasuredSeries, ...] = ()


NO_RANGES = RangesRead()


def read_declared(
    connection: Connection,
    project_id: int,
    deployment: tuple[int, str],
    simulator: tuple[str, str] | None,
) -> RangesRead:
    """The ranges of a simulator, and every identification that concerns a deployment (its number and slug)."""
    row = connection.execute(
        text(f"""
        SELECT (SELECT jsonb_build_array(r.parameters, r.updated_at) FROM simulator_ranges r
                WHERE r.project_id = :p AND r.simulator = :simulator AND r.version = :version) AS declared,
               (SELECT jsonb_agg(jsonb_build_array(e.id, e.at, e.title, e.details)) FROM
                   (SELECT id, at, title, details FROM events e WHERE project_id = :p
                      AND at BETWEEN '2000-01-01' AND now() + interval '1 day'
                      AND jsonb_typeof(e.details -> 'values') = 'object'
                      AND {concerns(":d", ":slug")} ORDER BY at DESC, id DESC LIMIT {MOST_IDENTIFICATIONS}) e
               ) AS identified
        """),  # noqa: S608 - constants of ours
        {
            "p": project_id,
            "d": deployment[0],
            "slug": deployment[1],
            "simulator": None if simulator is None else simulator[0],
            "version": None if simulator is None else simulator[1],
        },
    ).one()
    parameters, declared_at = row.declared or ([], None)
    return RangesRead(
        tuple(parameters),
        None if declared_at is None else datetime.fromisoformat(declared_at),
        tuple(_identified(*one) for one in row.identified or ()),
    )


def measured_series(
    connection: Connection,
    project_id: int,
    sides: Sequence[tuple[Scope, Window, CellFilter]],
    names: Sequence[tuple[str, str]],
    most: int = MOST_MEASURED,
) -> list[MeasuredSeries]:
    """Values of signals and conditions, (kind, name), of the newest episodes of each side, by robot and site."""
    if not sides or not names:
        return []
    parts: list[str] = []
    parameters: dict[str, Any] = {}
    for number, (scope, window, wanted) in enumerate(sides):
        in_time, times = time_clauses(window)
        in_cells, cells = wanted.clauses()
        own = {**scope.parameters(), **times, **cells}
        clauses = scope.clauses("e") + in_time + in_cells
        for name in own:
            clauses = clauses.replace(f"%({name})s", f"%({name}_{number})s")
        parameters |= {f"{name}_{number}": value for name, value in own.items()}
        parts.append(
            f"(SELECT '{scope.domain}' AS side, e.* FROM episodes e WHERE e.project_id = %(p)s AND {clauses}"  # noqa: S608
            f" AND (e.signals IS NOT NULL OR e.numbers IS NOT NULL) ORDER BY e.started_at DESC LIMIT {most})"
        )
    statement = f"""
        SELECT x.side, x.kind, x.name, r.name AS robot, s.name AS site, x.values, x.newest_at FROM (
            SELECT e.side, w.kind, w.name, e.robot_id, e.site_id, max(e.started_at) AS newest_at,
                   array_agg(v.value ORDER BY e.started_at DESC) AS values
            FROM ({" UNION ALL ".join(parts)}) e
            CROSS JOIN unnest(%(kinds)s::text[], %(names)s::text[]) AS w (kind, name)
            LEFT JOIN name_sets n ON n.project_id = %(p)s
                 AND n.id = CASE w.kind WHEN 'signal' THEN e.signal_names_id ELSE e.number_names_id END
            CROSS JOIN LATERAL (SELECT (CASE w.kind WHEN 'signal' THEN e.signals ELSE e.numbers END)
                                       [array_position(n.names, w.name)] AS value) v
            WHERE v.value IS NOT NULL
            GROUP BY 1, 2, 3, 4, 5) x
        LEFT JOIN robots r ON r.project_id = %(p)s AND r.id = x.robot_id
        LEFT JOIN sites s ON s.project_id = %(p)s AND s.id = x.site_id
        ORDER BY 1, 2, 3, 5, 4
    """  # noqa: S608 - constants and clauses of ours
    parameters |= {"p": project_id, "kinds": [kind for kind, _ in names], "names": [name for _, name in names]}
    with named_cursor(connection, MeasuredSeries) as cursor:
        return cursor.execute(statement, parameters).fetchall()


def _identified(number: int, at: str, title: str, details: Mapping[str, Any]) -> IdentifiedValues:
    """Of details that anybody may have written: what is a value is one."""
    robots, site = details.get("robots"), details.get("site")
    values = {
        name: value
        for name, value in details["values"].items()
        if isinstance(value, dict) and isinstance(value.get("value"), int | float)
    }
    return IdentifiedValues(
        number,
        datetime.fromisoformat(at),
        title,
        site if isinstance(site, str) else None,
        tuple(name for name in robots if isinstance(name, str)) if isinstance(robots, list) else (),
        values,
    )
