"""Sums by hour and day as the rows of each rollup table: hours, days and months, keyed by content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gapwatch.tally.sums import DAY_S, Counts, Measured, Sums, month_of
from gapwatch.tally.values import NamedValues, add_values

Rows = dict[tuple[Any, ...], Counts]


def count_rows(sums: Sums) -> dict[str, Rows]:
    """By table: (*scope, tier, bucket, …) → what is added. Cells and signatures stand with their content."""
    names = ("counts", "cells", "places", "failures", "sessions", "contracts")
    rows: dict[str, Rows] = {f"rollup_{name}": {} for name in names}
    for (scope, hour), counts in sums.hours.items():
        for tier, bucket in (("hour", hour), *_tiers(hour - hour % DAY_S)):
            _add(rows["rollup_counts"], (*scope, tier, bucket), counts)
    cells, places, failures = rows["rollup_cells"], rows["rollup_places"], rows["rollup_failures"]
    for (scope, day, cell), counts in sums.cells.items():
        cells[*scope, "day", day, cell] = counts
        _add(cells, (*scope, "month", month_of(day), cell), counts)
        if scope[0] == "real":
            _add(places, (*scope, day, cell[0] or 0, cell[1] or 0), counts)
    for (scope, day, cell, signature), count in sums.failures.items():
        failures[*scope, "day", day, cell, signature] = [count]
        _add(failures, (*scope, "month", month_of(day), cell, signature), [count])
    for (scope, day, session), counts in sums.sessions.items():
        _add(rows["rollup_sessions"], (*scope, day, session), counts)
    for (scope, day, contract), count in sums.contracts.items():
        for tier, bucket in _tiers(day):
            _add(rows["rollup_contracts"], (*scope, tier, bucket, contract), [count])
    return {table: {key: counts for key, counts in found.items() if any(counts)} for table, found in rows.items()}


def value_rows(values: Measured) -> Iterator[dict[tuple[Any, ...], NamedValues]]:
    """(*scope, kind, outcome, tier, bucket) → moments and bins by name; the days and months of one scope, kind and
    outcome at a time, because all of them together take several times the memory of the sums.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for scope, day, kind, outcome in values:
        groups.setdefault((scope, kind, outcome), []).append(day)
    for (scope, kind, outcome), days in groups.items():
        rows: dict[tuple[Any, ...], NamedValues] = {}
        for day in days:
            for tier, bucket in _tiers(day):
                into = rows.setdefault((*scope, kind, outcome, tier, bucket), {})
                add_values(into, values[scope, day, kind, outcome])
        yield rows


def _tiers(day: int) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("day", day), ("month", month_of(day))


def _add(into: Rows, key: tuple[Any, ...], counts: Counts) -> None:
    mine = into.get(key)
    if mine is None:
        into[key] = list(counts)
        return
    for place, count in enumerate(counts):
        mine[place] += count
