"""Deployments of a batch are described by one statement: the newest episode says what each is doing now."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
from sqlalchemy import text

from gapwatch.store.write.registry import Description, describe_deployments

NOW = datetime(2026, 11, 2, 9, 14, tzinfo=UTC)


def describe(database, newest):
    async def run():
        async with await psycopg.AsyncConnection.connect(database.url) as connection:
            return await describe_deployments(connection, 1, newest)

    return asyncio.run(run())


def test_new_newer_and_older_descriptions_come_in_one_batch(database):
    with database.transaction() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('p', 'p')"))
        connection.execute(
            text("INSERT INTO policies (project_id, name, version) VALUES (1, 'a', '1'), (1, 'a', '2')")
        )
        connection.execute(text("INSERT INTO tasks (project_id, name) VALUES (1, 't')"))
        connection.execute(text("INSERT INTO sites (project_id, name) VALUES (1, 's')"))
    first = describe(database, {name: (NOW, Description(1, 1, 1, "full")) for name in ("b", "a")})
    assert {name: known.id for name, known in first.items()} == {"a": 1, "b": 2}
    newer, older = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
    then = describe(
        database,
        {
            "a": (older, Description(2, 1, None, None)),
            "b": (newer, Description(2, 1, None, None)),
            "c": (NOW, Description(2, 1, None, None)),
        },
    )
    assert (then["a"].id, then["a"].described_at, then["a"].description) == (1, NOW, Description(1, 1, 1, "full"))
    assert (then["b"].id, then["b"].described_at, then["b"].description.policy_id) == (2, newer, 2)
    with database.transaction() as connection:
        rows = connection.execute(text("SELECT slug, policy_id, site_id, stage FROM deployments ORDER BY 1")).all()
    assert [tuple(row) for row in rows] == [("a", 1, 1, "full"), ("b", 2, 1, "full"), ("c", 2, None, None)]
