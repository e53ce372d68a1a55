"""An import from its first row to its last answer: in batches, with progress, resumable."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gapwatch_client.delivery import Delivery, Postponed, deliver
from gapwatch_client.encoding import encode
from gapwatch_client.importers import Source
from gapwatch_client.importers.mapping import Mapper, Rules
from gapwatch_client.importers.report import ImportReport
from gapwatch_client.transport import Transport

BATCH = 500
KNOWN_CONFLICT = "episode-conflict"


class Interrupted(Exception):
    """The service was unreachable for too long. Calling again resumes from here."""


@dataclass
class Result:
    """How the rows of one source ended; `already` were sent by an earlier, interrupted call."""

    source: str
    rows: int = 0
    already: int = 0
    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refused_records: int = 0
    report: ImportReport = field(default_factory=ImportReport)

    @property
    def is_clean(self) -> bool:
        return not self.refused_records and not self.report.episodes_skipped


class Checkpoint:
    """How many rows of a source were answered, for this service, key and set of rules."""

    def __init__(self, directory: Path, *parts: str) -> None:
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
        self._path = directory / "imports" / f"{name}.json"

    def read(self) -> int:
        with contextlib.suppress(OSError, ValueError, TypeError):
            return int(json.loads(self._path.read_text())["rows"])
        return 0

    def write(self, rows: int) -> None:
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps({"rows": rows}))
            fresh.replace(self._path)

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()


def import_source(
    source: Source,
    rules: Rules,
    settings: dict[str, Any],
    transport: Transport,
    checkpoint: Checkpoint,
    *,
    progress: Callable[[int], None] = lambda rows: None,
    patience_s: float = 600.0,
    dry_run: bool = False,
) -> Result:
    """Send every episode of a source. Ids come from the content, so repeating it stores nothing twice."""
    result = Result(source.name)
    mapper = Mapper(rules, result.report, settings)
    done = 0 if dry_run else checkpoint.read()
    for payloads, rows in _batches(source, mapper, result.report, done):
        if payloads and not dry_run:
            _count(result, _deliver(transport, payloads, patience_s))
        result.rows = rows
        if not dry_run:
            checkpoint.write(rows)
        progress(rows)
    result.already = min(done, result.rows)
    # Complete: the next call sends everything again and gets duplicates back.
    if not dry_run:
        checkpoint.forget()
    return result


def _batches(source: Source, mapper: Mapper, report: ImportReport, done: int) -> Iterator[tuple[list[bytes], int]]:
    """Encoded episodes, with the number of rows read so far."""
    payloads: list[bytes] = []
    rows = 0
    for row in source.rows(report):
        rows += 1
        if rows <= done:
            continue
        record = mapper.record(row)
        if record is not None:
            payloads.append(encode(record))
        if len(payloads) >= BATCH or rows % (BATCH * 4) == 0:
            yield payloads, rows
            payloads = []
    yield payloads, rows


def _deliver(transport: Transport, payloads: list[bytes], patience_s: float) -> Delivery:
    deadline = time.monotonic() + patience_s
    pause_s = 0.5
    while True:
        try:
            return deliver(transport, payloads)
        except Postponed as reason:
            wait_s = pause_s if reason.wait_s is None else reason.wait_s
            if reason.needs_attention or time.monotonic() + wait_s > deadline:
                raise Interrupted(str(reason)) from reason
            time.sleep(wait_s)
            pause_s = min(pause_s * 2, 30.0)


def _count(result: Result, delivery: Delivery) -> None:
    result.accepted += delivery.accepted
    result.duplicates += delivery.duplicates
    for _, reasons in delivery.refused:
        if reasons[0].get("code") == KNOWN_CONFLICT:
            result.conflicts += 1
            continue
        result.refused_records += 1
        result.refused.update(f"{reason.get('pointer') or '/'}: {reason.get('message')}" for reason in reasons)
