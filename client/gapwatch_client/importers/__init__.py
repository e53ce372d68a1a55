"""Importers of existing episodes, one module per format; this one picks the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gapwatch_client.importers import (
    lerobot_dataset,
    lerobot_eval,
    mcap_recording,
    mlflow_runs,
    tables,
)
from gapwatch_client.importers.mapping import Row
from gapwatch_client.importers.report import ImportReport

FORMATS = ("csv", "ndjson", "parquet", "lerobot-eval", "lerobot-dataset", "mcap", "mlflow")
# What to install when a library is missing.
EXTRAS = {"parquet": "parquet", "lerobot-dataset": "lerobot", "mcap": "mcap", "mlflow": "mlflow"}
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet"}
_SUFFIXES |= {".mcap": "mcap"}


class UnknownFormat(ValueError):
    """No importer can read it."""


@dataclass(frozen=True)
class Source:
    """Something to import: its name, how many episodes it has (if that is cheap to know), and how to read them."""

    name: str
    kind: str
    count: Callable[[], int | None]
    rows: Callable[[ImportReport], Iterator[Row]]


def open_source(where: str, kind: str | None = None, experiment: str | None = None) -> Source:
    """Open a file, directory or address. The format is guessed from its name and contents."""
    address = where.startswith(("http://", "https://", "mlflow:", "sqlite:", "databricks"))
    kind = kind or ("mlflow" if address else _kind_of(Path(where)))
    if kind == "mlflow":
        uri = where[len("mlflow:") :] if where.startswith("mlflow:") else where
        return Source(where, kind, lambda: None, lambda report: mlflow_runs.read_runs(uri, report, experiment))
    path = Path(where)
    if not path.exists():
        raise UnknownFormat(f"{where}: there is no such file or directory")
    if kind == "lerobot-eval":
        path = path / lerobot_eval.NAME if path.is_dir() else path
        return Source(
            *(where, kind, lambda: lerobot_eval.count_episodes(path)),
            lambda report: lerobot_eval.read_evaluation(path, report),
        )
    if kind == "lerobot-dataset":
        return Source(
            *(where, kind, lambda: lerobot_dataset.count_episodes(path)),
            lambda report: lerobot_dataset.read_dataset(path, report),
        )
    if kind == "mcap":
        return Source(where, kind, lambda: 1, lambda report: mcap_recording.read_recording(path, report))
    read = {"csv": tables.read_csv, "ndjson": tables.read_ndjson, "parquet": tables.read_parquet}[kind]
    return Source(where, kind, lambda: tables.count_rows(path, kind), lambda report: read(path, report))


def _kind_of(path: Path) -> str:
    if path.name == lerobot_eval.NAME or (path / lerobot_eval.NAME).is_file():
        return "lerobot-eval"
    if (path / lerobot_dataset.INFO).is_file():
        return "lerobot-dataset"
    if path.is_dir() and any(path.glob("*/meta.yaml")):
        return "mlflow"
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise UnknownFormat(f"{path}: not known by its name; say --format {'|'.join(FORMATS)}")
    return kind
