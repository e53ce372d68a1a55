"""The two exchanges with Postgres that every stored episode goes through, as close to the wire as psycopg lets us.

Known ids are looked up by one prepared statement. COPY and the work row are one message of several statements,
which Postgres runs as one transaction ("Multiple Statements in a Simple Query"): an episode is stored and due for
folding together or not at all, and durable once the message is answered.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import AsyncConnection, errors, pq
from psycopg.abc import PQGen
from psycopg.generators import copy_to, execute, fetch_many
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Wait

from gapwatch.store.core.array_text import array_text

# What stands before and after the rows of a binary COPY.
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"

# libpq grows its buffer by the size of a chunk.
_CHUNK_BYTES = 128 * 1024
_TEXT_ARRAY_OID, _INT4_OID = 1009, 23
_PROBE_NAME = b"known_episodes"
# Id by id, and with a project that the planner does not see: of a project that is newer than the statistics it
# would expect hardly a row, and read all of them for each id instead of using the key.
_PROBE = b"""
SELECT e.id, e.content_hash, false FROM unnest($2) AS sent (id) CROSS JOIN LATERAL (
    SELECT id, content_hash FROM episodes WHERE project_id = (SELECT $1) AND id = sent.id OFFSET 0) AS e
UNION ALL
SELECT r.id, r.content_hash, true FROM unnest($2) AS sent (id) CROSS JOIN LATERAL (
    SELECT id, content_hash FROM episode_revisions
    WHERE project_id = (SELECT $1) AND id = sent.id AND ended_by = 'deletion' OFFSET 0) AS r
"""


async def prepare_probe(connection: AsyncConnection) -> None:
    """Prepare the statement of `known_episodes`; once a connection."""
    await connection.wait(_prepare(connection.pgconn))


async def known_episodes(
    connection: AsyncConnection, project_id: int, ids: Sequence[str]
) -> list[tuple[str, bytes, bool]]:
    """Return id, content hash and whether it was deleted, for those ids that are taken."""
    parameters = [str(project_id).encode(), array_text(ids, "text").encode()]
    async with connection.lock:
        result = await connection.wait(_probe(connection.pgconn, parameters))
    return [
        (_value(result, row, 0).decode(), _value(result, row, 1), _value(result, row, 2) == b"\x01")
        for row in range(result.ntuples)
    ]


async def copy_and_run(connection: AsyncConnection, copy: str, data: bytes, then: str) -> None:
    """COPY the data and run the statements behind it in one transaction; committed on return."""
    async with connection.lock:
        await connection.wait(_copy(connection.pgconn, f"{copy}; {then}".encode(), data))


def quote_texts(connection: AsyncConnection, texts: Sequence[str]) -> str:
    """Return an array of texts as a literal of SQL."""
    return pq.Escaping(connection.pgconn).escape_literal(array_text(texts, "text").encode()).decode()


def _prepare(pgconn: PGconn) -> PQGen[None]:
    pgconn.send_prepare(_PROBE_NAME, _PROBE, [_INT4_OID, _TEXT_ARRAY_OID])
    _checked((yield from execute(pgconn)))


def _probe(pgconn: PGconn, parameters: Sequence[bytes]) -> PQGen[PGresult]:
    pgconn.send_query_prepared(
        _PROBE_NAME,
        parameters,
        result_format=pq.Format.BINARY,
    )
    return _checked((yield from execute(pgconn)))


def _copy(pgconn: PGconn, query: bytes, data: bytes) -> PQGen[None]:
    pgconn.send_query(query)
    _checked((yield from execute(pgconn)))
    for start in range(0, len(data), _CHUNK_BYTES):
        yield from copy_to(pgconn, data[start : start + _CHUNK_BYTES], flush=False)
    while pgconn.put_copy_end() == 0:
        yield Wait.W
    while pgconn.flush():
        yield Wait.W
    _checked((yield from fetch_many(pgconn)))


def _checked(results: list[PGresult]) -> PGresult:
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result, encoding="utf-8")
    if not results:
        raise errors.OperationalError("the connection ended without an answer")
    return results[-1]


def _value(result: PGresult, row: int, column: int) -> bytes:
    value = result.get_value(row, column)
    assert value is not None  # noqa: S101 - none of the columns is ever null
    return value
