"""Numbers for names: policies, tasks, robots, sets of conditions … registered on first sight.

Names are registered in the transaction that stores the episodes. A process remembers what is committed, so in the
steady state it asks the database for nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from cachetools import LRUCache
from psycopg import AsyncConnection, sql

# A key holds what makes an entry unique. Sets of conditions, sets of names and contracts are known by their hash.
Key: TypeAlias = tuple[Any, ...]
References: TypeAlias = tuple[Key | None, ...]
Numbers: TypeAlias = tuple[int | None, ...]
Table: TypeAlias = Literal[
    "policies", "simulators", "tasks", "robots", "sites", "condition_sets", "name_sets", "contracts"
]

# Unique columns first, then the others. The order of this table is the order of registration, the same in
# every transaction, so that two of them never wait for each other in a circle.
COLUMNS: dict[Table, tuple[tuple[str, str], ...]] = {
    "condition_sets": (("content_hash", "bytea"), ("levels", "jsonb")),
    "contracts": (("content_hash", "bytea"), ("body", "jsonb")),
    "name_sets": (("content_hash", "bytea"), ("kind", "text"), ("names", "text[]")),
    "policies": (("name", "text"), ("version", "text")),
    "robots": (("name", "text"),),
    "simulators": (("name", "text"), ("version", "text")),
    "sites": (("name", "text"),),
    "tasks": (("name", "text"),),
}
TABLES = tuple(COLUMNS)
UNIQUE: dict[Table, int] = {table: 2 if columns[-1][0] == "version" else 1 for table, columns in COLUMNS.items()}
# A process remembers so many of each, and no entry with more letters than this: memory stays bounded whatever
# is sent. What is not remembered is looked up again.
MOST_REMEMBERED = 20_000
LONGEST_REMEMBERED = 4000

_encode_json = msgspec.json.Encoder(order="deterministic").encode

Entry: TypeAlias = tuple[int, Table, Key]
# Project and name of a deployment.
DeploymentKey: TypeAlias = tuple[int, str]


class Description(NamedTuple):
    """What a deployment's newest episode says of it."""

    policy_id: int
    task_id: int
    site_id: int | None
    stage: str | None


@dataclass
class KnownDeployment:
    id: int
    description: Description
    described_at: datetime


@dataclass
class NewRegistrations:
    """What one transaction registered; to be remembered once it is committed."""

    ids: dict[Entry, int] = field(default_factory=dict)
    deployments: dict[DeploymentKey, KnownDeployment] = field(default_factory=dict)


class Registry:
    """What one process knows to be committed."""

    def __init__(self) -> None:
        self._ids: LRUCache[Entry, int] = LRUCache(MOST_REMEMBERED)
        # A dictionary: looked up for every episode, where an LRUCache would take 0.7 µs instead of 0.06.
        self._deployments: dict[DeploymentKey, KnownDeployment] = {}
        self.find = self._ids.get
        self.find_deployment = self._deployments.get

    def remember(self, registrations: NewRegistrations) -> None:
        if len(self._deployments) > MOST_REMEMBERED:
            self._deployments.clear()
        self._deployments.update(registrations.deployments)
        for entry, number in registrations.ids.items():
            if count_letters(entry[2]) <= LONGEST_REMEMBERED:
                self._ids[entry] = number


def count_letters(value: Any) -> int:
    """Return how much text a key holds."""
    if isinstance(value, tuple):
        return sum(map(count_letters, value))
    return len(value) if isinstance(value, str | bytes) else 0


def registry_row(table: Table, key: Key) -> tuple[Any, ...]:
    """Return the database row of a key: names as they are, sets and contracts with their hash."""
    if table == "condition_sets":
        body = _encode_json(dict(key))
        return _digest(body), body.decode()
    if table == "name_sets":
        kind, *names = key
        return _digest(_encode_json(list(key))), kind, names
    if table == "contracts":
        return _digest(key[0]), key[0].decode()
    return key


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


