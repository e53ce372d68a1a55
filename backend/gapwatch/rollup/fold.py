"""Folding accepted episodes into the rollups: each once, whatever is killed or runs twice."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

import structlog

from gapwatch.errors import ServiceUnavailable
from gapwatch.rollup.add import add_episodes
from gapwatch.rollup.forecasts import freeze_forecasts
from gapwatch.step_sizes import Turn, growing_steps
from gapwatch.store.alerting import watch_queue
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.fold import (
    episode_rows,
    presents,
    project_changes,
    work,
)
from gapwatch.tally.rows import Row
from gapwatch.tally.sums import DAY_S

log = structlog.get_logger()

# Work rows, and about how many episodes, of one transaction. Large steps make few updates of the same rollup row;
# memory sets the bound.
CLAIM_AT_MOST = 4_000
EPISODES_AT_MOST = 40_000
# Days of sources whose sums are in memory together; twelve thousand took 840 MB.
GROUPS_AT_MOST = 5_000


def fold_due_work(database: Database, turn: Turn | None = None) -> int:
    """Fold until nothing is due or the turn is over; returns the number of work rows done."""
    turn = turn or Turn()
    done, folded = 0, set[int]()
    for number, episodes in enumerate(growing_steps(EPISODES_AT_MOST)):
        try:
            claims = database.run(partial(_fold_step, episodes, large=number % 2 == 1))
            count = len(claims)
            folded.update(claim.project_id for claim in claims)
        except ServiceUnavailable:
            # The server is away, not a row to blame: the next sweep comes back.
            raise
        except Exception as error:
            # One bad row must not hold up the others: find it by folding one at a time.
            log.warning("fold failed, going row by row", error=str(error)[:200])
            count = _fold_row_by_row(database)
        done += count
        if count == 0 or turn.is_over():
            break
    if folded:
        freeze_forecasts(database, folded)
    return done


def _fold_step(episodes: int, connection: Connection, *, large: bool) -> list[work.Claim]:
    claims = _claim(connection, min(CLAIM_AT_MOST, episodes), episodes, large=large)
    _fold(connection, claims)
    return claims


def _claim(connection: Connection, most: int, episodes: int, *, large: bool = False) -> list[work.Claim]:
    projects = episode_rows.lock_projects(connection, "fold", large=large)
    return work.claim(connection, "fold", projects, most, episodes) if projects else []


def _fold(connection: Connection, claims: list[work.Claim]) -> None:
    """The claimed episodes into the numbers, and their work rows away, in the caller's transaction."""
    by_project: dict[int, list[work.Claim]] = {}
    for claim in claims:
        by_project.setdefault(claim.project_id, []).append(claim)
    for project_id, mine in by_project.items():
        touched: set[int] = set()
        for part in _parts(episode_rows.claimed_rows(connection, project_id, mine)):
            add_episodes(connection, project_id, episode_rows.episodes_in(connection, project_id, part))
            touched.update(row.source_id for row in part if row.domain != "sim")
        presents.refresh_presents(connection, project_id, touched)
    if claims:
        # Ends the work rows and makes their episodes due to be watched.
        watch_queue.hand_over(connection, [claim.id for claim in claims])
        project_changes.count_folds(connection, by_project)


def _parts(rows: list[Row]) -> list[list[Row]]:
    """All at once; an import of a whole fleet's past, of which every day of every source is a group, in parts."""
    by_hour = attrgetter("domain", "policy_id", "task_id", "source_id", "hour")
    groups = {(*scope, hour // DAY_S) for *scope, hour in set(map(by_hour, rows))}
    if len(groups) <= GROUPS_AT_MOST:
        return [rows]
    rows.sort(key=by_hour)
    return [rows[start : start + GROUPS_AT_MOST] for start in range(0, len(rows), GROUPS_AT_MOST)]


def _fold_row_by_row(database: Database) -> int:
    done = 0
    while True:
        claimed: list[work.Claim] = []
        try:
            with database.transaction() as connection:
                claimed = _claim(connection, 1, EPISODES_AT_MOST)
                if not claimed:
                    return done
                _fold(connection, claimed)
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
