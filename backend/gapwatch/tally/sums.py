"""What a number of episodes adds to the rollups: plain integers in dictionaries, the same in any order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeAlias, TypeVar

# (domain, policy, task, source)
Scope: TypeAlias = tuple[str, int, int, int]
# (robot, site, stage, ((condition, level), …))
CellContent: TypeAlias = tuple[int | None, int | None, str | None, tuple[tuple[str, str], ...]]
# (phase, labels, category)
SignatureContent: TypeAlias = tuple[str | None, tuple[str, ...], str | None]
Counts: TypeAlias = list[int]

Key = TypeVar("Key", bound=Hashable)

DAY_S = 86400


@lru_cache(maxsize=4096)
def month_of(day: int) -> int:
    """The start of the month of a day; both in seconds since 1970."""
    at = datetime.fromtimestamp(day, UTC)
    return int(at.replace(day=1).timestamp())


@dataclass
class ValueSum:
    """Moments in whole steps, and bins; `bins[i]` counts values in log-bin i, `negative` the same of −x."""

    n: int = 0
    total: int = 0
    total_sq: int = 0
    zero: int = 0
    bins: dict[int, int] = field(default_factory=dict)
    negative: dict[int, int] = field(default_factory=dict)

    def add(self, other: ValueSum, sign: int = 1) -> None:
        self.n += sign * other.n
        self.total += sign * other.total
        self.total_sq += sign * other.total_sq
        self.zero += sign * other.zero
        for mine, theirs in ((self.bins, other.bins), (self.negative, other.negative)):
            for index, count in theirs.items():
                mine[index] = mine.get(index, 0) + sign * count

    @property
    def is_empty(self) -> bool:
        self.tidy()
        return not (self.n or self.total or self.total_sq or self.zero or self.bins or self.negative)

    def tidy(self) -> None:
        """Drop empty bins and put the others in order, so that equal sums are equal when written down."""
        self.bins = {index: self.bins[index] for index in sorted(self.bins) if self.bins[index]}
        self.negative = {index: self.negative[index] for index in sorted(self.negative) if self.negative[index]}


@dataclass
class Sums:
    """Keys start with the scope; buckets are seconds since 1970."""

    hours: dict[tuple[Scope, int], Counts] = field(default_factory=dict)
    cells: dict[tuple[Scope, int, CellContent], Counts] = field(default_factory=dict)
    failures: dict[tuple[Scope, int, CellContent, SignatureContent], int] = field(default_factory=dict)
    values: dict[tuple[Scope, int, str, str, str], ValueSum] = field(default_factory=dict)
    sessions: dict[tuple[Scope, int, str], Counts] = field(default_factory=dict)
    contracts: dict[tuple[Scope, int, int], int] = field(default_factory=dict)

    def add(self, other: Sums, sign: int = 1) -> None:
        _add_counts(self.hours, other.hours, sign)
        _add_counts(self.cells, other.cells, sign)
        _add_counts(self.sessions, other.sessions, sign)
        _add_numbers(self.failures, other.failures, sign)
        _add_numbers(self.contracts, other.contracts, sign)
        for key, value in other.values.items():
            self.values.setdefault(key, ValueSum()).add(value, sign)

    def deployments(self) -> set[int]:
        """The deployments whose real episodes are among these."""
        return {scope[3] for scope, _ in self.hours if scope[0] == "real"}


def _add_counts(into: dict[Key, Counts], other: Mapping[Key, Counts], sign: int) -> None:
    for key, counts in other.items():
        mine = into.setdefault(key, [0] * len(counts))
        for place, count in enumerate(counts):
            mine[place] += sign * count


def _add_numbers(into: dict[Key, int], other: Mapping[Key, int], sign: int) -> None:
    for key, count in other.items():
        into[key] = into.get(key, 0) + sign * count
