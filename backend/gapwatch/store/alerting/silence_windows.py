"""Which silences and maintenance windows hold: read from their rows, for the time of the transaction or before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, text

from gapwatch.watching.matchers import Match
from gapwatch.watching.recurrence import Recurrence, window_at, windows_between
from gapwatch.watching.working_hours import WorkingWindow

MAINTENANCE = "maintenance"


@dataclass(frozen=True)
class HoldingSilence:
    """A silence or maintenance window that holds now, and until when without a pause."""

    match: Match
    kind: str
    ends_at: datetime


@dataclass(frozen=True)
class _Row:
    match: Match
    kind: str
    starts_at: datetime
    ends_at: datetime | None
    recurrence: Recurrence | None
    now: datetime


def holding_silences(connection: Connection, project_id: int) -> list[HoldingSilence]:
    """Return what holds at the time of the transaction."""
    found = []
    for row in _rows(connection, project_id, None):
        window = window_at(row.now, row.starts_at, row.ends_at, row.recurrence)
        if window is not None:
            found.append(HoldingSilence(row.match, row.kind, window.end))
    return found


def maintenance_until(connection: Connection, project_id: int, words: Mapping[str, str | None]) -> datetime | None:
    """Return when the maintenance of a deployment ends that it is in now; None outside any."""
    ends = [
        silence.ends_at
        for silence in holding_silences(connection, project_id)
        if silence.kind == MAINTENANCE and silence.match.fits(words)
    ]
    return max(ends, default=None)


def maintenance_windows(
    connection: Connection, project_id: int, words: Mapping[str, str | None], since: datetime
) -> list[WorkingWindow]:
    """Return the maintenance of a deployment between a time and now, in order; windows may overlap.

    A robot that is quiet in them is not silent, and its silence does not count through them.
    """
    windows: list[WorkingWindow] = []
    for row in _rows(connection, project_id, since):
        if row.kind == MAINTENANCE and row.match.fits(words):
            windows += windows_between(since, row.now, row.starts_at, row.ends_at, row.recurrence)
    return sorted(windows)


def read_recurrence(stored: Any) -> Recurrence | None:
    return None if stored is None else Recurrence.model_validate(stored)


def _rows(connection: Connection, project_id: int, since: datetime | None) -> list[_Row]:
    """Those that may hold now or, with `since`, may have held after it."""
    rows = connection.execute(
        text("""
        SELECT match, kind, starts_at, ends_at, recurrence, now() AS now FROM silences
        WHERE project_id = :p AND starts_at <= now()
          AND (ends_at IS NULL OR ends_at > coalesce(CAST(:since AS timestamptz), now()))
        """),
        {"p": project_id, "since": since},
    )
    found = []
    for row in rows:
        try:
            recurrence = read_recurrence(row.recurrence)
        except ValidationError:
            # Of a time zone that this machine does not know: rather told than kept silent all week.
            continue
        found.append(
            _Row(Match.model_validate(row.match), row.kind, row.starts_at, row.ends_at, recurrence, row.now)
        )
    return found
