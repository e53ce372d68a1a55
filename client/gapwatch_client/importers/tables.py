"""Tables with one episode per row: CSV, NDJSON and Parquet, including the service's own exports."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gapwatch_client.importers.mapping import Row
from gapwatch_client.importers.report import ImportReport

_WHOLE = {"contract", "embedding"}


def read_csv(path: Path, report: ImportReport) -> Iterator[Row]:
    identity = _Identity("csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        sample = file.read(64 * 1024)
        file.seek(0)
        try:
            dialect: Any = csv.Sniffer().sniff(sample.splitlines()[0] if sample else ",", delimiters=",;\t|")
        except csv.Error:
            dialect = csv.excel
        reader = csv.reader(file, delimiter=dialect.delimiter)
        header = next(reader, [])
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                report.skipped("the line has another number of cells than the first")
                continue
            yield Row(identity.after(cells), dict(zip(header, cells)))


def read_ndjson(path: Path, report: ImportReport) -> Iterator[Row]:
    identity = _Identity("ndjson")
    with path.open("rb") as file:
        for line in file:
            if line.isspace():
                continue
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            if not isinstance(value, dict):
                report.skipped("the line is no JSON object")
                continue
            yield Row(identity.after(value), flatten(value))


def read_parquet(path: Path, report: ImportReport) -> Iterator[Row]:
    import pyarrow.parquet as pq

    identity = _Identity("parquet")
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=2000):
            for value in batch.to_pylist():
                yield Row(identity.after(value), flatten(value))


def count_rows(path: Path, kind: str) -> int | None:
    """Number of episodes, for the progress display."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        return int(pq.read_metadata(path).num_rows)
    with path.open("rb") as file:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    return lines if kind == "ndjson" else max(lines - 1, 0)


def flatten(value: dict[str, Any]) -> dict[str, Any]:
    """Flatten nested objects to dotted names, like columns: {"policy": {"name": …}} → policy.name."""
    flat: dict[str, Any] = {}
    for name, member in value.items():
        if isinstance(member, dict) and name not in _WHOLE:
            flat.update({f"{name}.{inner}": deep for inner, deep in flatten(member).items()})
        else:
            flat[name] = member
    return flat


class _Identity:
    """A name for each row that depends on it and on all rows before it.

    So two equal rows differ, and a file that has grown gives its first rows the same names, without any state.
    """

    def __init__(self, kind: str) -> None:
        self._running = hashlib.sha256(kind.encode())

    def after(self, row: Any) -> str:
        self._running.update(json.dumps(row, default=str).encode())
        return self._running.hexdigest()
