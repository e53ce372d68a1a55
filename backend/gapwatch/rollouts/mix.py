"""The mix of conditions of a reference: frozen with the plan, and held against that of the stage's episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapwatch.rollouts.stage_record import Outcomes, StageRecord, reference_of
from gapwatch.statistics.gates.criteria import Reference
from gapwatch.statistics.gates.mix import in_mix_of
from gapwatch.watching.sim_mix import SimCell, SimMix, sim_mix


def frozen_mix(cells: Sequence[SimCell]) -> dict[str, Any]:
    """The conditions that matter in simulation, its counts under each of their levels, and the levels it has."""
    mix = sim_mix(cells)
    counts: dict[tuple[str, ...], tuple[int, int]] = {}
    for cell in cells:
        whole = tuple(cell.levels.get(name, "") for name in mix.conditions)
        for length in range(1, len(whole) + 1):
            successes, n = counts.get(whole[:length], (0, 0))
            counts[whole[:length]] = (successes + cell.successes, n + cell.n)
    return {
        "conditions": list(mix.conditions),
        "cells": [
            {"levels": list(key), "successes": counts[key][0], "n": counts[key][1]} for key in sorted(mix.shifts)
        ],
        "levels": {name: sorted(known) for name, known in sorted(mix.levels.items())},
    }


@dataclass(frozen=True)
class Compared:
    """A reference in the mix of the stage's episodes; `unknown`: those that simulation has nothing for.

    `rates`: what it did under the conditions of each, None where no condition matters.
    """

    reference: Reference
    rates: Outcomes | None
    unknown: NDArray[np.bool_]
    # The level that most of them have, as `light=dim`.
    unknown_level: str | None


def compared(record: StageRecord) -> Compared | None:
    """None where there is no reference."""
    whole = reference_of(record.plan)
    if whole is None:
        return None
    frozen: Mapping[str, Any] | None = record.plan["reference"].get("mix")
    if frozen is None:
        return Compared(whole, None, np.zeros(len(record.rows), dtype=bool), None)
    known = SimMix(levels={name: frozenset(levels) for name, levels in frozen["levels"].items()})
    places = {tuple(cell["levels"]): place for place, cell in enumerate(frozen["cells"])}
    # Episodes come in few sets of conditions, so each set is looked up once.
    by_set: dict[int | None, tuple[int, str | None]] = {}
    for row in record.rows:
        if row.condition_set_id not in by_set:
            levels = record.levels_of(row)
            by_set[row.condition_set_id] = (
                _place(places, frozen["conditions"], levels),
                known.missing(levels),
            )
    found = [by_set[row.condition_set_id] for row in record.rows]
    missing = Counter(level for _, level in found if level is not None)
    unknown = np.array([level is not None for _, level in found], dtype=bool)
    cells = [Reference(cell["successes"], cell["n"]) for cell in frozen["cells"]]
    if not cells:
        return Compared(whole, None, unknown, max(missing, key=missing.__getitem__, default=None))
    reference, rates = in_mix_of(whole, cells, [place for place, _ in found])
    return Compared(reference, rates, unknown, max(missing, key=missing.__getitem__, default=None))


def _place(places: Mapping[tuple[str, ...], int], conditions: Sequence[str], levels: Mapping[str, str]) -> int:
    """The narrowest cell that simulation knows; −1 for none."""
    key = tuple(levels.get(name, "") for name in conditions)
    while key and key not in places:
        key = key[:-1]
    return places.get(key, -1)
