"""How far behind senders are, written beside when their robots were heard."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from psycopg import AsyncConnection

from gapwatch.store.write.new_episodes import REFERENCE_COLUMNS, EpisodeReferences
from gapwatch.store.write.registry import DeploymentKey, KnownDeployment
from gapwatch.watching.silence import NO_ROBOT

MOST_SENDERS = 200

_ROBOT = [column for column, _ in REFERENCE_COLUMNS].index("robot_id")
# A row that the watch is writing is passed over: ingest waits for nobody.
_WRITE = """
WITH known AS (SELECT robot FROM presence WHERE project_id = %(project_id)s AND robot = ANY(%(senders)s)),
free AS (
    SELECT robot FROM presence WHERE project_id = %(project_id)s AND robot = ANY(%(senders)s)
    ORDER BY robot FOR UPDATE SKIP LOCKED),
written AS (
    UPDATE presence SET spool_oldest_at = now() - make_interval(secs => %(age_s)s), spool_told_at = now()
    WHERE project_id = %(project_id)s AND robot IN (SELECT robot FROM free) RETURNING robot)
SELECT (SELECT count(*) FROM written) = (SELECT count(*) FROM known)
"""


def robot_of(context: EpisodeReferences) -> str | None:
    key = context.references[_ROBOT]
    return None if key is None else str(key[0])


def senders_of(
    contexts: Iterable[EpisodeReferences], find_deployment: Callable[[DeploymentKey], KnownDeployment | None]
) -> list[str]:
    """The robots of real episodes, as the watch knows them."""
    senders: set[str] = set()
    for context in contexts:
        deployment = None if context.deployment is None else find_deployment(context.deployment)
        if deployment is not None:
            senders.add(robot_of(context) or f"{NO_ROBOT}{deployment.id}")
    return sorted(senders)[:MOST_SENDERS]


async def write_spool_age(
    connection: AsyncConnection, project_id: int, senders: list[str], age_s: float | None
) -> bool:
    """Whether every sender that the watch knows has it now; if not, it has to be said again."""
    cursor = await connection.execute(_WRITE, {"project_id": project_id, "senders": senders, "age_s": age_s})
    row = await cursor.fetchone()
    return row is not None and bool(row[0])
