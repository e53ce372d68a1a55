"""Permits as robots ask for them: read for many at once, told of by Postgres, and who knows which.

All over one connection of the process, however many robots wait: it listens for decisions, and looks for itself
once a second, because a notice may be lost with the connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg import AsyncConnection
from sqlalchemy import Connection, text

from gapwatch.store.core.database import session_options
from gapwatch.store.core.pool import Pool
from gapwatch.store.rollout.rollouts import PolicyVersion, may_drive

log = structlog.get_logger()

CHANNEL = "gapwatch_permit"
LOOK_EVERY_S = 1.0
# Longer than any of our statements; a server that hangs answers none.
ANSWER_WITHIN_S = 5.0
AGAIN_AFTER_S = 0.5
# Of a client that asked within this time before a drill, the drill waits to hear.
ASKS_WITHIN_S = 45


PermitConnection = AsyncConnection


class PermitPlace(NamedTuple):
    project_id: int
    deployment_id: int


@dataclass(frozen=True)
class Permit:
    """What may drive at a deployment. Without a rollout nobody decided: its own policy, at the stage it says."""

    revision: int
    policy: PolicyVersion | None
    stage: str | None
    state: str
    decided_at: datetime | None
    decision: int | None

    @cached_property
    def body(self) -> dict[str, Any]:
        policy, at = self.policy, self.decided_at
        return {
            "policy": None if policy is None else {"name": policy.name, "version": policy.version},
            "stage": self.stage,
            "state": self.state,
            "decided_at": None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "decision": self.decision,
        }

    @cached_property
    def tag(self) -> str:
        """Changes with every revision of the rollout, and with what is answered."""
        digest = hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()[:12]
        return f'"{self.revision}-{digest}"'


@dataclass(frozen=True)
class Hearing:
    """A client that asked `age_s` ago, and has known a revision since `knows_s` ago."""

    place: PermitPlace
    client: str
    revision: int
    age_s: float
    knows_s: float


_READ = """
SELECT d.project_id, d.id, coalesce(r.revision, 0), coalesce(r.state, 'go'), coalesce(r.stage, d.stage),
       r.decided_at, r.decision_id, coalesce(r.policy_name, p.name), coalesce(r.policy_version, p.version),
       r.fallback_name, r.fallback_version
FROM unnest(%s::int[], %s::int[]) AS w (project_id, deployment_id)
JOIN deployments d ON d.project_id = w.project_id AND d.id = w.deployment_id
JOIN policies p ON p.project_id = d.project_id AND p.id = d.policy_id
LEFT JOIN rollouts r ON r.project_id = d.project_id AND r.deployment_id = d.id
"""
_HEAR = """
INSERT INTO permit_clients AS c (project_id, deployment_id, client, asked_at, revision, knew_at)
SELECT project_id, deployment_id, client, now() - age * interval '1 second', revision,
       now() - knows * interval '1 second'
FROM unnest(%s::int[], %s::int[], %s::text[], %s::bigint[], %s::float8[], %s::float8[])
     AS h (project_id, deployment_id, client, revision, age, knows)
ON CONFLICT (project_id, deployment_id, client) DO UPDATE SET
    asked_at = greatest(c.asked_at, excluded.asked_at),
    knew_at = CASE WHEN excluded.revision > c.revision THEN excluded.knew_at ELSE c.knew_at END,
    revision = greatest(c.revision, excluded.revision)
