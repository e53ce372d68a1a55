"""Proving the rollups: everything is computed again from the stored episodes and compared.

In one snapshot, so it may run beside a live service: stored numbers and due work must add up to the episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gapwatch.store.core.database import Connection, Database
from gapwatch.store.fold import (
    episode_rows,
    presents,
    stored_rollups,
    work,
)
from gapwatch.tally.sums import Sums
from gapwatch.tally.tiers import count_rows, value_rows
from gapwatch.tally.values import pack_values

MOST_EXAMPLES = 5


@dataclass(frozen=True)
class Verified:
    """What one project's comparison found. `examples` are (table, key, stored, computed)."""

    project: str
    episodes: int
    rows: int
    differences: int
    examples: list[tuple[str, Any, Any, Any]]


def verify_project(database: Database, project_id: int, slug: str) -> Verified:
    with database.snapshot() as connection:
        expected, episodes = _recomputed(connection, project_id)
        rows = count_rows(expected)
        computed: dict[str, Mapping[Any, Any]] = {
            f"rollup_{part.name}": getattr(rows, part.name) for part in fields(rows)
        }
        computed["rollup_values"] = {
            key: body
            for of_scope in value_rows(expected.values)
            for key, values in of_scope.items()
            if (body := pack_values(values)) is not None
        }
        compared = differences = 0
        examples: list[tuple[str, Any, Any, Any]] = []
        for table, wanted in computed.items():
            stored = stored_rollups.all_rows(connection, project_id, table)
            compared += len(stored)
            for key in stored.keys() | wanted.keys():
                if stored.get(key) != wanted.get(key):
                    differences += 1
                    if len(examples) < MOST_EXAMPLES:
                        examples.append((table, key, stored.get(key), wanted.get(key)))
        due = _deployments_due(connection, project_id)
        count, other = presents.differing_presents(connection, project_id, due)
        compared += count
        differences += len(other)
        examples += [("presents", *found) for found in other][: MOST_EXAMPLES - len(examples)]
    return Verified(slug, episodes, compared, differences, examples)


def _recomputed(connection: Connection, project_id: int) -> tuple[Sums, int]:
    """What the rollups must hold: every standing episode, less what is still due."""
    expected, episodes = Sums(), 0
    for rows in episode_rows.standing_rows(connection, project_id):
        episodes += len(rows)
        expected.add(episode_rows.episodes_in(connection, project_id, rows).sums())
    for claim in work.waiting(connection, project_id, "fold"):
        rows = episode_rows.claimed_rows(connection, project_id, [claim])
        expected.add(episode_rows.episodes_in(connection, project_id, rows).sums(), -1)
    return expected, episodes


def _deployments_due(connection: Connection, project_id: int) -> set[int]:
    claims = work.waiting(connection, project_id, "fold")
    rows = episode_rows.claimed_rows(connection, project_id, claims) if claims else []
    return {row.source_id for row in rows if row.domain != "sim"}
