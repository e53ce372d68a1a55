"""Storing episodes: one transaction from unknown names to the work row, committed before the answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

import psycopg
from psycopg import AsyncConnection, errors, sql
from psycopg.types.json import Jsonb
from psycopg_pool import PoolTimeout

from gapwatch.errors import DiskFull, ServiceUnavailable
from gapwatch.store import copy_format as pg
from gapwatch.store import corrections
from gapwatch.store.arrivals import (
    COLUMNS,
    REFERENCES,
    Arrival,
    description,
    pack_references,
    registry_row,
    with_revision,
)
from gapwatch.store.pool import Pool
from gapwatch.store.registry import (
    COLUMNS as REGISTRY_COLUMNS,
)
from gapwatch.store.registry import (
    UNIQUE,
    Description,
    Key,
    Learned,
    Numbers,
    Registry,
    Table,
    describe_deployments,
    register,
)

T = TypeVar("T")

Status = Literal["accepted", "duplicate", "conflict", "deleted"]

# Nothing was stored when one of these comes; the same transaction may simply run again. A unique violation
# means that another sender stored the id after we looked: the next look finds it.
RETRYABLE = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.LockNotAvailable,
)
MOST_TRIES = 6
ANSWER_WITHIN_S = 10.0

COPY = sql.SQL("COPY episodes ({}) FROM STDIN (FORMAT binary)").format(
    sql.SQL(", ").join(map(sql.Identifier, COLUMNS))
)
PROBE = """
SELECT id, content_hash, false FROM episodes WHERE project_id = %(p)s AND id = ANY(%(ids)s)
UNION ALL
SELECT id, content_hash, true FROM episode_revisions
WHERE project_id = %(p)s AND id = ANY(%(ids)s) AND ended_by = 'deletion'
"""


@dataclass(frozen=True)
class Rejection:
    """A refused record on its way into the quarantine."""

    project_id: int
    key_prefix: str
    code: str
    errors: list[Any]
    record: bytes


@dataclass(frozen=True)
class Change:
    """What became of a correction."""

    revision: int
    changed: bool


class Acceptor:
    """Stores arrivals; knows what this process has seen registered."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._registry = Registry()

    async def store(
        self,
        arrivals: Sequence[Arrival],
        rejections: Sequence[Rejection] = (),
        *,
        all_or_nothing: bool = False,
    ) -> list[Status]:
        """One durable transaction. Returns, in order, what became of each arrival.

        With `all_or_nothing` a conflict leaves everything unstored, whatever the other statuses say.
        """
        return await self._run(
            lambda connection: self._store_once(connection, arrivals, rejections, all_or_nothing)
        )

    async def replace(self, arrival: Arrival, actor: str) -> Change | None:
        """Correct a stored episode: a new revision, or no change when it says the same. None if absent."""
        return await self._run(lambda connection: self._replace_once(connection, arrival, actor))

    async def delete(self, project_id: int, episode_id: str, actor: str) -> bool:
        """Whether there was one. Its id stays taken for ever: a late retry must not bring it back."""

        async def delete_once(connection: AsyncConnection) -> bool:
            async with connection.transaction():
                standing = await corrections.standing_revision(connection, project_id, episode_id)
                if standing is None:
                    return False
                await corrections.end_revision(
                    connection, project_id, episode_id, standing[0], ended_by="deletion", actor=actor
                )
                return True

        return await self._run(delete_once)

    async def _run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """One transaction on a connection of the pool, again when another got in its way."""
        for attempt in range(1, MOST_TRIES + 1):
            try:
                # A frozen server answers neither a query nor its statement_timeout.
                async with asyncio.timeout(ANSWER_WITHIN_S), self._pool.connection() as connection:
                    return await work(connection)
            except RETRYABLE as error:
                if attempt == MOST_TRIES:
                    raise ServiceUnavailable("Many senders write the same rows; try again.") from error
                await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - jitter
            except errors.DiskFull as error:
                raise DiskFull from error
            except (
                psycopg.OperationalError,
                errors.IdleInTransactionSessionTimeout,
                errors.ReadOnlySqlTransaction,
                PoolTimeout,
                TimeoutError,
            ) as error:
                # A pooled connection may have died with the server and the next be alive: once more.
                if attempt == 1 and not isinstance(error, PoolTimeout | TimeoutError):
                    continue
                raise ServiceUnavailable("The database is not answering; try again shortly.") from error
        raise AssertionError("unreachable")

    async def _store_once(
        self,
        connection: AsyncConnection,
        arrivals: Sequence[Arrival],
        rejections: Sequence[Rejection],
        all_or_nothing: bool,
    ) -> list[Status]:
        statuses: list[Status] = ["accepted"] * len(arrivals)
        async with connection.transaction():
            fresh = await _probe(connection, arrivals, statuses)
            if all_or_nothing and ("conflict" in statuses or "deleted" in statuses):
                return statuses
            learned = Learned()
            if fresh:
                learned = await self._insert(connection, fresh)
                await _leave_work(connection, fresh)
            if rejections:
                await _quarantine(connection, rejections)
        self._registry.remember(learned)
        return statuses

    async def _replace_once(self, connection: AsyncConnection, arrival: Arrival, actor: str) -> Change | None:
        async with connection.transaction():
            standing = await corrections.standing_revision(connection, arrival.project_id, arrival.id)
            if standing is None:
                return None
            revision, stored_hash = standing
            if stored_hash == arrival.content_hash:
                return Change(revision, changed=False)
            await corrections.end_revision(
                connection, arrival.project_id, arrival.id, revision, ended_by="correction", actor=actor
            )
            learned = await self._insert(connection, [with_revision(arrival, revision + 1)])
            await corrections.leave_work(connection, arrival.project_id, arrival.id, revision + 1, 1)
        self._registry.remember(learned)
        return Change(revision + 1, changed=True)

    async def _insert(self, connection: AsyncConnection, arrivals: list[Arrival]) -> Learned:
        """Register what is new and COPY the episodes; returns what to remember once it is committed."""
        learned = Learned()
        known = [self._registry.numbers(arrival.project_id, arrival.references) for arrival in arrivals]
        unknown = [arrival for arrival, numbers in zip(arrivals, known, strict=True) if numbers is None]
        if unknown:
            await self._register(connection, unknown, learned)
        numbered = [
            (arrival, numbers or learned.numbers[arrival.project_id, arrival.references])
            for arrival, numbers in zip(arrivals, known, strict=True)
        ]
        await self._describe(connection, numbered, learned)
        rows = [pg.HEADER]
        for arrival, numbers in numbered:
            front = self._front(arrival, numbers, learned)
            rows += (front, arrival.common, arrival.values)
        rows.append(pg.TRAILER)
        async with connection.cursor().copy(COPY) as copy:
            await copy.write(b"".join(rows))
        return learned

    def _front(self, arrival: Arrival, numbers: Numbers, learned: Learned) -> bytes:
        deployment_id = None
        if arrival.deployment is not None:
            place = (arrival.project_id, arrival.deployment)
            deployment = learned.deployments.get(place) or self._registry.deployment(*place)
            assert deployment is not None  # noqa: S101 - described before
            deployment_id = deployment.id
        return pack_references(arrival.project_id, deployment_id, numbers)

    async def _register(self, connection: AsyncConnection, arrivals: list[Arrival], learned: Learned) -> None:
        """Numbers for every reference of these arrivals, made in one fixed order of tables."""
        wanted: dict[tuple[int, Table], set[Key]] = {}
        for arrival in arrivals:
            for (_, table), key in zip(REFERENCES, arrival.references, strict=True):
                if key is not None:
                    wanted.setdefault((arrival.project_id, table), set()).add(key)
        order = list(REGISTRY_COLUMNS)
        ids: dict[tuple[int, Table, Key], int] = {}
        for project_id, table in sorted(wanted, key=lambda pair: (pair[0], order.index(pair[1]))):
            rows = {key: registry_row(table, key) for key in wanted[project_id, table]}
            unique = UNIQUE[table]
            found = await register(connection, project_id, table, {row[:unique]: row for row in rows.values()})
            for key, row in rows.items():
                ids[project_id, table, key] = found[row[:unique]]
        for arrival in arrivals:
            learned.numbers[arrival.project_id, arrival.references] = tuple(
                None if key is None else ids[arrival.project_id, table, key]
                for (_, table), key in zip(REFERENCES, arrival.references, strict=True)
            )

    async def _describe(
        self, connection: AsyncConnection, numbered: list[tuple[Arrival, Numbers]], learned: Learned
    ) -> None:
        """Register deployments, and update one only when a newer episode says something else of it."""
        changed: dict[int, dict[str, tuple[datetime, Description]]] = {}
        for arrival, numbers in numbered:
            slug = arrival.deployment
            if slug is None:
                continue
            at = arrival.record.started_at
            known = self._registry.deployment(arrival.project_id, slug)
            if known is not None and at <= known.described_at:
                continue
            says = description(arrival, numbers)
            if known is not None and says == known.description:
                continue
            newest = changed.setdefault(arrival.project_id, {})
            if slug not in newest or at > newest[slug][0]:
                newest[slug] = (at, says)
        for project_id in sorted(changed):
            described = await describe_deployments(connection, project_id, changed[project_id])
            for slug, deployment in described.items():
                learned.deployments[project_id, slug] = deployment


