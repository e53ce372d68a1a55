"""Rows of what people were told of incidents, kind of reason by kind of reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from gapwatch.watching.notify_policy import Telling
from gapwatch.watching.reason_kinds import ReasonKind


def tellings(connection: Connection, project_id: int, deployment_id: int, incident_id: int) -> list[Telling]:
    """What people were told in an incident, and when they were last told of each kind and severity before it."""
    rows = connection.execute(
        text("""
        SELECT kind, severity, standing, at, over_at IS NOT NULL AS is_over, true AS is_of_this_incident
        FROM notified_reasons WHERE project_id = :p AND incident_id = :i
        UNION ALL
        SELECT kind, severity, severity, max(at), true, false
        FROM notified_reasons WHERE project_id = :p AND deployment_id = :d AND incident_id <> :i
        GROUP BY kind, severity
        """),
        {"p": project_id, "d": deployment_id, "i": incident_id},
    ).mappings()
    return [Telling(**row) for row in rows]


def add_tellings(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    incident_id: int,
    severities: Mapping[ReasonKind, str],
) -> int:
    """Write down that people are told of these kinds; what they knew of them before is over. Returns the number
    of the notification.
    """
    number = int(
        connection.execute(
            text("""
            SELECT coalesce(max(number), 0) + 1 FROM notified_reasons WHERE project_id = :p AND incident_id = :i
            """),
            {"p": project_id, "i": incident_id},
        ).scalar_one()
    )
    for kind, severity in severities.items():
        values = {"p": project_id, "d": deployment_id, "i": incident_id, "kind": kind, "severity": severity}
        set_over(connection, project_id, incident_id, kind)
        connection.execute(
            text("""
            INSERT INTO notified_reasons (project_id, incident_id, deployment_id, number, kind, severity, standing)
            VALUES (:p, :i, :d, :number, :kind, :severity, :severity)
            """),
            {**values, "number": number},
        )
    return number


def cover(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    incident_id: int,
    severities: Mapping[ReasonKind, str],
    at: datetime,
) -> None:
    """Count kinds as told since a time, where people do not know of them: one line tells of a whole import.

    It is in the past, so that it holds back nothing of today.
    """
    for kind, severity in severities.items():
        connection.execute(
            text("""
            INSERT INTO notified_reasons
                (project_id, incident_id, deployment_id, number, kind, severity, standing, at)
            SELECT :p, :i, :d, 0, :kind, :severity, :severity, :at
            WHERE NOT EXISTS (SELECT 1 FROM notified_reasons
                              WHERE project_id = :p AND incident_id = :i AND kind = :kind AND over_at IS NULL)
            """),
            {
                "p": project_id,
                "i": incident_id,
                "d": deployment_id,
                "kind": kind,
                "severity": severity,
                "at": at,
            },
        )


def forget(connection: Connection, project_id: int, incident_ids: list[int]) -> None:
    """Forget what counted as told of incidents of history, before they are written anew."""
    connection.execute(
        text("DELETE FROM notified_reasons WHERE project_id = :p AND incident_id = ANY(:ids)"),
        {"p": project_id, "ids": incident_ids},
    )


def set_over(connection: Connection, project_id: int, incident_id: int, kind: ReasonKind) -> None:
    connection.execute(
        text("""
        UPDATE notified_reasons SET over_at = now()
        WHERE project_id = :p AND incident_id = :i AND kind = :kind AND over_at IS NULL
        """),
        {"p": project_id, "i": incident_id, "kind": kind},
    )


def set_standing(
    connection: Connection, project_id: int, incident_id: int, kind: ReasonKind, severity: str
) -> None:
    connection.execute(
        text("""
        UPDATE notified_reasons SET standing = :severity
        WHERE project_id = :p AND incident_id = :i AND kind = :kind AND over_at IS NULL
        """),
        {"p": project_id, "i": incident_id, "kind": kind, "severity": severity},
    )


@dataclass(frozen=True)
class OverReason:
    """When a kind of reason that a notification told of was over."""

    number: int
    kind: str
    over_at: datetime


def over_reasons(connection: Connection, project_id: int, incident_id: int) -> list[OverReason]:
    rows = connection.execute(
        text("""
        SELECT number, kind, over_at FROM notified_reasons
        WHERE project_id = :p AND incident_id = :i AND over_at IS NOT NULL
        """),
        {"p": project_id, "i": incident_id},
    ).mappings()
    return [OverReason(**row) for row in rows]
