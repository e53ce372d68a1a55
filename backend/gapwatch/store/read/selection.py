"""Which episodes a statistic speaks of: a side, a window, a filter; and a window as buckets and edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from gapwatch.levels import MISSING, number_range

Domain = Literal["sim", "real"]
Range = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class Window:
    """Since (inclusive) until (exclusive); None is open."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Scope:
    """One side. The source is the deployment of real episodes and the simulator of sim ones; None means all."""

    domain: Domain
    policy_ids: tuple[int, ...]
    task_ids: tuple[int, ...] | None = None
    source_ids: tuple[int, ...] | None = None

    def parameters(self) -> dict[str, Any]:
        return {
            "domain": self.domain,
            "policies": _one_or_all(self.policy_ids),
            "tasks": _one_or_all(self.task_ids),
            "sources": _one_or_all(self.source_ids),
        }

    def holds(self, domain: str, policy_id: int, task_id: int, source_id: int) -> bool:
        return (
            domain == self.domain
            and policy_id in self.policy_ids
            and (self.task_ids is None or task_id in self.task_ids)
            and (self.source_ids is None or source_id in self.source_ids)
        )

    def contains(self, other: Scope) -> bool:
        """Whether every episode of the other is one of this."""
        return (
            other.domain == self.domain
            and set(other.policy_ids) <= set(self.policy_ids)
            and _covers(self.task_ids, other.task_ids)
            and _covers(self.source_ids, other.source_ids)
        )

    def clauses(self, table: str = "") -> str:
        """Which rows of a rollup, or with the alias of `episodes` which of these; parameters as `%(name)s`."""
        source = "source_id"
        if table:
            source = "deployment_id" if self.domain == "real" else "simulator_id"
        at = f"{table}." if table else ""
        parts = [f"{at}domain = %(domain)s", _among(f"{at}policy_id", "policies", self.policy_ids)]
        if self.task_ids is not None:
            parts.append(_among(f"{at}task_id", "tasks", self.task_ids))
        if self.source_ids is not None:
            parts.append(_among(f"{at}{source}", "sources", self.source_ids))
        return " AND ".join(parts)


Selection = tuple[Scope, Window]


def _among(column: str, name: str, ids: tuple[int, ...]) -> str:
    """Equality for a single id: Postgres then reads the index in order, and a LIMIT ends the scan early."""
    return f"{column} = %({name})s" if len(ids) == 1 else f"{column} = ANY(%({name})s)"


def _one_or_all(ids: tuple[int, ...] | None) -> int | list[int] | None:
    return None if ids is None else ids[0] if len(ids) == 1 else list(ids)


def _covers(wide: tuple[int, ...] | None, narrow: tuple[int, ...] | None) -> bool:
    return wide is None or (narrow is not None and set(narrow) <= set(wide))


class Cell(NamedTuple):
    """What a group of episodes has in common; a condition that is not in `levels` was not given."""

    robot: str | None
    site: str | None
    stage: str | None
    levels: Mapping[str, str]


@dataclass(frozen=True)
class CellFilter:
    """Which cells are meant: any of the values of each field given; a condition value "" means not given."""

    robots: frozenset[str] = frozenset()
    sites: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()
    conditions: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return not (self.robots or self.sites or self.stages or self.conditions)

    def matches(self, cell: Cell) -> bool:
        return (
            (not self.robots or cell.robot in self.robots)
            and (not self.sites or cell.site in self.sites)
            and (not self.stages or cell.stage in self.stages)
            and all(
                cell.levels.get(name, "") in levels or (MISSING in levels and name not in cell.levels)
                for name, levels in self.conditions.items()
            )
        )

    def clauses(self) -> tuple[str, dict[str, Any]]:
        """The same for stored episodes `e`, each clause with AND in front."""
        clauses: list[str] = []
        parameters: dict[str, Any] = {}
        for column, table, names in (("robot_id", "robots", self.robots), ("site_id", "sites", self.sites)):
            if names:
                clauses.append(
                    f"e.{column} IN (SELECT id FROM {table} WHERE project_id = e.project_id"  # noqa: S608
                    f" AND name = ANY(%({table})s))"
                )
                parameters[table] = sorted(names)
        if self.stages:
            clauses.append("e.stage = ANY(%(stages)s)")
            parameters["stages"] = sorted(self.stages)
        for number, (name, levels) in enumerate(sorted(self.conditions.items())):
            clause, own = _condition(number, name, levels)
            clauses.append(clause)
            parameters |= own
        return "".join(f" AND {clause}" for clause in clauses), parameters


