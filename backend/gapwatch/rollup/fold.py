"""Folding accepted episodes into the rollups: each once, whatever is killed or runs twice."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from gapwatch.errors import ServiceUnavailable
from gapwatch.rollup.add import add_sums
from gapwatch.store import folding, work
from gapwatch.store.database import Connection, Database

log = structlog.get_logger()

# Work rows, and about how many episodes, of one transaction. Large steps make few updates of the same rollup row;
# memory sets the bound.
CLAIM_AT_MOST = 200
EPISODES_AT_MOST = 20_000

# What a fold tells in its own transaction: these deployments of this project have new real episodes.
Folded = Callable[[Connection, int, set[int]], None]


def fold_due_work(database: Database, folded: Folded | None = None) -> int:
    """Fold until nothing is due; returns the number of work rows done."""
    done = 0
    while True:
        try:
            count = database.run(lambda connection: _fold_step(connection, CLAIM_AT_MOST, folded))
        except ServiceUnavailable:
            # The server is away, not a row to blame: the next sweep comes back.
            raise
        except Exception as error:
            # One bad row must not hold up the others: find it by folding one at a time.
            log.warning("fold failed, going row by row", error=str(error)[:200])
            count = _fold_row_by_row(database, folded)
        if count == 0:
            return done
        done += count


def _fold_step(connection: Connection, most: int, folded: Folded | None) -> int:
    claims = work.claim(connection, "fold", folding.lock_projects(connection, "fold"), most, EPISODES_AT_MOST)
    by_project: dict[int, list[work.Claim]] = {}
    for claim in claims:
        by_project.setdefault(claim.project_id, []).append(claim)
    for project_id, mine in by_project.items():
        sums = folding.sums_of(connection, project_id, folding.claimed_rows(connection, project_id, mine))
        add_sums(connection, project_id, sums)
        if folded is not None:
            folded(connection, project_id, sums.deployments())
    work.finish(connection, claims)
    return len(claims)


def _fold_row_by_row(database: Database, folded: Folded | None) -> int:
    done = 0
    while True:
        claimed: list[work.Claim] = []
        try:
            with database.transaction() as connection:
                claimed = work.claim(connection, "fold", folding.lock_projects(connection, "fold"), 1)
                if not claimed:
                    return done
                [claim] = claimed
                rows = folding.claimed_rows(connection, claim.project_id, claimed)
                sums = folding.sums_of(connection, claim.project_id, rows)
                add_sums(connection, claim.project_id, sums)
                if folded is not None:
                    folded(connection, claim.project_id, sums.deployments())
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
