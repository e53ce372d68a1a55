"""Single episodes of a side where counts do not say enough: failures with their evidence, pairs, filtered values.

Bounded in number, so that what is read does not grow with what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import driver_cursor
from gapwatch.store.fold.episode_rows import (
    condition_sets,
    episodes_in,
    name_sets,
    rows_where,
)
from gapwatch.store.read.bucket_counts import BucketCount, bucket_counts
from gapwatch.store.read.failed_episodes import FailedRows
from gapwatch.store.read.rollup_counts import (
    Kind,
    Values,
    cell_counts,
    values_of,
)
from gapwatch.store.read.selection import (
    CellFilter,
    Scope,
    Window,
    time_clauses,
)
from gapwatch.store.read.window_edges import numbered

STRATA = 20


@dataclass(frozen=True)
class PairRow:
    """A real and a sim attempt from the same initial state."""

    pair: str
    real_success: bool
    sim_success: bool
    real_reward: float | None
    sim_reward: float | None
    real_duration_s: float | None
    sim_duration_s: float | None


FAILED = """
SELECT {side}, (w.place - 1)::int, e.id, e.started_at, e.session, e.failure_phase, e.failure_labels,
       e.failure_category, e.condition_set_id, e.number_names_id, array_send(e.numbers), e.signal_names_id,
       array_send(e.signals)
