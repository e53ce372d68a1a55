"""SQL of calendars: the hours in which a deployment's robots are expected to work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit
from gapwatch.watching.working_hours import WorkCalendar


@dataclass(frozen=True)
class StoredCalendar:
    calendar: WorkCalendar
    changed_by: str
    changed_at: datetime


def calendar_of(connection: Connection, project_id: int, deployment_id: int) -> WorkCalendar | None:
    """Return the calendar of a deployment; None if it has none and its hours have to be learned."""
    stored = stored_calendars(connection, project_id, deployment_id).get(deployment_id)
    return None if stored is None else stored.calendar


def calendars_of(connection: Connection, project_id: int) -> dict[int, WorkCalendar]:
    """Return the calendars of a project by deployment, for a round over all of its deployments."""
    return {number: stored.calendar for number, stored in stored_calendars(connection, project_id).items()}


def stored_calendars(
    connection: Connection, project_id: int, deployment_id: int | None = None
) -> dict[int, StoredCalendar]:
    """Return the calendars of a project by deployment, or that of one."""
    rows = connection.execute(
        text("""
        SELECT deployment_id, calendar, changed_by, changed_at FROM work_calendars
        WHERE project_id = :p AND (CAST(:d AS int) IS NULL OR deployment_id = :d)
        """),
        {"p": project_id, "d": deployment_id},
    )
    found = {}
    for row in rows:
        calendar = _read(row.calendar)
        if calendar is not None:
            found[row.deployment_id] = StoredCalendar(calendar, row.changed_by, row.changed_at)
    return found


def put_calendar(
    connection: Connection, project_id: int, deployment_id: int, calendar: WorkCalendar, actor: str
) -> None:
    connection.execute(
        text("""
        INSERT INTO work_calendars (project_id, deployment_id, calendar, changed_by)
        VALUES (:p, :d, CAST(:calendar AS jsonb), :actor)
        ON CONFLICT (project_id, deployment_id) DO UPDATE
        SET calendar = excluded.calendar, changed_by = excluded.changed_by, changed_at = now()
        """),
        {"p": project_id, "d": deployment_id, "calendar": calendar.model_dump_json(by_alias=True), "actor": actor},
    )
    audit(connection, project_id, actor, "calendar.put", f"deployment/{deployment_id}", zone=calendar.time_zone)


def delete_calendar(connection: Connection, project_id: int, deployment_id: int, actor: str) -> bool:
    """Delete the calendar of a deployment; return whether it had one."""
    done = connection.execute(
        text("DELETE FROM work_calendars WHERE project_id = :p AND deployment_id = :d"),
        {"p": project_id, "d": deployment_id},
    )
    if done.rowcount:
        audit(connection, project_id, actor, "calendar.delete", f"deployment/{deployment_id}")
    return bool(done.rowcount)


def _read(stored: Any) -> WorkCalendar | None:
    """A calendar that this machine cannot read, of a time zone it does not know say, counts as none."""
    try:
        return WorkCalendar.model_validate(stored)
    except ValidationError:
        return None
