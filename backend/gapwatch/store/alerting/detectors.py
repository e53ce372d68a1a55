"""Rows of detectors, state and parameters as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Connection, text

from gapwatch.watching.detector_run import StoredDetector


def load(connection: Connection, project_id: int, deployment_id: int) -> dict[tuple[str, str], StoredDetector]:
    rows = connection.execute(
        text("""
        SELECT rule, series, params, state, restart FROM detectors WHERE project_id = :p AND deployment_id = :d
        """),
        {"p": project_id, "d": deployment_id},
    )
    return {(row.rule, row.series): StoredDetector(row.params, row.state, row.restart) for row in rows}


def save(
    connection: Connection, project_id: int, deployment_id: int, states: Mapping[tuple[str, str], StoredDetector]
) -> None:
    if not states:
        return
    connection.execute(
        text("""
        INSERT INTO detectors (project_id, deployment_id, rule, series, params, state)
        VALUES (:p, :d, :rule, :series, CAST(:params AS jsonb), CAST(:state AS jsonb))
        ON CONFLICT (project_id, deployment_id, rule, series) DO UPDATE
        SET params = excluded.params, state = excluded.state, restart = false, updated_at = now()
        """),
        [
            {
                "p": project_id,
                "d": deployment_id,
                "rule": rule,
                "series": series,
                "params": json.dumps(stored.params),
                "state": json.dumps(stored.state),
            }
            for (rule, series), stored in sorted(states.items())
        ],
    )


def restart(connection: Connection, project_id: int, deployment_id: int, rule: str, series: str) -> None:
    """Mark a detector to start over, because a person resolved its alert."""
    connection.execute(
        text("""
        UPDATE detectors SET restart = true
        WHERE project_id = :p AND deployment_id = :d AND rule = :rule AND series = :series
        """),
        {"p": project_id, "d": deployment_id, "rule": rule, "series": series},
    )


def drop(connection: Connection, project_id: int, rule: str) -> None:
    """Delete the detectors of a rule."""
    connection.execute(
        text("DELETE FROM detectors WHERE project_id = :p AND rule = :rule"), {"p": project_id, "rule": rule}
    )
