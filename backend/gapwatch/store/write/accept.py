"""Storing episodes: one transaction from unknown names to the work row, committed before the answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.types.json import Jsonb
from psycopg_pool import PoolTimeout

from gapwatch.errors import DiskFull, ServiceUnavailable
from gapwatch.store.core import copy_exchange
from gapwatch.store.core.pool import Pool
from gapwatch.store.write import copy_format as pg
from gapwatch.store.write import corrections
from gapwatch.store.write.arrivals import (
    COLUMNS,
    ROW_START,
    Arrival,
    with_revision,
)
from gapwatch.store.write.places import (
    REFERENCES,
    Place,
    registry_row,
)
from gapwatch.store.write.registry import COLUMNS as REGISTRY_COLUMNS
from gapwatch.store.write.registry import (
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

_id = attrgetter("id")
_project = attrgetter("place.project_id")
COPY = f"COPY episodes ({', '.join(COLUMNS)}) FROM STDIN (FORMAT binary)"


LEAVE_WORK = "INSERT INTO work (project_id, kind, episode_ids) VALUES ({project_id:d}, 'fold', {ids})"


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
                    self._pool.distrust()
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
        # Outside of the transaction: what another sender stores after this look, the unique key refuses.
        statuses, fresh = await _probe(connection, arrivals)
        if all_or_nothing and ("conflict" in statuses or "deleted" in statuses):
            return statuses
        if fresh and not rejections and self._is_known(fresh):
            await _copy_known(connection, fresh)
        elif fresh or rejections:
            learned = Learned()
            async with connection.transaction():
                if fresh:
                    await self._insert(connection, fresh, learned)
                    await _leave_work(connection, fresh)
                if rejections:
                    await _quarantine(connection, rejections)
            self._registry.remember(learned)
        return statuses

    def _is_known(self, arrivals: list[Arrival]) -> bool:
        """Whether all that these refer to is registered, and no deployment is described anew."""
        find_deployment = self._registry.find_deployment
        for arrival in arrivals:
            place = arrival.place
            if place.front is None and not self._settle(place):
                return False
            if place.slug is not None:
                known = find_deployment(place.slug)
                if known is None:
                    return False
                if place.description is known.description or place.description == known.description:
                    continue
                if arrival.started_at > known.described_at:
                    return False
        return True

    def _settle(self, place: Place) -> bool:
        """A new place of known things needs nothing from the database."""
        numbers = self._numbers(place, Learned())
        deployment = place.slug and self._registry.find_deployment(place.slug)
        if numbers is None or (place.slug and not deployment):
            return False
        place.settle(numbers, deployment or None)
        return True

    def _numbers(self, place: Place, learned: Learned) -> Numbers | None:
        found = {entry[1:]: learned.ids.get(entry) or self._registry.find(entry) for entry in place.entries()}
        if None in found.values():
            return None
        return tuple(
            None if key is None else found[table, key]
            for (_, table), key in zip(REFERENCES, place.references, strict=True)
        )

    async def _replace_once(self, connection: AsyncConnection, arrival: Arrival, actor: str) -> Change | None:
        async with connection.transaction():
            project_id = arrival.place.project_id
            standing = await corrections.standing_revision(connection, project_id, arrival.id)
            if standing is None:
                return None
            revision, stored_hash = standing
            if stored_hash == arrival.content_hash:
                return Change(revision, changed=False)
            await corrections.end_revision(
                connection, project_id, arrival.id, revision, ended_by="correction", actor=actor
            )
            learned = Learned()
            await self._insert(connection, [with_revision(arrival, revision + 1)], learned)
            await corrections.leave_work(connection, project_id, arrival.id, revision + 1, 1)
        self._registry.remember(learned)
        return Change(revision + 1, changed=True)

    async def _insert(self, connection: AsyncConnection, arrivals: list[Arrival], learned: Learned) -> None:
        """Register what is new and COPY the episodes; `learned` is what to remember once it is committed."""
        places = {arrival.place for arrival in arrivals}
        await self._register(connection, places, learned)
        numbers = {place: cast(Numbers, self._numbers(place, learned)) for place in places}
        await self._describe(connection, arrivals, numbers, learned)
        fronts = {}
        for place in places:
            deployment = place.slug and (
                learned.deployments.get(place.slug) or self._registry.find_deployment(place.slug)
            )
            fronts[place] = place.pack_front(numbers[place], deployment.id if deployment else None)
        async with connection.cursor().copy(COPY) as copy:
            await copy.write(b"".join(_rows(arrivals, fronts)))

    async def _register(self, connection: AsyncConnection, places: set[Place], learned: Learned) -> None:
        """Numbers for every reference of these places, made in one fixed order of tables."""
        wanted: dict[tuple[int, Table], set[Key]] = {}
        for place in places:
            for entry in place.entries():
                if self._registry.find(entry) is None:
                    project_id, table, key = entry
                    wanted.setdefault((project_id, table), set()).add(key)
        order = list(REGISTRY_COLUMNS)
        for project_id, table in sorted(wanted, key=lambda pair: (pair[0], order.index(pair[1]))):
            rows = {key: registry_row(table, key) for key in wanted[project_id, table]}
            unique = UNIQUE[table]
            found = await register(connection, project_id, table, {row[:unique]: row for row in rows.values()})
            for key, row in rows.items():
                learned.ids[project_id, table, key] = found[row[:unique]]

    async def _describe(
        self,
        connection: AsyncConnection,
        arrivals: list[Arrival],
        numbers: dict[Place, Numbers],
        learned: Learned,
    ) -> None:
        """Register deployments, and update one only when a newer episode says something else of it."""
        changed: dict[int, dict[str, tuple[datetime, Description]]] = {}
        for arrival in arrivals:
            place = arrival.place
            if place.slug is None:
                continue
            known = self._registry.find_deployment(place.slug)
            says = place.describe(numbers[place])
            if known is not None and (arrival.started_at <= known.described_at or says == known.description):
                continue
            project_id, name = place.slug
            newest = changed.setdefault(project_id, {})
            if name not in newest or arrival.started_at > newest[name][0]:
                newest[name] = (arrival.started_at, says)
        for project_id in sorted(changed):
            described = await describe_deployments(connection, project_id, changed[project_id])
            for name, deployment in described.items():
                learned.deployments[project_id, name] = deployment


async def _probe(connection: AsyncConnection, arrivals: Sequence[Arrival]) -> tuple[list[Status], list[Arrival]]:
    """What is already stored or stands twice in this batch; and the rest in the order of its key."""
    statuses: list[Status] = ["accepted"] * len(arrivals)
    if len({arrival.id for arrival in arrivals}) == len(arrivals) and len(set(map(_project, arrivals))) == 1:
        fresh = sorted(arrivals, key=_id)
        if not await copy_exchange.known_episodes(connection, _project(fresh[0]), list(map(_id, fresh))):
            return statuses, fresh
    places: dict[tuple[int, str], list[int]] = {}
    for index, arrival in enumerate(arrivals):
        places.setdefault((arrival.place.project_id, arrival.id), []).append(index)
    for project_id, ids in _by_project(places).items():
        for id_, stored_hash, deleted in await copy_exchange.known_episodes(connection, project_id, ids):
            for index in places.pop((project_id, id_)):
                same = stored_hash == arrivals[index].content_hash
                statuses[index] = "deleted" if deleted else ("duplicate" if same else "conflict")
    for first, *repeats in places.values():
        for index in repeats:
            same = arrivals[first].content_hash == arrivals[index].content_hash
            statuses[index] = "duplicate" if same else "conflict"
    return statuses, [arrivals[places[place][0]] for place in sorted(places)]


async def _copy_known(connection: AsyncConnection, arrivals: list[Arrival]) -> None:
    """Episodes of which everything is registered, and their work rows, in one exchange."""
    fronts = cast(dict[Place, bytes], {arrival.place: arrival.place.front for arrival in arrivals})
    work = [
        LEAVE_WORK.format(project_id=project_id, ids=copy_exchange.quote_texts(connection, ids))
        for project_id, ids in _ids(arrivals).items()
    ]
    await copy_exchange.copy_and_run(connection, COPY, _rows(arrivals, fronts), "; ".join(work))


def _rows(arrivals: list[Arrival], fronts: dict[Place, bytes]) -> list[bytes]:
    rows = [pg.HEADER]
    for arrival in arrivals:
        rows += (ROW_START, fronts[arrival.place], *arrival.row)
    rows.append(pg.TRAILER)
    return rows


def _ids(arrivals: list[Arrival]) -> dict[int, list[str]]:
    return _by_project((arrival.place.project_id, arrival.id) for arrival in arrivals)


def _by_project(places: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    ids: dict[int, list[str]] = {}
    for project_id, id_ in places:
        ids.setdefault(project_id, []).append(id_)
    return ids


async def _leave_work(connection: AsyncConnection, arrivals: list[Arrival]) -> None:
    for project_id, ids in _ids(arrivals).items():
        await connection.execute(
            "INSERT INTO work (project_id, kind, episode_ids) VALUES (%s, 'fold', %s)",
            (project_id, ids),
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
