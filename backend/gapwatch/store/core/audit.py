"""The audit trail: who changed what, written in the transaction of the change."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert

from gapwatch.store.tables.access import AuditEntryTable


def audit(connection: Connection, project_id: int, actor: str, action: str, subject: str, **details: Any) -> None:
    connection.execute(
        insert(AuditEntryTable).values(
            project_id=project_id, actor=actor, action=action, subject=subject, details=details
        )
    )