async def _probe(
    connection: AsyncConnection, arrivals: Sequence[Arrival], statuses: list[Status]
) -> list[Arrival]:
    """Mark what is already stored or stands twice in this batch; return the rest in the order of its key."""
    places: dict[tuple[int, str], list[int]] = {}
    for index, arrival in enumerate(arrivals):
        places.setdefault((arrival.project_id, arrival.id), []).append(index)
    for project_id, ids in _by_project(places).items():
        cursor = await connection.execute(PROBE, {"p": project_id, "ids": ids}, prepare=True)
        for id_, stored_hash, deleted in await cursor.fetchall():
            for index in places.pop((project_id, id_)):
                same = bytes(stored_hash) == arrivals[index].content_hash
                statuses[index] = "deleted" if deleted else ("duplicate" if same else "conflict")
    for first, *repeats in places.values():
        for index in repeats:
            same = arrivals[first].content_hash == arrivals[index].content_hash
            statuses[index] = "duplicate" if same else "conflict"
    return [arrivals[places[place][0]] for place in sorted(places)]


def _by_project(places: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    ids: dict[int, list[str]] = {}
    for project_id, id_ in places:
        ids.setdefault(project_id, []).append(id_)
    return ids


async def _leave_work(connection: AsyncConnection, arrivals: list[Arrival]) -> None:
    for project_id, ids in _by_project((arrival.project_id, arrival.id) for arrival in arrivals).items():
        await connection.execute(
            "INSERT INTO work (project_id, kind, episode_ids) VALUES (%s, 'fold', %s)",
            (project_id, ids),
            prepare=True,
        )


async def _quarantine(connection: AsyncConnection, rejections: Sequence[Rejection]) -> None:
    async with connection.cursor() as cursor:
        await cursor.executemany(
            """
            INSERT INTO rejected_records (project_id, key_prefix, code, errors, record)
            VALUES (%s, %s, %s, %s, %s)
            """,
            [(r.project_id, r.key_prefix, r.code, Jsonb(r.errors), r.record) for r in rejections],
        )
