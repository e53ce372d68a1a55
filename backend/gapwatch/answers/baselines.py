"""Which simulator is the baseline, and which part of a filter acts on it: one rule for one and for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gapwatch.store.read.sides import Cell, CellFilter

Why = Literal["named", "pinned", "most episodes"]


@dataclass(frozen=True)
class Choice:
    simulator_id: int
    why: Why


def choose(
    counts: Mapping[int, int],
    simulators: Mapping[int, tuple[str, str]],
    named: Sequence[str],
    pinned: int | None,
) -> Choice | None:
    """The one that was named (of several, the one with the most episodes), else the pinned one, else the most.

    `counts` are the episodes of each simulator over all time, so that the choice does not depend on a window.
    """
    ranked = sorted((i for i, n in counts.items() if n), key=lambda i: (-counts[i], i))
    if named:
        ranked = [i for i in ranked if is_named(simulators[i], named)]
        return Choice(ranked[0], "named") if ranked else None
    if pinned is not None:
        return Choice(pinned, "pinned")
    return Choice(ranked[0], "most episodes") if ranked else None


def is_named(simulator: tuple[str, str], named: Sequence[str]) -> bool:
    name, version = simulator
    return name in named or f"{name}@{version}" in named


def on_sim(wanted: CellFilter, cells: Iterable[Cell]) -> CellFilter:
    """Robot, site and stage restrict sim only where its episodes name any: most simulators have no site."""
    if wanted.is_open:
        return wanted
    known = list(cells)
    return replace(
        wanted,
        robots=wanted.robots if any(cell.robot is not None for cell in known) else frozenset(),
        sites=wanted.sites if any(cell.site is not None for cell in known) else frozenset(),
        stages=wanted.stages if any(cell.stage is not None for cell in known) else frozenset(),
    )
