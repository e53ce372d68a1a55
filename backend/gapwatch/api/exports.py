"""Episodes as files, streamed: CSV for spreadsheets, NDJSON for programs, Parquet for data frames."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Generator, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from gapwatch.csv_cells import safe_cell
from gapwatch.doors.lanes import Lanes
from gapwatch.doors.streamed_file import StreamedFile
from gapwatch.filters import EpisodeFilter
from gapwatch.record import LATER_FIELDS
from gapwatch.store.core.database import Database
from gapwatch.store.read import episodes

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
# Of a process. Each holds a database connection until its reader has it all.
MOST_EXPORTS = 8
ROWS_AT_ONCE = 1000
PARQUET_ROWS_AT_ONCE = 5000

# Columns of one value each, by their place in the record.
_PLAIN = (
    *("id", "domain", "policy.name", "policy.version", "task", "deployment", "robot", "site"),
    *("simulator.name", "simulator.version", "stage", "started_at", "duration_s", "outcome", "reward"),
    *("failure.phase", "failure.labels", "failure.category", "failure.note"),
    *("safety.violations", "safety.interventions", "safety.overrides"),
    *("session", "pair", "received_at", "revision", "clock_skew_s"),
)
_NUMBERS = {"duration_s", "reward", "clock_skew_s", *(f.column for f in LATER_FIELDS if f.type == "float8")}
_INTEGERS = {
    *("safety.violations", "safety.interventions", "safety.overrides", "revision"),
    *(f.column for f in LATER_FIELDS if f.type == "int4"),
}
_AS_JSON = ("contract", "embedding", "links", "provenance", *(f.column for f in LATER_FIELDS))


class Exports:
    """Files of episodes, read through connections of their own: however slow readers are, pages keep theirs."""

    def __init__(self, database_url: str) -> None:
        self._database = Database(database_url, pool_size=MOST_EXPORTS, overflow=0, application="gapwatch-export")
        self._lanes = Lanes("two exports", overall=MOST_EXPORTS, at_once=2, waiting=0)

    def answer(self, project_id: int, wanted: EpisodeFilter, kind: str) -> StreamedFile:
        return StreamedFile(
            lambda: export_chunks(self._database, project_id, wanted, kind),
            name=f"episodes-{datetime.now(UTC):%Y-%m-%d}.{kind}",
            media_type=MEDIA_TYPES[kind],
            lanes=self._lanes,
            project_id=project_id,
        )

    def close(self) -> None:
        self._database.close()


def export_chunks(
    database: Database, project_id: int, wanted: EpisodeFilter, kind: str
) -> Generator[bytes, None, None]:
    with database.transaction(project_id) as connection:
        names = episodes.known_names(connection, project_id)
        records = episodes.stream_episodes(connection, project_id, wanted)
        if kind == "ndjson":
            yield from _ndjson(records)
        elif kind == "csv":
            yield from _csv(records, _columns(names))
        else:
            yield from _parquet(records, names)


def _ndjson(records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for rows in _batches(records, ROWS_AT_ONCE):
        yield "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _csv(records: Iterable[dict[str, Any]], columns: list[str]) -> Iterator[bytes]:
    def text(rows: Iterable[Iterable[Any]]) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer).writerows(rows)
        return buffer.getvalue().encode()

    yield text([[safe_cell(column) for column in columns]])
    for rows in _batches(records, ROWS_AT_ONCE):
        yield text([safe_cell(_value(row, column)) for column in columns] for row in rows)


def _parquet(records: Iterable[dict[str, Any]], names: dict[str, list[str]]) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _columns(names)
    kinds = dict.fromkeys(columns, pa.string())
    kinds |= dict.fromkeys(_INTEGERS, pa.int64())
    kinds |= dict.fromkeys(_NUMBERS, pa.float64())
    kinds |= {column: pa.float64() for column in columns if column.startswith(("signals.", "metrics."))}
    schema = pa.schema([(column, kinds[column]) for column in columns])
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, schema, compression="zstd") as writer:
        for rows in _batches(records, PARQUET_ROWS_AT_ONCE):
            arrays = {
                column: [_typed(_value(row, column), schema.field(column).type) for row in rows]
                for column in columns
            }
            writer.write_table(pa.table(arrays, schema=schema))
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _columns(names: dict[str, list[str]]) -> list[str]:
    named = [f"{kind}s.{name}" for kind in ("condition", "signal", "metric") for name in names[kind]]
    return [*_PLAIN, *named, *_AS_JSON]


def _batches(records: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    rows = iter(records)
    while batch := list(islice(rows, size)):
        yield batch


def _value(record: dict[str, Any], column: str) -> Any:
    place, dot, name = column.partition(".")
    value = record.get(place)
    if dot:
        value = value.get(name) if isinstance(value, dict) else None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _typed(value: Any, kind: Any) -> Any:
    """Conditions may be text in one episode and a number in another; their column is text."""
    if value is None or str(kind) != "string":
        return value
    return value if isinstance(value, str) else json.dumps(value)
