"""The audit trail: who changed what, written in the transaction of the change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert

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
