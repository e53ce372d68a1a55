"""Store episodes: one transaction from unknown names to the work row, committed before the answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, TypeVar, cast

import msgspec
import psycopg
from psycopg import AsyncConnection, errors
from psycopg.types.json import Jsonb
from psycopg_pool import PoolTimeout

from gapwatch.errors import DiskFull, ServiceUnavailable
from gapwatch.store.core import copy_exchange
from gapwatch.store.core.pool import Pool
from gapwatch.store.write import corrections
from gapwatch.store.write.name_budget import DEPLOYMENT, BudgetKey, field_of, known_deployments, spend
from gapwatch.store.write.new_episodes import COPY, REFERENCE_COLUMNS, EpisodeReferences, NewEpisode
from gapwatch.store.write.quarantine import ROW_BYTES, QuarantineBudget
from gapwatch.store.write.registry import (
    TABLES,
    UNIQUE,
    DeploymentKey,
    Description,
    Entry,
    Key,
    NewRegistrations,
    Numbers,
    Registry,
    Table,
    describe_deployments,
    find_registered,
    register,
    registry_row,
)
from gapwatch.store.write.repeats import find_repeats, note_repeats
from gapwatch.store.write.spool_ages import senders_of, write_spool_age

T = TypeVar("T")

# Repeated: stored, though it says what another one says under another id. Beyond the first ones: too many new
# names in this field of the record.
Status = Literal[
    "accepted",
    "repeated",
    "duplicate",
    "conflict",
    "deleted",
    "policy",
    "task",
    "robot",
    "site",
    "simulator",
    "deployment",
    "conditions",
    "signals",
    "metrics",
    "contract",
]

# After one of these nothing is stored and the same transaction may run again. A unique violation means that
# another sender stored the id after we looked; the next look finds it.
RETRYABLE = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.LockNotAvailable,
)
MOST_TRIES = 6
ANSWER_WITHIN_S = 10.0

LEAVE_WORK = "INSERT INTO work (project_id, kind, episode_ids) VALUES ({project_id:d}, 'fold', {ids})"

_id = attrgetter("id")
_project_id = attrgetter("context.project_id")


@dataclass(frozen=True)
class Rejection:
    """A refused record, to be kept in the quarantine."""

    project_id: int
    key_prefix: str
    code: str
    errors: list[Any]
    record: bytes


@dataclass(frozen=True)
class CorrectionResult:
    revision: int
    changed: bool


class TooManyNames(Exception):
    """A correction has a new name that its key has no budget for; the message is the field."""


class Acceptor:
    """Stores episodes. Remembers what this process has seen registered."""

    def __init__(self, pool: Pool, new_names_a_day: int) -> None:
        self._pool = pool
        self._registry = Registry()
        self._new_names_a_day = new_names_a_day
        self._quarantine_budget = QuarantineBudget()

    def _within_budget(self, rejections: Sequence[Rejection]) -> list[tuple[int, str, str, Jsonb, bytes]]:
        """The rows of refused records that a project may still store; the answer names every refusal anyway."""
        rows = []
        for rejected in rejections:
            errors = msgspec.json.encode(rejected.errors)
            size = ROW_BYTES + len(rejected.record) + len(errors)
            if self._quarantine_budget.take(rejected.project_id, size):
                whole = Jsonb(rejected.errors)
                rows.append((rejected.project_id, rejected.key_prefix, rejected.code, whole, rejected.record))
        return rows

    async def store(
        self,
        episodes: Sequence[NewEpisode],
        rejections: Sequence[Rejection] = (),
        *,
        all_or_nothing: bool = False,
    ) -> list[Status]:
        """Store episodes and rejections in one durable transaction. Return the status of each episode, in order.

        With `all_or_nothing` a conflict leaves everything unstored, whatever the other statuses say.
        """
        return await self._run(
            lambda connection: self._store_once(connection, episodes, rejections, all_or_nothing)
        )

    async def replace(self, episode: NewEpisode, actor: str) -> CorrectionResult | None:
        """Store a correction as a new revision, unless it changes nothing. Return None if there is no such id."""
        return await self._run(lambda connection: self._replace_once(connection, episode, actor))

    async def delete(self, project_id: int, episode_id: str, actor: str) -> bool:
        """Return whether there was one. The id stays taken for ever: a late retry must not bring it back."""

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

    async def note_spool_age(self, episodes: Sequence[NewEpisode], age_s: float | None) -> bool:
        """Note how old the oldest record is that the senders of episodes still have; None if they have none.

        False if a row was busy: the next batch has to say it again.
        """
        contexts = {episode.context for episode in episodes}
        senders = senders_of(contexts, self._registry.find_deployment)
        if not senders:
            return True
        project_id = _project_id(episodes[0])
        return await self._run(lambda connection: write_spool_age(connection, project_id, senders, age_s))

    async def _run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run one transaction on a connection of the pool, again when another one got in its way."""
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
                # A pooled connection may have died with the server while the next is alive: try once more.
                if attempt == 1 and not isinstance(error, PoolTimeout | TimeoutError):
                    self._pool.distrust()
                    continue
                raise ServiceUnavailable("The database is not answering; try again shortly.") from error
        raise AssertionError("unreachable")

    async def _store_once(
        self,
        connection: AsyncConnection,
        episodes: Sequence[NewEpisode],
        rejections: Sequence[Rejection],
        all_or_nothing: bool,
    ) -> list[Status]:
        # Look up known ids outside the transaction. A concurrent insert is caught by the unique key.
        statuses, unstored = await _find_unstored(connection, episodes)
        if all_or_nothing and ("conflict" in statuses or "deleted" in statuses):
            return statuses
        is_registered = bool(unstored) and self._is_all_registered(unstored)
        repeats = await find_repeats(connection, unstored) if unstored else {}
        if is_registered and not rejections and not repeats:
            await _copy_registered(connection, unstored)
        elif unstored or rejections:
            registrations = NewRegistrations()
            async with connection.transaction() as transaction:
                refused = await self._over_budget(connection, unstored, registrations) if unstored else {}
                if refused:
                    _mark_refused(statuses, episodes, refused)
                    if all_or_nothing:
                        raise psycopg.Rollback(transaction)
                    unstored = [episode for episode in unstored if episode.context not in refused]
                if unstored:
                    await self._insert(connection, unstored, registrations)
                    await _leave_work(connection, unstored)
                    await note_repeats(connection, repeats)
                if rejections:
                    await _quarantine(connection, self._within_budget(rejections))
            if not (refused and all_or_nothing):
                self._registry.remember(registrations)
        for index, episode in enumerate(episodes):
            if repeats and statuses[index] == "accepted" and (_project_id(episode), episode.id) in repeats:
                statuses[index] = "repeated"
        return statuses

    async def _over_budget(
        self, connection: AsyncConnection, episodes: list[NewEpisode], registrations: NewRegistrations
    ) -> dict[EpisodeReferences, str]:
        """Take the new names of episodes from their keys' budgets. Return the contexts for which there was none
        left, each with the field; episodes of one context share its names, so that the first key pays."""
        unknown, contexts_of = self._unknown_names(episodes)
        if not unknown:
            return {}
        new = await self._new_names(connection, unknown, registrations)
        by_budget: dict[BudgetKey, list[Entry | DeploymentKey]] = {}
        for name in new:
            by_budget.setdefault(unknown[name], []).append(name)
        refused: dict[EpisodeReferences, str] = {}
        for budget in sorted(by_budget):
            names = sorted(by_budget[budget], key=repr)
            granted = await spend(connection, budget, len(names), self._new_names_a_day)
            for name in names[granted:]:
                refused |= dict.fromkeys(contexts_of[name], budget.field)
        return refused

    def _unknown_names(
        self, episodes: list[NewEpisode]
    ) -> tuple[dict[Entry | DeploymentKey, BudgetKey], dict[Entry | DeploymentKey, list[EpisodeReferences]]]:
        """Names that this process does not know, each with the budget it is taken from and who refers to it."""
        unknown: dict[Entry | DeploymentKey, BudgetKey] = {}
        contexts_of: dict[Entry | DeploymentKey, list[EpisodeReferences]] = {}
        for context, key_id in {episode.context: episode.key_id for episode in episodes}.items():
            if context.row_start is not None:
                continue
            found: list[tuple[Entry | DeploymentKey, str]] = [
                (entry, field_of(entry)) for entry in context.entries() if self._registry.find(entry) is None
            ]
            if context.deployment is not None and self._registry.find_deployment(context.deployment) is None:
                found.append((context.deployment, DEPLOYMENT))
            for name, field in found:
                unknown.setdefault(name, BudgetKey(context.project_id, key_id, field))
                contexts_of.setdefault(name, []).append(context)
        return unknown, contexts_of

    async def _new_names(
        self,
        connection: AsyncConnection,
        unknown: Iterable[Entry | DeploymentKey],
        registrations: NewRegistrations,
    ) -> list[Entry | DeploymentKey]:
        """Those that the database does not know either. What it knows need not be asked for again."""
        deployments = {name for name in unknown if len(name) == 2}  # noqa: PLR2004 - project and slug
        new: list[Entry | DeploymentKey] = []
        if deployments:
            new += deployments - await known_deployments(connection, deployments)
        by_table: dict[tuple[int, Table], dict[Key, Key]] = {}
        for name in unknown:
            if name not in deployments:
                project_id, table, key = cast(Entry, name)
                unique = registry_row(table, key)[: UNIQUE[table]]
                by_table.setdefault((project_id, table), {})[unique] = key
        for (project_id, table), keys in by_table.items():
            known = await find_registered(connection, project_id, table, keys)
            for unique, key in keys.items():
                if unique in known:
                    registrations.ids[project_id, table, key] = known[unique]
                else:
                    new.append((project_id, table, key))
        return new

    def _is_all_registered(self, episodes: list[NewEpisode]) -> bool:
        """Whether everything these refer to is registered, and no deployment changes its description."""
        find_deployment = self._registry.find_deployment
        for episode in episodes:
            context = episode.context
            if context.row_start is None and not self._settle(context):
                return False
            if context.deployment is not None:
                known = find_deployment(context.deployment)
                if known is None:
                    return False
                if context.description is known.description or context.description == known.description:
                    continue
                if episode.started_at > known.described_at:
                    return False
        return True

    def _settle(self, context: EpisodeReferences) -> bool:
        """Number a new combination of known names without asking the database; False if a name is unknown."""
        numbers = self._numbers(context, NewRegistrations())
        deployment = context.deployment and self._registry.find_deployment(context.deployment)
        if numbers is None or (context.deployment and not deployment):
            return False
        context.settle(numbers, deployment or None)
        return True

    def _numbers(self, context: EpisodeReferences, registrations: NewRegistrations) -> Numbers | None:
        """Return the numbers of all references, or None if one is not registered."""
        numbers = {
            entry[1:]: registrations.ids.get(entry) or self._registry.find(entry) for entry in context.entries()
        }
        if None in numbers.values():
            return None
        return tuple(
            None if key is None else numbers[table, key]
            for (_, table), key in zip(REFERENCE_COLUMNS, context.references, strict=True)
        )

    async def _replace_once(
        self, connection: AsyncConnection, episode: NewEpisode, actor: str
    ) -> CorrectionResult | None:
        async with connection.transaction():
            project_id = episode.context.project_id
            standing = await corrections.standing_revision(connection, project_id, episode.id)
            if standing is None:
                return None
            revision, stored_hash = standing
            if stored_hash == episode.content_hash:
                return CorrectionResult(revision, changed=False)
            await corrections.end_revision(
                connection, project_id, episode.id, revision, ended_by="correction", actor=actor
            )
            registrations = NewRegistrations()
            refused = await self._over_budget(connection, [episode], registrations)
            if refused:
                raise TooManyNames(refused[episode.context])
            await self._insert(connection, [episode], registrations, revision + 1)
            await corrections.leave_work(connection, project_id, episode.id, revision + 1, 1)
        self._registry.remember(registrations)
        return CorrectionResult(revision + 1, changed=True)

    async def _insert(
        self,
        connection: AsyncConnection,
        episodes: list[NewEpisode],
        registrations: NewRegistrations,
        revision: int = 1,
    ) -> None:
        """Register new names and COPY the episodes. Add to `registrations` what to remember after the commit."""
        contexts = {episode.context for episode in episodes}
        await self._register(connection, contexts, registrations)
        numbers = {context: cast(Numbers, self._numbers(context, registrations)) for context in contexts}
        await self._describe(connection, episodes, numbers, registrations)
        row_starts = {}
        for context in contexts:
            deployment = context.deployment and (
                registrations.deployments.get(context.deployment)
                or self._registry.find_deployment(context.deployment)
            )
            deployment_id = deployment.id if deployment else None
            row_starts[context] = context.pack_row_start(numbers[context], deployment_id, revision)
        async with connection.cursor().copy(COPY) as copy:
            await copy.write(_copy_data(episodes, row_starts))

    async def _register(
        self, connection: AsyncConnection, contexts: set[EpisodeReferences], registrations: NewRegistrations
    ) -> None:
        """Register every unknown reference, in one fixed order of tables."""
        unknown: dict[tuple[int, Table], set[Key]] = {}
        for context in contexts:
            for entry in context.entries():
                if self._registry.find(entry) is None and entry not in registrations.ids:
                    project_id, table, key = entry
                    unknown.setdefault((project_id, table), set()).add(key)
        for project_id, table in sorted(unknown, key=lambda pair: (pair[0], TABLES.index(pair[1]))):
            rows = {key: registry_row(table, key) for key in unknown[project_id, table]}
            unique = UNIQUE[table]
            numbers = await register(connection, project_id, table, {row[:unique]: row for row in rows.values()})
            for key, row in rows.items():
                registrations.ids[project_id, table, key] = numbers[row[:unique]]

    async def _describe(
        self,
        connection: AsyncConnection,
        episodes: list[NewEpisode],
        numbers: dict[EpisodeReferences, Numbers],
        registrations: NewRegistrations,
    ) -> None:
        """Register deployments. Update a known one only when a newer episode describes it differently."""
        changed: dict[int, dict[str, tuple[datetime, Description]]] = {}
        for episode in episodes:
            context = episode.context
            if context.deployment is None:
                continue
            known = self._registry.find_deployment(context.deployment)
            description = context.describe(numbers[context])
            if known is not None and (
                episode.started_at <= known.described_at or description == known.description
            ):
                continue
            project_id, name = context.deployment
            newest = changed.setdefault(project_id, {})
            if name not in newest or episode.started_at > newest[name][0]:
                newest[name] = (episode.started_at, description)
        for project_id in sorted(changed):
            described = await describe_deployments(connection, project_id, changed[project_id])
            for name, deployment in described.items():
                registrations.deployments[project_id, name] = deployment


