"""Single episodes of a side where counts do not say enough: failures with their evidence, pairs, filtered values.

Bounded in number, so that what is read does not grow with what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from psycopg import sql
from sqlalchemy import Connection

from gapwatch.store.core.driver import named_cursor
from gapwatch.store.fold.episode_rows import (
    condition_sets,
    episodes_in,
    name_sets,
    rows_where,
)
from gapwatch.store.read.bucket_counts import BucketCount, bucket_counts
from gapwatch.store.read.failed_episodes import SampledRow, SampledRows
from gapwatch.store.read.rollup_counts import (
    Kind,
    Values,
    by_side,
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


class PairRow(NamedTuple):
    """A real and a sim attempt from the same initial state."""

    pair: str
    real_success: bool
    sim_success: bool
    real_reward: float | None
    sim_reward: float | None
    real_duration_s: float | None
    sim_duration_s: float | None
    # Of the real attempt.
    robot_id: int | None = None
    site_id: int | None = None
    session: str | None = None


FAILED = """
SELECT {side} AS side, (w.number - 1)::int AS stretch, e.id, e.session, e.failure_phase AS phase,
       e.failure_labels AS labels, e.failure_category AS category, e.condition_set_id, e.number_names_id,
       array_send(e.numbers) AS numbers, e.signal_names_id, array_send(e.signals) AS signals,
       e.contract_id
FROM {source} e
"""


@dataclass(frozen=True)
class EpisodeSelection:
    """Which episodes to read: of `total` that match, at most `most`. `by_day`: how many a day, where known."""

    scope: Scope
    window: Window
    wanted: CellFilter
    most: int
    total: int
    by_day: Mapping[datetime, int] | None = None
    outcome: Literal["failure", "success"] = "failure"


def failed_episodes(
    connection: Connection, project_id: int, scope: Scope, window: Window, wanted: CellFilter, most: int
) -> SampledRows:
    cells = cell_counts(connection, project_id, scope, window)
    total = sum(count.failures for count in cells if wanted.matches(count.cell))
    return each_sampled_episodes(connection, project_id, [EpisodeSelection(scope, window, wanted, most, total)])[0]


def each_sampled_episodes(
    connection: Connection, project_id: int, selections: Sequence[EpisodeSelection]
) -> list[SampledRows]:
    """Return all failures, or successes, of each selection, newest first.

    Where there are more than `most`: the newest of each of twenty stretches of time that hold about as many
    each. `stands_for` adds up to those that match.
    """
    stretches_of_each = [
        [(selection.window, 1.0)]
        if selection.total <= selection.most
        else _stretches(connection, project_id, selection)
        for selection in selections
    ]
    windows = [[window for window, _ in stretches] for stretches in stretches_of_each]
    rows_of_each = _failed_rows(connection, project_id, selections, windows)
    everything = [row for rows in rows_of_each for row in rows]
    words = condition_sets(connection, project_id, {row.condition_set_id for row in everything})
    names = name_sets(
        connection,
        project_id,
        {row.number_names_id for row in everything} | {row.signal_names_id for row in everything},
    )
    return [
        SampledRows(rows, _weights(rows, stretches, selection.total), words, names)
        for rows, stretches, selection in zip(rows_of_each, stretches_of_each, selections, strict=True)
    ]


def _weights(rows: list[SampledRow], stretches: list[tuple[Window, float]], total: int) -> list[float]:
    taken = [0] * len(stretches)
    for row in rows:
        taken[row.stretch] += 1
    weights = [share / count if count else 0.0 for (_, share), count in zip(stretches, taken, strict=True)]
    scale = total / (sum(weight * count for weight, count in zip(weights, taken, strict=True)) or 1.0)
    return [weights[row.stretch] * scale for row in rows]


def _stretches(connection: Connection, project_id: int, selection: EpisodeSelection) -> list[tuple[Window, float]]:
    """Return stretches of whole days with about as many failures each, newest first, with their failures."""
    window, by_day = selection.window, selection.by_day
    if by_day is None:
        buckets = bucket_counts(connection, project_id, selection.scope, window, "day")
        by_day = outcomes_by_day(buckets, selection.outcome)
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


def outcomes_by_day(
    buckets: Iterable[BucketCount], outcome: Literal["failure", "success"] = "failure"
) -> dict[datetime, int]:
    by_day: dict[datetime, int] = {}
    for bucket in buckets:
        count = bucket.failures if outcome == "failure" else bucket.successes
        by_day[bucket.bucket_at] = by_day.get(bucket.bucket_at, 0) + count
    return by_day


def _failed_rows(
    connection: Connection,
    project_id: int,
    selections: Sequence[EpisodeSelection],
    windows_of_each: Sequence[Sequence[Window]],
) -> list[list[SampledRow]]:
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for side, (selection, windows) in enumerate(zip(selections, windows_of_each, strict=True)):
        if not selection.total or not windows:
            continue
        matching, own = selection.wanted.clauses()
        own |= {"project_id": project_id, "outcome": selection.outcome, "each": -(-selection.most // len(windows))}
        own |= selection.scope.parameters()
        # An open end is written out here: `coalesce` might leak, and row security would keep it out of the index.
        own |= {
            "since": [w.since.isoformat() if w.since else "-infinity" for w in windows],
            "until": [w.until.isoformat() if w.until else "infinity" for w in windows],
        }
        source = f"""
            unnest(%(since)s::timestamptz[], %(until)s::timestamptz[]) WITH ORDINALITY AS w (since, until, number)
            CROSS JOIN LATERAL (
                SELECT e.* FROM episodes e WHERE e.project_id = %(project_id)s AND e.outcome = %(outcome)s
                AND {selection.scope.clauses("e")}{matching}
                AND e.started_at >= w.since AND e.started_at < w.until
                ORDER BY e.started_at DESC LIMIT %(each)s
            )
        """  # noqa: S608 - names of ours
        statement = FAILED.format(side=side, source=source)
        statements.append(numbered(f"({statement} ORDER BY e.started_at DESC)", str(side)))
        parameters |= {f"{name}_{side}": value for name, value in own.items()}
    if not statements:
        return [[] for _ in selections]
    with named_cursor(connection, SampledRow) as cursor:
        rows = cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()
    return by_side(rows, len(selections))


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


class PlacedValue(NamedTuple):
    """A metric of one episode, and where that comes from."""

    side: int
    value: float
    robot_id: int | None
    site_id: int | None
    session: str | None


_PLACED_VALUES = """
(SELECT {side} AS side, n.value, n.robot_id, n.site_id, n.session FROM (
    SELECT e.robot_id, e.site_id, e.session, e.started_at, {value} AS value FROM episodes e
    WHERE e.project_id = %(project_id)s AND e.outcome IN ('success', 'failure') AND {clauses}
    ORDER BY e.started_at DESC LIMIT %(most)s) n
 WHERE n.value IS NOT NULL)
