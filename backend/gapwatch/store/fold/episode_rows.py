"""SQL around a fold: which project is folded by whom, and the episodes of claimed work.

A project is folded by one worker at a time, so that nobody changes what a fold has read before it writes it back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.store.core.array_text import array_text
from gapwatch.store.core.content_cache import ContentCache
from gapwatch.store.core.driver import driver_cursor, named_cursor
from gapwatch.store.fold.work import Claim
from gapwatch.tally.aggregate import Episodes
from gapwatch.tally.rows import Names, Row

Content = TypeVar("Content")

# Advisory locks take two numbers; the first says what is locked.
FOLD_LOCK = 4711
# Ids of some hundred episodes, as they are stored: a project with more to fold has a transaction of its own. What
# they cost is not known before they are read; a thousand of as many new deployments take seconds.
MUCH_BYTES = 5_000

_SOURCE = "CASE e.domain WHEN 'sim' THEN e.simulator_id ELSE e.deployment_id END"
# In the order of `tally.rows.Row` without the sign: name, expression over `e`, type.
_READ = (
    ("domain", "e.domain", "text"),
    ("policy_id", "e.policy_id", "int"),
    ("task_id", "e.task_id", "int"),
    ("source_id", _SOURCE, "int"),
    ("hour", "floor(extract(epoch FROM e.started_at) / 3600)::bigint * 3600", "bigint"),
    ("robot_id", "e.robot_id", "int"),
    ("site_id", "e.site_id", "int"),
    ("stage", "e.stage", "text"),
    ("condition_set_id", "e.condition_set_id", "int"),
    ("number_names_id", "e.number_names_id", "int"),
    ("numbers", "array_send(e.numbers)", "bytea"),
    ("outcome", "e.outcome", "text"),
    ("phase", "e.failure_phase", "text"),
    ("labels", "e.failure_labels", "text[]"),
    ("category", "e.failure_category", "text"),
    ("session", "e.session", "text"),
    ("contract_id", "e.contract_id", "int"),
    ("duration_s", "e.duration_s", "float8"),
    ("reward", "e.reward", "float8"),
    ("signal_names_id", "e.signal_names_id", "int"),
    ("signals", "array_send(e.signals)", "bytea"),
    ("metric_names_id", "e.metric_names_id", "int"),
    ("metrics", "array_send(e.metrics)", "bytea"),
)
_COLUMNS = ", ".join(f"{expression} AS {name}" for name, expression, _ in _READ)
# One statement and so one view: an episode that is corrected meanwhile is in one of the tables and not in both.
# Looked up id by id (OFFSET 0 keeps the planner from joining the table instead), so that what a fold reads follows
# the new episodes: as a join, on a table without fresh statistics, each step read every stored one. The project is
# a value that the planner does not know, as in `wire`.
_CLAIMED = " UNION ALL ".join(
    f"""
    SELECT c.sign, {_COLUMNS}
    FROM unnest(%(ids)s::text[], %(revisions)s::int[], %(signs)s::int[]) AS c (id, revision, sign)
    CROSS JOIN LATERAL (
        SELECT * FROM {table}
        WHERE project_id = (SELECT %(project_id)s::int) AND id = c.id AND revision = c.revision OFFSET 0
    ) AS e
    """  # noqa: S608 - nothing of a request is in it
    for table in ("episodes", "episode_revisions")
)
_STANDING = f"SELECT 1 AS sign, {_COLUMNS} FROM episodes e WHERE e.project_id = %s"  # noqa: S608


def lock_projects(connection: Connection, kind: str, *, large: bool) -> list[int]:
    """Projects with due work that no other worker is folding, locked until the transaction ends.

    All with little work, or one with much: its transaction takes long, and whoever was in it would wait. Which of
    the two comes first is up to the caller, who takes turns, so that neither keeps the other waiting; nor does one
    that always has much keep another of its kind, since these are drawn by lot.
    """
    due = connection.execute(
        text("""
        SELECT project_id, sum(pg_column_size(episode_ids)) > :much AS is_large FROM work
        WHERE kind = :kind AND due_at <= now() GROUP BY 1 ORDER BY random()
        """),
        {"kind": kind, "much": MUCH_BYTES},
    ).all()
    alone = [[row.project_id] for row in due if row.is_large]
    together = [[row.project_id for row in due if not row.is_large]]
    for projects in (*alone, *together) if large else (*together, *alone):
        locked = connection.scalars(
            text("SELECT id FROM unnest(CAST(:ids AS int[])) AS id WHERE pg_try_advisory_xact_lock(:lock, id)"),
            {"ids": sorted(projects), "lock": FOLD_LOCK},
        ).all()
        if locked:
            return list(locked)
    return []


def lock_project(connection: Connection, project_id: int) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock, :id)"), {"lock": FOLD_LOCK, "id": project_id})


def claimed_rows(connection: Connection, project_id: int, claims: Sequence[Claim]) -> list[Row]:
    """The episodes of claimed work in the order of `tally.rows.Row`, with the sign of their work."""
    ids = array_text((id_ for claim in claims for id_ in claim.episode_ids), "text")
    revisions = array_text((claim.revision for claim in claims for _ in claim.episode_ids), "int")
    signs = array_text((claim.sign for claim in claims for _ in claim.episode_ids), "int")
    with named_cursor(connection, Row) as cursor:
        cursor.execute(
            _CLAIMED, {"ids": ids, "revisions": revisions, "signs": signs, "project_id": project_id}, prepare=False
        )
        return cursor.fetchall()


def rows_where(
    connection: Connection, project_id: int, clauses: sql.Composable, parameters: Mapping[str, Any]
) -> list[Row]:
    """Stored episodes (`e`) that satisfy the clauses, as rows of a fold."""
    statement = sql.SQL(
        f"SELECT 1 AS sign, {_COLUMNS} FROM episodes e WHERE e.project_id = %(project_id)s AND "  # noqa: S608
    )
    with named_cursor(connection, Row) as cursor:
        cursor.execute(statement + clauses, {**parameters, "project_id": project_id})
        return cursor.fetchall()


# What only values need. Episodes that differ in nothing else are counted by Postgres.
_OF_VALUES = {"duration_s", "reward", "signal_names_id", "signals", "metric_names_id", "metrics"}
# The conditions that are left out of cells come with the rows, where labels stand: a query less.
_NO_SIDE = -1
_OF_POOLED = {"policy_id": "policy_id", "task_id": "task_id", "labels": "array_agg(name)"}
_POOLED = (
    f"SELECT {_NO_SIDE}, 0, "  # noqa: S608 - text of ours
    + ", ".join(_OF_POOLED.get(name, f"NULL::{kind}") for name, _, kind in _READ)
    + " FROM pooled_conditions WHERE project_id = %(project_id)s GROUP BY policy_id, task_id"
)


def each_episodes_where(
    connection: Connection,
    project_id: int,
    clauses_of_each: Sequence[str],
    parameters: Mapping[str, Any],
    *,
    with_values: bool,
) -> list[Episodes]:
    """Stored episodes (`e`) that satisfy each of the clauses, all in one query; without values they can only
    be counted."""
    left_out = set() if with_values else _OF_VALUES
    columns = ", ".join(
        f"{f'NULL::{kind}' if name in left_out else expression} AS {name}" for name, expression, kind in _READ
    )
    keys = ", ".join(str(number) for number, (name, _, _) in enumerate(_READ, 3) if name not in _OF_VALUES)
    sign, grouped = ("1", "") if with_values else ("count(*)::int", f" GROUP BY {keys}")
    statements = [
        f"SELECT {side} AS side, {sign} AS sign, {columns} FROM episodes e"  # noqa: S608 - text of ours
        f" WHERE e.project_id = %(project_id)s AND {clauses}{grouped}"
        for side, clauses in enumerate(clauses_of_each)
    ]
    rows_of_each: list[list[Row]] = [[] for _ in statements]
    pooled: dict[tuple[int, int], frozenset[str]] = {}
    with driver_cursor(connection) as cursor:
        cursor.execute(
            sql.SQL(" UNION ALL ".join([*statements, _POOLED])), {**parameters, "project_id": project_id}
        )
        for side, count, *rest in cursor:
            row = Row(1, *rest)
            if side == _NO_SIDE:
                pooled[row.policy_id, row.task_id] = frozenset(row.labels or ())
            else:
                rows_of_each[side] += [row] * count
    every_row = [row for rows in rows_of_each for row in rows]
    names = _names_in(connection, project_id, every_row, pooled)
    return [Episodes(rows, names) for rows in rows_of_each]


def standing_rows(connection: Connection, project_id: int, at_once: int = 20_000) -> Iterator[list[Row]]:
    """Every stored episode of a project, a part at a time."""
    with named_cursor(connection, Row, name="standing") as cursor:
        cursor.execute(_STANDING, (project_id,))
        while rows := cursor.fetchmany(at_once):
            yield rows


def episodes_in(connection: Connection, project_id: int, rows: Sequence[Row]) -> Episodes:
    """Rows as what can be summed; the numbers in them are looked up first."""
    return Episodes(rows, _names_in(connection, project_id, rows, _pooled_names(connection, project_id)))


def _names_in(
    connection: Connection, project_id: int, rows: Sequence[Row], pooled: Mapping[tuple[int, int], frozenset[str]]
) -> Names:
    sets = set(map(attrgetter("condition_set_id"), rows))
    names = set().union(*(map(attrgetter(f"{kind}_names_id"), rows) for kind in ("number", "signal", "metric")))
    return Names(
        condition_sets(connection, project_id, sets),
        name_sets(connection, project_id, names),
        pooled,
    )


def condition_sets(
    connection: Connection, project_id: int, ids: Collection[int | None]
) -> dict[int, Mapping[str, Any]]:
    return _interned(connection, project_id, _SETS, ids, _CACHED_SETS)


def name_sets(connection: Connection, project_id: int, ids: Collection[int | None]) -> dict[int, Sequence[str]]:
    return _interned(connection, project_id, _NAMES, ids, _CACHED_NAMES)


_SETS = "SELECT id, levels AS content FROM condition_sets WHERE project_id = :p AND id = ANY(:ids)"
_NAMES = "SELECT id, names AS content FROM name_sets WHERE project_id = :p AND id = ANY(:ids)"
_CACHED_SETS: ContentCache[int, Mapping[str, Any]] = ContentCache(10_000)
_CACHED_NAMES: ContentCache[int, Sequence[str]] = ContentCache(10_000)


def _interned(
    connection: Connection,
    project_id: int,
    statement: str,
    ids: Collection[int | None],
    cache: ContentCache[int, Content],
) -> dict[int, Content]:
    wanted = {number for number in ids if number is not None}
    contents = cache.get(connection, project_id, wanted)
    unknown = sorted(wanted - contents.keys())
    if unknown:
        rows = connection.execute(text(statement), {"p": project_id, "ids": unknown})
        read: dict[int, Content] = {row.id: row.content for row in rows}
        cache.put(connection, project_id, read)
        contents |= read
    return contents


def _pooled_names(connection: Connection, project_id: int) -> dict[tuple[int, int], frozenset[str]]:
    """The conditions that are left out of cells, by policy and task."""
    rows = connection.execute(
        text(
            "SELECT policy_id, task_id, array_agg(name) AS names FROM pooled_conditions"
            " WHERE project_id = :p GROUP BY 1, 2"
        ),
        {"p": project_id},
    )
    return {(row.policy_id, row.task_id): frozenset(row.names) for row in rows}
