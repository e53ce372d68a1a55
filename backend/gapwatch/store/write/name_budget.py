"""How many new names a key may bring in a day: robots, deployments, signals, sets of conditions …

Every name is a row that pages list and folds read. A sender that makes up names by the thousand is stopped at its
budget; what it sends under known names is stored as before. The count is kept in Postgres, so that it holds for
all web processes together.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from sqlalchemy import Connection, text

from gapwatch.store.write.registry import DeploymentKey, Entry, Table

# Conditions are stored as sets of levels: few levels make many sets.
SETS_A_NAME = 10
DEPLOYMENT = "deployment"
CONDITIONS = "conditions"
_FIELDS: dict[Table, str] = {
    "condition_sets": CONDITIONS,
    "contracts": "contract",
    "policies": "policy",
    "robots": "robot",
    "simulators": "simulator",
    "sites": "site",
    "tasks": "task",
}
_NAME_SETS = {"condition": CONDITIONS, "signal": "signals", "metric": "metrics"}


class BudgetKey(NamedTuple):
    """Whose budget a new name is taken from: which key's, for which field of the record."""

    project_id: int
    key_id: int
    field: str


class SpentBudget(NamedTuple):
    """A budget that was not enough."""

    day: date
    key: str
    field: str
    names: int
    refused: int


def field_of(entry: Entry) -> str:
    """The field of the record that a name stands in."""
    _, table, key = entry
    return _NAME_SETS[key[0]] if table == "name_sets" else _FIELDS[table]


def most_names(field: str, a_day: int) -> int:
    return a_day * SETS_A_NAME if field == CONDITIONS else a_day


async def spend(connection: AsyncConnection, budget: BudgetKey, wanted: int, a_day: int) -> int:
    """Take so many names from today's budget; return how many it still had."""
    await connection.execute(
        "INSERT INTO new_names (project_id, key_id, day, field) VALUES (%s, %s, current_date, %s)"
        " ON CONFLICT DO NOTHING",
        budget,
    )
    cursor = await connection.execute(
        "SELECT names FROM new_names WHERE project_id = %s AND key_id = %s AND field = %s AND day = current_date"
        " FOR UPDATE",
        budget,
    )
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - inserted above
    granted: int = max(0, min(wanted, most_names(budget.field, a_day) - row[0]))
    await connection.execute(
        "UPDATE new_names SET names = names + %s, refused = refused + %s"
        " WHERE project_id = %s AND key_id = %s AND field = %s AND day = current_date",
        (granted, wanted - granted, *budget),
    )
    return granted


async def known_deployments(connection: AsyncConnection, keys: Iterable[DeploymentKey]) -> set[DeploymentKey]:
    pairs = sorted(keys)
    cursor = await connection.execute(
        "SELECT d.project_id, d.slug FROM deployments d"
        " JOIN unnest(%s::int[], %s::text[]) AS k (project_id, slug) USING (project_id, slug)",
        ([project_id for project_id, _ in pairs], [slug for _, slug in pairs]),
    )
    return {(project_id, slug) for project_id, slug in await cursor.fetchall()}


def spent_budgets(connection: Connection, project_id: int) -> list[SpentBudget]:
    """Budgets of the last days that were not enough, newest first."""
    rows: Any = connection.execute(
        text("""
        SELECT n.day, coalesce(k.prefix, '') AS key, n.field, n.names, n.refused FROM new_names n
        LEFT JOIN api_keys k ON k.project_id = n.project_id AND k.id = n.key_id
        WHERE n.project_id = :p AND n.refused > 0 ORDER BY n.day DESC, n.refused DESC LIMIT 20
        """),
        {"p": project_id},
    )
    return [SpentBudget(*row) for row in rows]


def forget_old_budgets(connection: Connection) -> None:
    connection.execute(text("DELETE FROM new_names WHERE day < current_date - 7"))