async def _find_unstored(
    connection: AsyncConnection, episodes: Sequence[NewEpisode]
) -> tuple[list[Status], list[NewEpisode]]:
    """Return the status of each episode, and those to store in the order of their key."""
    statuses: list[Status] = ["accepted"] * len(episodes)
    # Most often all ids are new and different, and of one project.
    if len(set(map(_id, episodes))) == len(episodes) and len(set(map(_project_id, episodes))) == 1:
        by_id = sorted(episodes, key=_id)
        if not await copy_exchange.known_episodes(connection, _project_id(by_id[0]), list(map(_id, by_id))):
            return statuses, by_id
    indexes: dict[tuple[int, str], list[int]] = {}
    for index, episode in enumerate(episodes):
        indexes.setdefault((episode.context.project_id, episode.id), []).append(index)
    for project_id, ids in _by_project(indexes).items():
        for id_, stored_hash, deleted in await copy_exchange.known_episodes(connection, project_id, ids):
            for index in indexes.pop((project_id, id_)):
                same = stored_hash == episodes[index].content_hash
                statuses[index] = "deleted" if deleted else ("duplicate" if same else "conflict")
    for first, *repeats in indexes.values():
        for index in repeats:
            same = episodes[first].content_hash == episodes[index].content_hash
            statuses[index] = "duplicate" if same else "conflict"
    return statuses, [episodes[indexes[key][0]] for key in sorted(indexes)]


