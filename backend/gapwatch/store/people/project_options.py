"""SQL of what a project decides for itself."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit


def set_option(connection: Connection, project_id: int, name: str, value: Any, actor: str) -> None:
    before = connection.execute(
        text("SELECT options -> :name FROM projects WHERE id = :p FOR UPDATE"), {"p": project_id, "name": name}
    ).scalar()
    connection.execute(
        text(
            "UPDATE projects SET options = jsonb_set(options, ARRAY[:name], CAST(:value AS jsonb)) WHERE id = :p"
        ),
        {"p": project_id, "name": name, "value": json.dumps(value, ensure_ascii=False)},
    )
    audit(connection, project_id, actor, f"{name}.changed", "project", **{"from": before, "to": value})
