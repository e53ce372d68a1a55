"""The queue of record: claiming and postponing work rows.

A claim is a row lock with SKIP LOCKED, held by the transaction that does the work and deletes the row.
A killed worker's lock vanishes with its connection, and the row is due again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, func, select, text, tuple_, update

from gapwatch.store.tables.work import WorkTable

# A row that failed is tried again after 1, 2, 4 … seconds, at most every five minutes, for ever: it is
# accepted data. `/readyz` counts it and the log names it.
LONGEST_PAUSE_S = 300
FEW_ROWS = 16


@dataclass(frozen=True)
class Claim:
    project_id: int
    id: int
    episode_ids: list[str]
    revision: int
    sign: int


def kinds_due(connection: Connection) -> list[str]:
    return list(connection.scalars(select(WorkTable.kind).where(WorkTable.due_at <= func.now()).distinct()))


def claim(
    connection: Connection, kind: str, projects: list[int], most: int, most_episodes: int = 1
) -> list[Claim]:
    """Lock up to `most` due rows of these projects, oldest first, passing over those another worker holds.

    Of these as many as make `most_episodes`. A row may hold ten thousand ids or one: few are read at first, then
    more and more; and one that holds too many is cut in two, the second part to be done later.
    """
    claims: list[Claim] = []
    episodes, at_once = 0, FEW_ROWS
    position = tuple_(WorkTable.due_at, WorkTable.project_id, WorkTable.id)
    last: tuple[datetime, int, int] | None = None
    while len(claims) < most:
        query = select(
            WorkTable.project_id,
            WorkTable.id,
            WorkTable.episode_ids,
            WorkTable.revision,
            WorkTable.sign,
            WorkTable.due_at,
        ).where(WorkTable.kind == kind, WorkTable.due_at <= func.now(), WorkTable.project_id.in_(projects))
        if last is not None:
            query = query.where(position > last)
        rows = connection.execute(
            query.order_by(WorkTable.due_at, WorkTable.project_id, WorkTable.id)
            .limit(min(at_once, most - len(claims)))
            .with_for_update(skip_locked=True)
        ).all()
        for row in rows:
            claimed = Claim(row.project_id, row.id, row.episode_ids, row.revision, row.sign)
            if episodes + len(claimed.episode_ids) > most_episodes:
                return claims or [_cut(connection, claimed, most_episodes)]
            claims.append(claimed)
            episodes += len(claimed.episode_ids)
        if len(rows) < at_once:
            break
        last, at_once = (rows[-1].due_at, rows[-1].project_id, rows[-1].id), 2 * at_once
    return claims


def _cut(connection: Connection, claimed: Claim, most_episodes: int) -> Claim:
    """Leave all but the first episodes of a row to another row, of the same time."""
    row = {"p": claimed.project_id, "id": claimed.id, "most": most_episodes}
    connection.execute(
        text("""
        INSERT INTO work (project_id, kind, episode_ids, revision, sign, created_at, due_at, attempts)
        SELECT project_id, kind, episode_ids[CAST(:most AS int) + 1 : cardinality(episode_ids)], revision, sign,
               created_at, due_at, attempts
        FROM work WHERE project_id = :p AND id = :id
        """),
        row,
    )
    connection.execute(
        text("UPDATE work SET episode_ids = episode_ids[1:CAST(:most AS int)] WHERE project_id = :p AND id = :id"),
        row,
    )
    return replace(claimed, episode_ids=claimed.episode_ids[:most_episodes])


def waiting(connection: Connection, project_id: int, kind: str) -> list[Claim]:
    """Everything still to be done of a project, due or postponed; nothing is locked."""
    rows = connection.execute(
        select(WorkTable.project_id, WorkTable.id, WorkTable.episode_ids, WorkTable.revision, WorkTable.sign)
        .where(WorkTable.project_id == project_id, WorkTable.kind == kind)
        .order_by(WorkTable.id)
    )
    return [Claim(row.project_id, row.id, row.episode_ids, row.revision, row.sign) for row in rows]


def postpone(connection: Connection, claimed: Claim, error: str) -> None:
    pause = func.least(LONGEST_PAUSE_S, func.power(2, WorkTable.attempts))
    connection.execute(
        update(WorkTable)
        .where(WorkTable.project_id == claimed.project_id, WorkTable.id == claimed.id)
        .values(
            attempts=WorkTable.attempts + 1,
            due_at=func.now() + pause * text("interval '1 second'"),
            last_error=error[:1000],
        )
    )


@dataclass(frozen=True)
class Backlog:
    """`oldest_s` is the lag of the numbers behind the episodes; `failing` rows were tried and postponed."""

    oldest_s: float
    failing: int


def backlog(connection: Connection) -> Backlog:
    connection.execute(text("SET LOCAL statement_timeout = '2s'"))
    age = func.extract("epoch", func.now() - func.min(WorkTable.created_at).filter(WorkTable.attempts == 0))
    failing = func.count().filter(WorkTable.attempts > 0)
    row = connection.execute(
        select(func.coalesce(age, 0).label("oldest_s"), failing.label("failing")).select_from(WorkTable)
    ).one()
    return Backlog(float(row.oldest_s), int(row.failing))
