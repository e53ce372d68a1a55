"""SQL of cells and signatures: interned contents, and pooling a condition that has too many levels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec
from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.store.core.array_text import array_text
from gapwatch.store.core.driver import driver_cursor, named_cursor
from gapwatch.tally.sums import CellContent, Signature, without

Keys = tuple[tuple[str, str], ...]
Content = TypeVar("Content", CellContent, Signature)


_SCOPE = "domain, policy_id, task_id, source_id, tier, bucket_at"
_PLACE = "project_id = :p AND domain IN ('real', 'shadow', 'sim') AND policy_id = :policy AND task_id = :task"
_MAP = "unnest(CAST(:old AS int[]), CAST(:new AS int[])) AS m (old, new)"


class CellRow(NamedTuple):
    """The hash of a cell, and what is hashed; `levels` as JSON."""

    content_hash: bytes
    robot_id: int | None
    site_id: int | None
    stage: str | None
    levels: str


class SignatureRow(NamedTuple):
    """The hash of a signature, and what is hashed; `labels` as JSON."""

    content_hash: bytes
    phase: str | None
    labels: str
    category: str | None


_CELL_COLUMNS: Keys = (
    *(("content_hash", "bytea"), ("robot_id", "int"), ("site_id", "int"), ("stage", "text")),
    ("levels", "jsonb"),
)
_SIGNATURE_COLUMNS: Keys = (
    *(("content_hash", "bytea"), ("phase", "text"), ("labels", "jsonb")),
    ("category", "text"),
)


def cell_row(content: CellContent) -> CellRow:
    robot, site, stage, levels = content
    body = msgspec.json.encode([robot, site, stage, levels])
    return CellRow(_digest(body), robot, site, stage, msgspec.json.encode(dict(levels)).decode())


def signature_row(content: Signature) -> SignatureRow:
    phase, labels, category = content
    body = msgspec.json.encode([phase, labels, category])
    return SignatureRow(_digest(body), phase, msgspec.json.encode(labels).decode(), category)


def intern_cells(
    connection: Connection, project_id: int, contents: Iterable[CellContent]
) -> dict[CellContent, int]:
    """Return the numbers of cells, made where absent."""
    rows = {content: cell_row(content) for content in contents}
    return _intern(connection, project_id, "cells", _CELL_COLUMNS, rows)


def intern_signatures(
    connection: Connection, project_id: int, contents: Iterable[Signature]
) -> dict[Signature, int]:
    rows = {content: signature_row(content) for content in contents}
    return _intern(connection, project_id, "signatures", _SIGNATURE_COLUMNS, rows)


def _intern(
    connection: Connection,
    project_id: int,
    table: str,
    columns: Keys,
    rows: Mapping[Content, CellRow] | Mapping[Content, SignatureRow],
) -> dict[Content, int]:
    if not rows:
        return {}
    hashes = array_text((row.content_hash for row in rows.values()), "bytea")
    with driver_cursor(connection) as cursor:
        query = sql.SQL(
            "SELECT content_hash, id FROM {} WHERE project_id = %s AND content_hash = ANY(%s::bytea[])"
        ).format(sql.Identifier(table))
        known = dict(cursor.execute(query, (project_id, hashes)).fetchall())
        fresh = sorted(
            (row for row in rows.values() if row.content_hash not in known), key=lambda row: row.content_hash
        )
        if fresh:
            names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
            casts = sql.SQL(", ").join(sql.SQL(f"%s::{kind}[]") for _, kind in columns)
            # Labels are text[], and unnest() would flatten an array of arrays: they travel as JSON.
            values = sql.SQL(", ").join(
                sql.SQL("ARRAY(SELECT jsonb_array_elements_text(labels))")
                if name == "labels"
                else sql.Identifier(name)
                for name, _ in columns
            )
            insert = sql.SQL(
                "INSERT INTO {table} (project_id, {names}) SELECT %s, {values} FROM unnest({casts}) AS u ({names})"
                " ON CONFLICT DO NOTHING"
            ).format(table=sql.Identifier(table), names=names, values=values, casts=casts)
            arrays: list[str] = [
                array_text(column, kind)
                for (_, kind), column in zip(columns, zip(*fresh, strict=True), strict=True)
            ]
            cursor.execute(insert, (project_id, *arrays))
            known |= dict(cursor.execute(query, (project_id, hashes)).fetchall())
    return {content: known[row.content_hash] for content, row in rows.items()}


def cell_contents(connection: Connection, project_id: int, policy_id: int, task_id: int) -> set[CellContent]:
    """The cells in which a policy version's task was counted."""
    with named_cursor(connection, _Stored) as cursor:
        rows = cursor.execute(_CONTENTS, {"p": project_id, "policy": policy_id, "task": task_id}).fetchall()
    return {
        CellContent(row.robot_id, row.site_id, row.stage, tuple(sorted(msgspec.json.decode(row.levels).items())))
        for row in rows
    }