"""
_OF_METRICS = """e.metrics[(SELECT array_position(m.names, %(metric)s) FROM name_sets m
                 WHERE m.project_id = e.project_id AND m.id = e.metric_names_id)]"""


def each_placed_values(
    connection: Connection,
    project_id: int,
    selections: Sequence[tuple[Scope, Window, CellFilter]],
    metric: str,
    most: int,
) -> list[list[PlacedValue]]:
    """Return a metric of the newest episodes of each selection with robot, site and session, in one query."""
    value = f"e.{metric}" if metric in ("reward", "duration_s") else _OF_METRICS
    statements: list[str] = []
    parameters: dict[str, Any] = {}
    for side, (scope, window, wanted) in enumerate(selections):
        matching, own = wanted.clauses()
        times, bounds = time_clauses(window)
        clauses = scope.clauses("e") + matching + times
        statements.append(numbered(_PLACED_VALUES.format(side=side, value=value, clauses=clauses), str(side)))
        own |= bounds | scope.parameters() | {"project_id": project_id, "most": most, "metric": metric}
        parameters |= {f"{name}_{side}": given for name, given in own.items()}
    with named_cursor(connection, PlacedValue) as cursor:
        rows = cursor.execute(sql.SQL(" UNION ALL ".join(statements)), parameters).fetchall()
    return by_side(rows, len(selections))


def paired_episodes(
    connection: Connection,
    project_id: int,
    real: Scope,
    sim: Scope,
    window: Window,
    wanted: CellFilter,
    most: int = 5000,
) -> list[PairRow]:
    """Return one row a pair, newest first: its newest real attempt beside its newest sim one."""
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
        SELECT DISTINCT ON (a.pair) a.pair, a.outcome = 'success' AS real_success,
               s.outcome = 'success' AS sim_success, a.reward AS real_reward, s.reward AS sim_reward,
               a.duration_s AS real_duration_s, s.duration_s AS sim_duration_s,
               a.robot_id, a.site_id, a.session
        FROM attempts a JOIN episodes s ON s.project_id = a.project_id AND s.pair = a.pair AND s.domain = 'sim'
             AND s.policy_id = a.policy_id AND s.task_id = a.task_id{others}
             AND s.outcome IN ('success', 'failure')
        ORDER BY a.pair, s.started_at DESC
    """  # noqa: S608
    with named_cursor(connection, PairRow) as cursor:
        return cursor.execute(sql.SQL(statement), parameters).fetchall()
