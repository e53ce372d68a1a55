"""What a number of episodes adds to the rollups: plain integers in dictionaries, the same in any order."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from gapwatch.tally.values import NamedValues, add_values

# ((condition, level), …)
Levels: TypeAlias = tuple[tuple[str, str], ...]


class EpisodeGroup(NamedTuple):
    """The source is the simulator of sim episodes and the deployment of the others."""

    domain: str
    policy_id: int
    task_id: int
    source_id: int


class CellContent(NamedTuple):
    robot_id: int | None
    site_id: int | None
    stage: str | None
    levels: Levels


class Signature(NamedTuple):
    """What was said of a failure."""

    phase: str | None
    labels: tuple[str, ...]
    category: str | None


Counts: TypeAlias = list[int]
# (scope, day, kind, outcome) → moments and bins by name
Measured: TypeAlias = dict[tuple[EpisodeGroup, int, str, str], NamedValues]

Key = TypeVar("Key", bound=Hashable)

DAY_S = 86400
OUTCOME_INDEX = {"success": 0, "failure": 1, "aborted": 2, "abandoned": 3}
JUDGED = ("success", "failure")


@lru_cache(maxsize=4096)
def month_of(day: int) -> int:
    """The start of the month of a day; both in seconds since 1970."""
    at = datetime.fromtimestamp(day, UTC)
    return int(at.replace(day=1).timestamp())


@dataclass
class Sums:
    """Keys start with the scope; buckets are seconds since 1970. Values go on with the kind and the outcome."""

    hours: dict[tuple[EpisodeGroup, int], Counts] = field(default_factory=dict)
    cells: dict[tuple[EpisodeGroup, int, CellContent], Counts] = field(default_factory=dict)
    failures: dict[tuple[EpisodeGroup, int, CellContent, Signature], int] = field(default_factory=dict)
    values: Measured = field(default_factory=dict)
    sessions: dict[tuple[EpisodeGroup, int, str], Counts] = field(default_factory=dict)
    contracts: dict[tuple[EpisodeGroup, int, int], int] = field(default_factory=dict)

    def add(self, other: Sums, sign: int = 1) -> None:
        _add_counts(self.hours, other.hours, sign)
        _add_counts(self.cells, other.cells, sign)
        _add_counts(self.sessions, other.sessions, sign)
        _add_numbers(self.failures, other.failures, sign)
        _add_numbers(self.contracts, other.contracts, sign)
        add_named(self.values, other.values, sign)

    def leave_out(self, left_out: Mapping[tuple[int, int], Collection[str]]) -> None:
        """Cells without the conditions that are left out, by policy and task; those that become one are added."""
        counted, failed = self.cells, self.failures
        self.cells, self.failures = {}, {}
        for (scope, day, cell), counts in counted.items():
            rest = without(left_out.get((scope.policy_id, scope.task_id), ()), cell)
            _add_counts(self.cells, {(scope, day, rest): counts}, 1)
        for (scope, day, cell, signature), count in failed.items():
            rest = without(left_out.get((scope.policy_id, scope.task_id), ()), cell)
            _add_numbers(self.failures, {(scope, day, rest, signature): count}, 1)

    def deployments(self) -> set[int]:
        """The deployments whose episodes are among these."""
        return {scope.source_id for scope, _ in self.hours if scope.domain != "sim"}


def add_named(into: Measured, other: Measured, sign: int) -> None:
    for key, values in other.items():
        add_values(into.setdefault(key, {}), values, sign)


def without(names: Collection[str], cell: CellContent) -> CellContent:
    """A cell that some conditions are left out of."""
    return cell._replace(levels=tuple(pair for pair in cell.levels if pair[0] not in names))


def _add_counts(into: dict[Key, Counts], other: Mapping[Key, Counts], sign: int) -> None:
    for key, counts in other.items():
        totals = into.setdefault(key, [0] * len(counts))
        for index, count in enumerate(counts):
            totals[index] += sign * count


def _add_numbers(into: dict[Key, int], other: Mapping[Key, int], sign: int) -> None:
    for key, count in other.items():
        into[key] = into.get(key, 0) + sign * count