FROM {source} e
"""


@dataclass(frozen=True)
class FailedAsked:
    """Which failures are meant: of `total` that match at most `most` are read. `by_day`, where it is known."""

    scope: Scope
    window: Window
    wanted: CellFilter
    most: int
    total: int
    by_day: Mapping[datetime, int] | None = None


def failed_episodes(
    connection: Connection, project_id: int, scope: Scope, window: Window, wanted: CellFilter, most: int
) -> FailedRows:
    counted = cell_counts(connection, project_id, scope, window)
    total = sum(each.failures for each in counted if wanted.matches(each.cell))
    return each_failed_episodes(connection, project_id, [FailedAsked(scope, window, wanted, most, total)])[0]


def each_failed_episodes(
    connection: Connection, project_id: int, asked: Sequence[FailedAsked]
) -> list[FailedRows]:
    """All failures of each side, newest first; where there are more than `most`, the newest of each of twenty
    stretches of time that hold about as many failures each. `stands_for` adds up to the failures that match."""
    stretches = [
        [(each.window, 1.0)] if each.total <= each.most else _stretches(connection, project_id, each)
        for each in asked
    ]
    rows = _failed_rows(connection, project_id, asked, [[window for window, _ in each] for each in stretches])
    read = [row for mine in rows for row in mine]
    words = condition_sets(connection, project_id, {row[7] for row in read})
    names = name_sets(connection, project_id, {row[place] for row in read for place in (8, 10)})
    return [
        FailedRows(mine, _weights(mine, parts, each.total), words, names)
        for mine, parts, each in zip(rows, stretches, asked, strict=True)
    ]


def _weights(rows: list[tuple[Any, ...]], stretches: list[tuple[Window, float]], total: int) -> list[float]:
    taken = [0] * len(stretches)
    for row in rows:
        taken[row[0]] += 1
    weights = [share / count if count else 0.0 for (_, share), count in zip(stretches, taken, strict=True)]
    scale = total / (sum(weight * count for weight, count in zip(weights, taken, strict=True)) or 1.0)
    return [weights[row[0]] * scale for row in rows]


def _stretches(connection: Connection, project_id: int, asked: FailedAsked) -> list[tuple[Window, float]]:
    """Stretches of whole days with about as many failures each, newest first, with their failures."""
    window, by_day = asked.window, asked.by_day
    if by_day is None:
        by_day = failures_by_day(bucket_counts(connection, project_id, asked.scope, window, "day"))
    days = sorted((day, failures) for day, failures in by_day.items() if failures)
    enough = sum(failures for _, failures in days) / STRATA
    stretches: list[tuple[Window, float]] = []
    start, held = None, 0
    for day, failures in days:
        start = start or day
        held += failures
        if held >= enough or day == days[-1][0]:
            since = max(start, window.since) if window.since else start
            end = day + timedelta(days=1)
            stretches.append((Window(since, min(end, window.until) if window.until else end), float(held)))
            start, held = None, 0
    return stretches[::-1]


def failures_by_day(buckets: Iterable[BucketCount]) -> dict[datetime, int]:
    by_day: dict[datetime, int] = {}
    for bucket in buckets:
        by_day[bucket.bucket_at] = by_day.get(bucket.bucket_at, 0) + bucket.failures
    return by_day


def _failed_rows(
    connection: Connection, project_id: int, asked: Sequence[FailedAsked], stretches: Sequence[Sequence[Window]]
) -> list[list[tuple[Any, ...]]]:
    found: list[list[tuple[Any, ...]]] = [[] for _ in asked]
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for side, (each, windows) in enumerate(zip(asked, stretches, strict=True)):
        if not each.total or not windows:
            continue
        matching, own = each.wanted.clauses()
        own |= {"project_id": project_id, "each": -(-each.most // len(windows)), **each.scope.parameters()}
        own |= {"since": [w.since for w in windows], "until": [w.until for w in windows]}
        source = f"""
            unnest(%(since)s::timestamptz[], %(until)s::timestamptz[]) WITH ORDINALITY AS w (since, until, place)
            CROSS JOIN LATERAL (
                SELECT e.* FROM episodes e WHERE e.project_id = %(project_id)s AND e.outcome = 'failure'
                AND {each.scope.clauses("e")}{matching}
                AND e.started_at >= coalesce(w.since, '-infinity') AND e.started_at < coalesce(w.until, 'infinity')
                ORDER BY e.started_at DESC LIMIT %(each)s
            )
        """  # noqa: S608 - names of ours
        statement = FAILED.format(side=side, source=source)
        statements.append(numbered(f"({statement} ORDER BY e.started_at DESC)", str(side)))
        parameters |= {f"{name}_{side}": value for name, value in own.items()}
    if statements:
        with driver_cursor(connection) as cursor:
            for row in cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall():
                found[row[0]].append(row[1:])
    return found


def sampled_values(
    connection: Connection,
    project_id: int,
    scope: Scope,
    window: Window,
    kind: Kind,
    wanted: CellFilter,
    most: int,
) -> Values:
    """Like `value_rollups`, from at most `most` episodes that match a filter, the newest."""
    matching, parameters = wanted.clauses()
    times, bounds = time_clauses(window)
    clauses = sql.SQL(f"{scope.clauses('e')}{matching}{times} ORDER BY e.started_at DESC LIMIT {int(most)}")
    rows = rows_where(connection, project_id, clauses, scope.parameters() | parameters | bounds)
    return values_of(episodes_in(connection, project_id, rows).measured(), kind)


def paired_episodes(
    connection: Connection,
    project_id: int,
    real: Scope,
    sim: Scope,
    window: Window,
    wanted: CellFilter,
    most: int = 5000,
) -> list[PairRow]:
    """One row a pair, newest first: its newest real attempt beside its newest sim one."""
    matching, parameters = wanted.clauses()
    times, bounds = time_clauses(window)
    parameters |= bounds | real.parameters() | {"project_id": project_id, "most": most}
    others = "" if sim.source_ids is None else " AND s.simulator_id = ANY(%(simulators)s)"
    parameters["simulators"] = None if sim.source_ids is None else list(sim.source_ids)
    statement = f"""
        WITH attempts AS (
            SELECT DISTINCT ON (pair) * FROM (
                SELECT e.* FROM episodes e WHERE e.project_id = %(project_id)s AND {real.clauses("e")}
                AND e.pair IS NOT NULL AND e.outcome IN ('success', 'failure'){matching}{times}
                ORDER BY e.started_at DESC LIMIT %(most)s
            ) newest ORDER BY pair, started_at DESC
        )
        SELECT DISTINCT ON (a.pair) a.pair, a.outcome = 'success', s.outcome = 'success', a.reward, s.reward,
               a.duration_s, s.duration_s
        FROM attempts a JOIN episodes s ON s.project_id = a.project_id AND s.pair = a.pair AND s.domain = 'sim'
             AND s.policy_id = a.policy_id AND s.task_id = a.task_id{others}
             AND s.outcome IN ('success', 'failure')
        ORDER BY a.pair, s.started_at DESC
    """  # noqa: S608
    with driver_cursor(connection) as cursor:
        return [PairRow(*row) for row in cursor.execute(sql.SQL(statement), parameters)]