async def find_registered(
    connection: AsyncConnection, project_id: int, table: Table, entries: Iterable[Key]
) -> dict[Key, int]:
    """Return the numbers of those that are registered. `entries` are the unique parts."""
    unique = COLUMNS[table][: UNIQUE[table]]
    arrays = [list(column) for column in zip(*sorted(entries), strict=True)]
    unique_names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in unique)
    casts = sql.SQL(", ").join(sql.SQL(f"%s::{kind}[]") for _, kind in unique)
    cursor = await connection.execute(
        sql.SQL("SELECT id, {} FROM {} WHERE project_id = %s AND ({}) IN (SELECT * FROM unnest({}))").format(
            unique_names, sql.Identifier(table), unique_names, casts
        ),
        (project_id, *arrays),
    )
    return {tuple(key): number for number, *key in await cursor.fetchall()}


async def register(
    connection: AsyncConnection, project_id: int, table: Table, entries: dict[Key, tuple[Any, ...]]
) -> dict[Key, int]:
    """Return the numbers of entries; insert those that are absent. `entries` maps the unique part to the row."""
    columns = COLUMNS[table]
    rows = [entries[key] for key in sorted(entries)]
    names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
    if columns[-1][1] == "text[]":
        # unnest() would flatten an array of arrays; these few rows are inserted one by one.
        insert = sql.SQL("INSERT INTO {} (project_id, {}) VALUES ({}) ON CONFLICT DO NOTHING").format(
            sql.Identifier(table), names, sql.SQL(", ").join([sql.Placeholder()] * (len(columns) + 1))
        )
        for row in rows:
            await connection.execute(insert, (project_id, *row))
    else:
        casts = sql.SQL(", ").join(sql.SQL(f"%s::{kind}[]") for _, kind in columns)
        await connection.execute(
            sql.SQL("INSERT INTO {} (project_id, {}) SELECT %s, * FROM unnest({}) ON CONFLICT DO NOTHING").format(
                sql.Identifier(table), names, casts
            ),
            (project_id, *[list(column) for column in zip(*rows, strict=True)]),
        )
    return await find_registered(connection, project_id, table, entries)


async def describe_deployments(
    connection: AsyncConnection, project_id: int, newest: dict[str, tuple[datetime, Description]]
) -> dict[str, KnownDeployment]:
    """Register deployments. The newest episode describes what each is doing now."""
    slugs = sorted(newest)
    rows = [(slug, *newest[slug][1], newest[slug][0]) for slug in slugs]
    # One statement for all: a batch of a thousand new ones would be a thousand round trips.
    cursor = await connection.execute(
        """
        INSERT INTO deployments AS d
            (project_id, slug, policy_id, task_id, site_id, stage, described_at)
        SELECT %s, * FROM unnest(%s::text[], %s::int[], %s::int[], %s::int[], %s::text[], %s::timestamptz[])
        ON CONFLICT (project_id, slug) DO UPDATE SET
            policy_id = excluded.policy_id, task_id = excluded.task_id,
            site_id = coalesce(excluded.site_id, d.site_id),
            stage = coalesce(excluded.stage, d.stage), described_at = excluded.described_at
            WHERE d.described_at < excluded.described_at AND NOT EXISTS (
                SELECT FROM episodes e WHERE e.project_id = d.project_id AND e.deployment_id = d.id
                AND e.started_at > excluded.described_at)
        RETURNING slug, id
        """,
        (project_id, *[list(column) for column in zip(*rows, strict=True)]),
    )
    known = {
        slug: KnownDeployment(number, newest[slug][1], newest[slug][0]) for slug, number in await cursor.fetchall()
    }
    older = [slug for slug in slugs if slug not in known]
    if older:  # older episodes: the stored descriptions are newer; remember those
        cursor = await connection.execute(
            """
            SELECT slug, id, described_at, policy_id, task_id, site_id, stage
            FROM deployments WHERE project_id = %s AND slug = ANY(%s)
            """,
            (project_id, older),
        )
        for slug, number, at, *description in await cursor.fetchall():
            known[slug] = KnownDeployment(number, Description(*description), at)
    return known
