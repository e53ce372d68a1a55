"""Sums by hour and day as the rows of each rollup table: hours, days and months, keyed by content."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from gapwatch.tally.sums import (
    DAY_S,
    CellContent,
    Counts,
    EpisodeGroup,
    Measured,
    Signature,
    Sums,
    month_of,
)
from gapwatch.tally.values import NamedValues, add_values


class BucketKey(NamedTuple):
    """An hour, day or month of a scope; `bucket_at` is its start in seconds since 1970."""

    domain: str
    policy_id: int
    task_id: int
    source_id: int
    tier: str
    bucket_at: int


# Plain tuples: a fold makes some for nearly every episode, and a NamedTuple takes six times as long to make.
CellKey: TypeAlias = tuple[BucketKey, CellContent]
FailureKey: TypeAlias = tuple[BucketKey, CellContent, Signature]
ContractKey: TypeAlias = tuple[BucketKey, int]
# Group, day, robot and site; 0 where an episode names none.
PlaceKey: TypeAlias = tuple[EpisodeGroup, int, int, int]
# Group, day and session.
SessionKey: TypeAlias = tuple[EpisodeGroup, int, str]


class ValueKey(NamedTuple):
    domain: str
    policy_id: int
    task_id: int
    source_id: int
    kind: str
    outcome: str
    tier: str
    bucket_at: int


K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class CountRows:
    """What is added to each table of counts."""

    counts: dict[BucketKey, Counts] = field(default_factory=dict)
    cells: dict[CellKey, Counts] = field(default_factory=dict)
    places: dict[PlaceKey, Counts] = field(default_factory=dict)
    failures: dict[FailureKey, Counts] = field(default_factory=dict)
    sessions: dict[SessionKey, Counts] = field(default_factory=dict)
    contracts: dict[ContractKey, Counts] = field(default_factory=dict)


def count_rows(sums: Sums) -> CountRows:
    rows = CountRows()
    for (scope, hour), counts in sums.hours.items():
        for tier, bucket_at in (("hour", hour), *_tiers(hour - hour % DAY_S)):
            _add(rows.counts, BucketKey(*scope, tier, bucket_at), counts)
    for (scope, day, cell), counts in sums.cells.items():
        in_day, in_month = _buckets(scope, day)
        rows.cells[in_day, cell] = counts
        _add(rows.cells, (in_month, cell), counts)
        if scope.domain != "sim":
            _add(rows.places, (scope, day, cell.robot_id or 0, cell.site_id or 0), counts)
    for (scope, day, cell, signature), count in sums.failures.items():
        in_day, in_month = _buckets(scope, day)
        rows.failures[in_day, cell, signature] = [count]
        _add(rows.failures, (in_month, cell, signature), [count])
    for (scope, day, session), counts in sums.sessions.items():
        _add(rows.sessions, (scope, day, session), counts)
    for (scope, day, contract), count in sums.contracts.items():
        for bucket in _buckets(scope, day):
            _add(rows.contracts, (bucket, contract), [count])
    return CountRows(
        _filled(rows.counts),
        _filled(rows.cells),
        _filled(rows.places),
        _filled(rows.failures),
        _filled(rows.sessions),
        _filled(rows.contracts),
    )


def value_rows(values: Measured) -> Iterator[dict[ValueKey, NamedValues]]:
    """Yield moments and bins by name; the days and months of one scope, kind and outcome at a time, because all of
    them together take several times the memory of the sums.
    """
    groups: dict[tuple[EpisodeGroup, str, str], list[int]] = {}
    for scope, day, kind, outcome in values:
        groups.setdefault((scope, kind, outcome), []).append(day)
    for (scope, kind, outcome), days in groups.items():
        rows: dict[ValueKey, NamedValues] = {}
        for day in days:
            for tier, bucket_at in _tiers(day):
                into = rows.setdefault(ValueKey(*scope, kind, outcome, tier, bucket_at), {})
                add_values(into, values[scope, day, kind, outcome])
        yield rows


def _tiers(day: int) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("day", day), ("month", month_of(day))


@lru_cache(maxsize=4096)
def _buckets(scope: EpisodeGroup, day: int) -> tuple[BucketKey, BucketKey]:
    return BucketKey(*scope, "day", day), BucketKey(*scope, "month", month_of(day))


def _add(into: dict[K, Counts], key: K, counts: Counts) -> None:
    existing = into.get(key)
    if existing is None:
        into[key] = list(counts)
        return
    for index, count in enumerate(counts):
        existing[index] += count


def _filled(rows: dict[K, Counts]) -> dict[K, Counts]:
    return {key: counts for key, counts in rows.items() if any(counts)}
