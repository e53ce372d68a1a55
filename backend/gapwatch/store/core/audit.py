"""The audit trail: who changed what, written in the transaction of the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, text

from gapwatch.store.tables.access import AuditEntryTable


def audit(connection: Connection, project_id: int, actor: str, action: str, subject: str, **details: Any) -> None:
    connection.execute(
        insert(AuditEntryTable).values(
            project_id=project_id, actor=actor, action=action, subject=subject, details=details
        )
    )


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is different, from and to. Nothing secret may be in either."""
    return {
        name: {"from": before.get(name), "to": after.get(name)}
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }


@dataclass(frozen=True)
class AuditFilter:
    """Which entries are asked for; a word stands for all that contain it, an action also for those it begins."""

    actor: str = ""
    action: str = ""
    subject: str = ""


@dataclass(frozen=True)
class AuditEntry:
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    details: dict[str, Any]


def audit_page(
    connection: Connection, project_id: int, wanted: AuditFilter, before_id: int | None, limit: int
) -> list[AuditEntry]:
    """The newest entries that fit, newest first."""
    table = AuditEntryTable
    statement = (
        select(table.id, table.at, table.actor, table.action, table.subject, table.details)
        .where(table.project_id == project_id)
        .order_by(table.id.desc())
        .limit(limit)
    )
    if wanted.actor:
        statement = statement.where(table.actor.icontains(wanted.actor, autoescape=True))
    if wanted.action:
        statement = statement.where(table.action.startswith(wanted.action, autoescape=True))
    if wanted.subject:
        statement = statement.where(table.subject.icontains(wanted.subject, autoescape=True))
    if before_id is not None:
        statement = statement.where(table.id < before_id)
    return [AuditEntry(*row) for row in connection.execute(statement)]


def audit_actions(connection: Connection, project_id: int) -> list[str]:
    """What was ever done in a project, by name."""
    rows = connection.execute(
        text("SELECT DISTINCT action FROM audit_entries WHERE project_id = :p ORDER BY 1 LIMIT 200"),
        {"p": project_id},
    )
    return [row.action for row in rows]
