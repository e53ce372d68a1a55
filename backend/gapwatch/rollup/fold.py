"""Folding accepted episodes into the rollups: each once, whatever is killed or runs twice."""

from __future__ import annotations

import structlog

from gapwatch.errors import ServiceUnavailable
from gapwatch.store import rollups, work
from gapwatch.store.database import Database

log = structlog.get_logger()

# Rows claimed in one transaction. Large steps make few updates of the same rollup row.
CLAIM_AT_MOST = 200


def fold_due_work(database: Database) -> int:
    """Fold until nothing is due; returns the number of work rows done."""
    done = 0
    while True:
        try:
            count = database.run(lambda connection: _fold_step(connection, CLAIM_AT_MOST))
        except ServiceUnavailable:
            # The server is away, not a row to blame: the next sweep comes back.
            raise
        except Exception as error:
            # One bad row must not hold up the others: find it by folding one at a time.
            log.warning("fold failed, going row by row", error=str(error)[:200])
            count = _fold_row_by_row(database)
        if count == 0:
            return done
        done += count


def _fold_step(connection: rollups.Connection, most: int) -> int:
    claims = work.claim(connection, "fold", most)
    if claims:
        rollups.fold(connection, claims)
        work.finish(connection, claims)
    return len(claims)


def _fold_row_by_row(database: Database) -> int:
    done = 0
    while True:
        claimed: list[work.Claim] = []
        try:
            with database.transaction() as connection:
                claimed = work.claim(connection, "fold", 1)
                if not claimed:
                    return done
                rollups.fold(connection, claimed)
                work.finish(connection, claimed)
        except ServiceUnavailable:
            raise
        except Exception as error:
            if not claimed:
                raise
            log.error("work row failed", work_id=claimed[0].id, project_id=claimed[0].project_id)
            message = f"{type(error).__name__}: {error}"
            with database.transaction() as connection:
                work.postpone(connection, claimed[0], message)
        done += 1