"""


async def find_place(pool: Pool, project_id: int, slug: str) -> PermitPlace | None:
    async with pool.answering(ANSWER_WITHIN_S) as connection:
        cursor = await connection.execute(
            "SELECT id FROM deployments WHERE project_id = %s AND slug = %s", (project_id, slug)
        )
        row = await cursor.fetchone()
    return None if row is None else PermitPlace(project_id, row[0])


async def read_permits(connection: AsyncConnection, places: Sequence[PermitPlace]) -> dict[PermitPlace, Permit]:
    if not places:
        return {}
    cursor = await connection.execute(
        _READ, ([place.project_id for place in places], [place.deployment_id for place in places])
    )
    return {PermitPlace(row[0], row[1]): _permit(row) for row in await cursor.fetchall()}


async def read_permit(pool: Pool, place: PermitPlace) -> Permit | None:
    """One that this process does not follow yet."""
    async with pool.answering(ANSWER_WITHIN_S) as connection:
        return (await read_permits(connection, [place])).get(place)


async def store_hearings(connection: AsyncConnection, hearings: Sequence[Hearing]) -> None:
    if not hearings:
        return
    # In one order everywhere, so that two processes do not wait for each other in a circle.
    ordered = sorted(hearings, key=lambda one: (one.place, one.client))
    await connection.execute(
        _HEAR,
        (
            [one.place.project_id for one in ordered],
            [one.place.deployment_id for one in ordered],
            [one.client for one in ordered],
            [one.revision for one in ordered],
            [one.age_s for one in ordered],
            [one.knows_s for one in ordered],
        ),
    )


def _permit(row: Any) -> Permit:
    _, _, revision, state, stage, decided_at, decision, name, version, fallback_name, fallback_version = row
    fallback = None if fallback_name is None else PolicyVersion(fallback_name, fallback_version)
    driver = may_drive(state, stage, PolicyVersion(name, version), fallback)
    return Permit(revision, driver, stage, state, decided_at, decision)


class PermitFeed:
    """Calls `look` after each notice, and at least once a second, over a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def follow(self, look: Callable[[AsyncConnection], Awaitable[None]], lost: Callable[[], None]) -> None:
        """Until cancelled. `lost` is called whenever the database does not answer."""
        while True:
            try:
                connection = await AsyncConnection.connect(
                    self._url,
                    autocommit=True,
                    connect_timeout=5,
                    application_name="gapwatch-permits",
                    options=session_options(statement_timeout_s=5),
                )
                async with connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    while True:
                        async with asyncio.timeout(ANSWER_WITHIN_S):
                            await look(connection)
                        async for _ in connection.notifies(timeout=LOOK_EVERY_S, stop_after=1):
                            pass
            except (psycopg.Error, TimeoutError, OSError) as error:
                lost()
                log.warning("permits: the database is not answering", error=type(error).__name__)
            except Exception:
                # Robots wait for this: whatever happened, it goes on.
                lost()
                log.exception("permits: a round failed")
            await asyncio.sleep(AGAIN_AFTER_S)


# What a drill needs, over the connection of whoever presses the button.


@dataclass(frozen=True)
class Drill:
    """`seconds` until the last of those who knew did; None where nobody asks."""

    at: datetime
    clients: int
    knew: int
    seconds: float | None
    p95_seconds: float | None
    missing: tuple[str, ...] = ()


def asking_clients(connection: Connection, project_id: int, deployment_id: int) -> int:
    """How many asked lately."""
    return int(
        connection.execute(
            text("""
            SELECT count(*) FROM permit_clients WHERE project_id = :p AND deployment_id = :d
              AND asked_at > now() - CAST(:within AS int) * interval '1 second'
            """),
            {"p": project_id, "d": deployment_id, "within": ASKS_WITHIN_S},
        ).scalar_one()
    )


def measure_drill(
    connection: Connection, project_id: int, deployment_id: int, revision: int, at: datetime
) -> Drill:
    """Who of those that asked within the time before it knows the revision of a drill, and since when."""
    row = connection.execute(
        text("""
        SELECT count(*) AS clients, count(*) FILTER (WHERE knows) AS knew, max(s) FILTER (WHERE knows) AS seconds,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY s) FILTER (WHERE knows) AS p95_seconds,
               coalesce((array_agg(client ORDER BY client) FILTER (WHERE NOT knows))[1:20], '{}') AS missing
        FROM (SELECT client, revision >= :revision AS knows,
                     greatest(0, extract(epoch FROM knew_at - CAST(:at AS timestamptz)))::float8 AS s
              FROM permit_clients WHERE project_id = :p AND deployment_id = :d
                AND asked_at > CAST(:at AS timestamptz) - CAST(:within AS int) * interval '1 second') c
        """),
        {"p": project_id, "d": deployment_id, "revision": revision, "at": at, "within": ASKS_WITHIN_S},
    ).one()
    return Drill(at, row.clients, row.knew, row.seconds, row.p95_seconds, tuple(row.missing))


def keep_drill(connection: Connection, project_id: int, deployment_id: int, revision: int, drill: Drill) -> None:
    connection.execute(
        text("""
        INSERT INTO drills (project_id, deployment_id, revision, at, clients, knew, seconds, p95_seconds)
        VALUES (:p, :d, :revision, :at, :clients, :knew, :seconds, :p95)
        """),
        {
            "p": project_id,
            "d": deployment_id,
            "revision": revision,
            "at": drill.at,
            "clients": drill.clients,
            "knew": drill.knew,
            "seconds": drill.seconds,
            "p95": drill.p95_seconds,
        },
    )


def newest_drills(connection: Connection, project_id: int, deployment_ids: Sequence[int]) -> Mapping[int, Drill]:
    rows = connection.execute(
        text("""
        SELECT DISTINCT ON (deployment_id) deployment_id, at, clients, knew, seconds, p95_seconds FROM drills
        WHERE project_id = :p AND deployment_id = ANY(:ids) ORDER BY deployment_id, at DESC
        """),
        {"p": project_id, "ids": list(deployment_ids)},
    )
    return {row.deployment_id: Drill(*row[1:]) for row in rows}