async def _copy_registered(connection: AsyncConnection, episodes: list[NewEpisode]) -> None:
    """Store episodes of which everything is registered, and their work rows, in one exchange."""
    row_starts = cast(
        dict[EpisodeReferences, bytes], {episode.context: episode.context.row_start for episode in episodes}
    )
    work = [
        LEAVE_WORK.format(project_id=project_id, ids=copy_exchange.quote_texts(connection, ids))
        for project_id, ids in _ids_by_project(episodes).items()
    ]
    await copy_exchange.copy_and_run(connection, COPY, _copy_data(episodes, row_starts), "; ".join(work))


def _mark_refused(
    statuses: list[Status], episodes: Sequence[NewEpisode], refused: dict[EpisodeReferences, str]
) -> None:
    """Mark what is refused, and what would have been its duplicate within the same call."""
    fields = {
        (episode.context.project_id, episode.id): cast(Status, refused[episode.context])
        for status, episode in zip(statuses, episodes, strict=True)
        if status == "accepted" and episode.context in refused
    }
    for index, episode in enumerate(episodes):
        if statuses[index] in ("accepted", "duplicate"):
            statuses[index] = fields.get((episode.context.project_id, episode.id), statuses[index])


def _copy_data(episodes: list[NewEpisode], row_starts: dict[EpisodeReferences, bytes]) -> bytes:
    parts = [copy_exchange.HEADER]
    for episode in episodes:
        parts += (row_starts[episode.context], *episode.row)
    parts.append(copy_exchange.TRAILER)
    return b"".join(parts)


def _ids_by_project(episodes: list[NewEpisode]) -> dict[int, list[str]]:
    return _by_project((episode.context.project_id, episode.id) for episode in episodes)


def _by_project(keys: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    ids: dict[int, list[str]] = {}
    for project_id, id_ in keys:
        ids.setdefault(project_id, []).append(id_)
    return ids


async def _leave_work(connection: AsyncConnection, episodes: list[NewEpisode]) -> None:
    for project_id, ids in _ids_by_project(episodes).items():
        await connection.execute(
            "INSERT INTO work (project_id, kind, episode_ids) VALUES (%s, 'fold', %s)",
            (project_id, ids),
        )


async def _quarantine(connection: AsyncConnection, rows: Sequence[tuple[int, str, str, Jsonb, bytes]]) -> None:
    if not rows:
        return
    async with connection.cursor() as cursor:
        await cursor.executemany(
            """
            INSERT INTO rejected_records (project_id, key_prefix, code, errors, record)
            VALUES (%s, %s, %s, %s, %s)
            """,
            rows,
        )