def _condition(number: int, name: str, levels: frozenset[str]) -> tuple[str, dict[str, Any]]:
    """Words stand in the episode's condition set, numbers against its list of names."""
    parameters: dict[str, Any] = {f"condition_{number}": name, f"levels_{number}": sorted(levels)}
    word = (
        f"(SELECT cs.levels ->> %(condition_{number})s FROM condition_sets cs"  # noqa: S608
        " WHERE cs.project_id = e.project_id AND cs.id = e.condition_set_id)"
    )
    value = (
        f"e.numbers[(SELECT array_position(nn.names, %(condition_{number})s) FROM name_sets nn"  # noqa: S608
        " WHERE nn.project_id = e.project_id AND nn.id = e.number_names_id)]"
    )
    alternatives = [f"{word} = ANY(%(levels_{number})s)"]
    for index, level in enumerate(sorted(levels)):
        bounds = number_range(level)
        if bounds is not None:
            low, high = f"low_{number}_{index}", f"high_{number}_{index}"
            # A bin has its smaller size and not its larger: [2, 5), and below zero (-5, -2].
            signs = (">=", "<=") if bounds[0] == bounds[1] else (">=", "<") if bounds[0] >= 0 else (">", "<=")
            alternatives.append(f"({value} {signs[0]} %({low})s AND {value} {signs[1]} %({high})s)")
            parameters |= {low: bounds[0], high: bounds[1]}
    if levels & {"", MISSING}:
        alternatives.append(f"({word} IS NULL AND {value} IS NULL)")
    return f"({' OR '.join(alternatives)})", parameters


@dataclass(frozen=True)
class Parts:
    """A window as whole months, whole days, and what is left at its ends."""

    months: Range | None
    days: tuple[Range, ...]
    edges: tuple[tuple[datetime, datetime], ...]


def split(window: Window) -> Parts:
    since, until = window.since, window.until
    first = None if since is None else _day_up(since)
    last = None if until is None else _day(until)
    if since is not None and until is not None and first is not None and last is not None and first >= last:
        return Parts(None, (), ((since, until),) if since < until else ())
    edges = []
    if since is not None and first is not None and since < first:
        edges.append((since, first))
    if until is not None and last is not None and last < until:
        edges.append((last, until))
    month, end = None if first is None else _month_up(first), None if last is None else _month(last)
    if month is not None and end is not None and month >= end:
        return Parts(None, ((first, last),), tuple(edges))
    days: list[Range] = []
    if first is not None and month is not None and first < month:
        days.append((first, month))
    if last is not None and end is not None and end < last:
        days.append((end, last))
    return Parts((month, end), tuple(days), tuple(edges))


def whole_days(window: Window) -> Window | None:
    """The whole days of a window, for a table that has no months; None where it has none."""
    parts = split(window)
    if parts.months is None and not parts.days:
        return None
    whole = [*([parts.months] if parts.months else []), *parts.days]
    first = None if any(start is None for start, _ in whole) else min(start for start, _ in whole if start)
    last = None if any(end is None for _, end in whole) else max(end for _, end in whole if end)
    return Window(first, last)


def bucket_clauses(parts: Parts) -> tuple[str, dict[str, Any]]:
    """The buckets of a window in a table with day and month tiers."""
    ranges = [("month", parts.months)] if parts.months else []
    ranges += [("day", days) for days in parts.days]
    clauses, parameters = [], {}
    for number, (tier, (start, end)) in enumerate(ranges):
        clause = f"tier = '{tier}'"
        if start is not None:
            clause += f" AND bucket_at >= %(start_{number})s"
            parameters[f"start_{number}"] = start
        if end is not None:
            clause += f" AND bucket_at < %(end_{number})s"
            parameters[f"end_{number}"] = end
        clauses.append(f"({clause})")
    return f"({' OR '.join(clauses)})" if clauses else "false", parameters


def time_clauses(window: Window, column: str = "e.started_at") -> tuple[str, dict[str, Any]]:
    clauses, parameters = "", {}
    if window.since is not None:
        clauses += f" AND {column} >= %(since)s"
        parameters["since"] = window.since
    if window.until is not None:
        clauses += f" AND {column} < %(until)s"
        parameters["until"] = window.until
    return clauses, parameters


def _day(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _day_up(at: datetime) -> datetime:
    return _day(at) if at == _day(at) else _day(at) + timedelta(days=1)


def _month(at: datetime) -> datetime:
    return _day(at).replace(day=1)


def _month_up(at: datetime) -> datetime:
    return at if at == _month(at) else _month(_month(at) + timedelta(days=32))