class _Stored(NamedTuple):
    robot_id: int | None
    site_id: int | None
    stage: str | None
    levels: str


_CONTENTS = """
SELECT robot_id, site_id, stage, levels::text AS levels FROM cells WHERE project_id = %(p)s AND id = ANY(ARRAY(
    SELECT DISTINCT cell_id FROM rollup_cells WHERE project_id = %(p)s AND domain IN ('real', 'shadow', 'sim')
    AND policy_id = %(policy)s AND task_id = %(task)s AND tier = 'month'))
"""


def pool(connection: Connection, project_id: int, policy_id: int, task_id: int, levels: Mapping[str, int]) -> None:
    """Leave conditions (with how many levels they have) out of the cells of a policy version's task; counts of
    cells that become one are added."""
    place = {"p": project_id, "policy": policy_id, "task": task_id}
    connection.execute(
        text(
            "INSERT INTO pooled_conditions (project_id, policy_id, task_id, name, levels)"
            " VALUES (:p, :policy, :task, :name, :levels)"
        ),
        [place | {"name": name, "levels": count} for name, count in sorted(levels.items())],
    )
    rows = connection.execute(
        text(
            "SELECT c.id, c.robot_id, c.site_id, c.stage, c.levels FROM cells c"  # noqa: S608
            " WHERE c.project_id = :p AND c.levels ?| :names AND c.id IN"
            f" (SELECT cell_id FROM rollup_cells WHERE {_PLACE})"
        ),
        place | {"names": list(levels)},
    )
    merged = {
        row.id: without(
            levels, CellContent(row.robot_id, row.site_id, row.stage, tuple(sorted(row.levels.items())))
        )
        for row in rows
    }
    if not merged:
        return
    numbers = intern_cells(connection, project_id, set(merged.values()))
    moved = place | {
        "old": array_text(merged, "int"),
        "new": array_text((numbers[content] for content in merged.values()), "int"),
    }
    for statement in _MERGE:
        connection.execute(text(statement), moved)


_MERGE = (
    f"""
    INSERT INTO rollup_cells AS r (project_id, {_SCOPE}, cell_id, successes, failures, aborted, abandoned)
    SELECT project_id, {_SCOPE}, m.new, sum(successes), sum(failures), sum(aborted), sum(abandoned)
    FROM rollup_cells JOIN {_MAP} ON cell_id = m.old WHERE {_PLACE}
    GROUP BY project_id, {_SCOPE}, m.new
    ON CONFLICT (project_id, {_SCOPE}, cell_id) DO UPDATE SET
        successes = r.successes + excluded.successes, failures = r.failures + excluded.failures,
        aborted = r.aborted + excluded.aborted, abandoned = r.abandoned + excluded.abandoned
    """,  # noqa: S608 - nothing of a request is in it
    f"""
    INSERT INTO rollup_failures AS r (project_id, {_SCOPE}, cell_id, signature_id, failures)
    SELECT project_id, {_SCOPE}, m.new, signature_id, sum(failures)
    FROM rollup_failures JOIN {_MAP} ON cell_id = m.old WHERE {_PLACE}
    GROUP BY project_id, {_SCOPE}, m.new, signature_id
    ON CONFLICT (project_id, {_SCOPE}, cell_id, signature_id) DO UPDATE SET
        failures = r.failures + excluded.failures
    """,  # noqa: S608
    f"DELETE FROM rollup_cells WHERE {_PLACE} AND cell_id = ANY(CAST(:old AS int[]))",  # noqa: S608
    f"DELETE FROM rollup_failures WHERE {_PLACE} AND cell_id = ANY(CAST(:old AS int[]))",  # noqa: S608
)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()
