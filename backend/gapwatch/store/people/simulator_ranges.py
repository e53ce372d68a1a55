"""SQL of randomisation ranges: as they were declared for a simulator, and what was identified since."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.core.audit import audit


@dataclass(frozen=True)
class DeclaredRanges:
    """What a training run randomised, for a version of a simulator."""

    simulator: str
    version: str
    parameters: list[dict[str, Any]]
    updated_at: datetime
    updated_by: str


def put_ranges(
    connection: Connection,
    project_id: int,
    simulator: str,
    version: str,
    parameters: Sequence[dict[str, Any]],
    actor: str,
) -> DeclaredRanges:
    """Store them in place of those that were there."""
    row = connection.execute(
        text("""
        INSERT INTO simulator_ranges (project_id, simulator, version, parameters, updated_by)
        VALUES (:p, :simulator, :version, CAST(:parameters AS jsonb), :actor)
        ON CONFLICT (project_id, simulator, version) DO UPDATE
        SET parameters = excluded.parameters, updated_at = now(), updated_by = excluded.updated_by
        RETURNING simulator, version, parameters, updated_at, updated_by
        """),
        {
            "p": project_id,
            "simulator": simulator,
            "version": version,
            "parameters": json.dumps(list(parameters)),
            "actor": actor,
        },
    ).one()
    subject = f"simulator/{simulator}@{version}"
    audit(connection, project_id, actor, "ranges.put", subject, parameters=len(parameters))
    return DeclaredRanges(*row)


def find_ranges(connection: Connection, project_id: int, simulator: str, version: str) -> DeclaredRanges | None:
    row = connection.execute(
        text("""
        SELECT simulator, version, parameters, updated_at, updated_by FROM simulator_ranges
        WHERE project_id = :p AND simulator = :simulator AND version = :version
        """),
        {"p": project_id, "simulator": simulator, "version": version},
    ).first()
    return None if row is None else DeclaredRanges(*row)
