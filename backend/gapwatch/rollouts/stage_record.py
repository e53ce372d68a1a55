"""What a gate is judged by: the episodes of a stage and what surrounds them, as one read found it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import level_of
from gapwatch.statistics.estimates.rates import FEWEST_SESSIONS, SessionSums
from gapwatch.statistics.gates.criteria import Reference
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout.evidence import (
    MOST_EPISODES,
    Evidenced,
    EvidenceRow,
    StageContracts,
    Surrounding,
    condition_levels,
    number_names,
    stage_contracts,
    stage_episodes,
    surrounding,
)
from gapwatch.store.rollout.rollouts import Rollout

Outcomes = NDArray[np.float64]


@dataclass(frozen=True)
class StageRecord:
    """Everything that a gate is judged by, as one read found it."""

    rollout: Rollout
    rows: Sequence[EvidenceRow]
    around: Surrounding
    contracts: StageContracts
    levels: Mapping[int, Mapping[str, Any]]
    names: Mapping[int, Sequence[str]] = field(default_factory=dict)
    most: int = MOST_EPISODES

    @property
    def plan(self) -> dict[str, Any]:
        assert self.rollout.plan is not None  # noqa: S101 - only rollouts with a plan are read
        return self.rollout.plan

    def levels_of(self, row: EvidenceRow) -> dict[str, str]:
        """Its categories as levels."""
        return {name: level_of(value) for name, value in self.levels.get(row.condition_set_id or 0, {}).items()}

    def conditions_of(self, row: EvidenceRow) -> dict[str, str]:
        """Its categories and numbers as levels."""
        numbers = zip(self.names.get(row.number_names_id or 0, ()), row.numbers or (), strict=False)
        return self.levels_of(row) | {name: level_of(value) for name, value in numbers}


def meant_by(rollout: Rollout, until: datetime | None = None, last_seq: int | None = None) -> Evidenced:
    assert rollout.frozen_at is not None  # noqa: S101 - only rollouts with a plan are asked
    policy = rollout.policy
    return Evidenced(
        rollout.deployment_id, rollout.stage, policy.name, policy.version, rollout.frozen_at, until, last_seq
    )


def read_record(
    connection: Connection, project_id: int, rollout: Rollout, most: int = MOST_EPISODES
) -> StageRecord:
    meant = replace(meant_by(rollout), most=most)
    rows = stage_episodes(connection, project_id, meant)
    return StageRecord(
        rollout,
        rows,
        surrounding(connection, project_id, meant),
        stage_contracts(connection, project_id, meant),
        condition_levels(connection, project_id, rows),
        number_names(connection, project_id, rows),
        most,
    )


def successes(rows: Sequence[EvidenceRow]) -> Outcomes:
    """An attempt that was aborted or abandoned has not succeeded: nothing may pass by not ending."""
    return np.array([float(row.outcome == "success") for row in rows])


def reference_of(plan: dict[str, Any]) -> Reference | None:
    frozen = plan.get("reference")
    return None if not frozen else Reference(int(frozen["successes"]), int(frozen["n"]))


def cells_of(record: StageRecord, criterion: dict[str, Any]) -> list[tuple[dict[str, str], int]]:
    """Every planned cell, and how many episodes of the stage were in it."""
    conditions: dict[str, list[str]] = criterion["conditions"]
    seen: dict[tuple[str, ...], int] = {}
    for row in record.rows:
        levels = record.conditions_of(row)
        key = tuple(levels.get(name, "") for name in conditions)
        seen[key] = seen.get(key, 0) + 1
    return [
        (dict(zip(conditions, cell, strict=True)), seen.get(cell, 0)) for cell in product(*conditions.values())
    ]


def design_effect(rows: Sequence[EvidenceRow], values: Outcomes) -> float:
    """How many episodes are worth one, where they come in five or more sessions of several."""
    sums: dict[str, tuple[float, int]] = {}
    alone, total_alone = 0, 0.0
    for row, value in zip(rows, values.tolist(), strict=True):
        if row.session is None:
            alone, total_alone = alone + 1, total_alone + value
        else:
            total, n = sums.get(row.session, (0.0, 0))
            sums[row.session] = (total + value, n + 1)
    if len(sums) < FEWEST_SESSIONS or all(n == 1 for _, n in sums.values()):
        return 1.0
    together = SessionSums()
    for total, n in sums.values():
        together.add(total, n)
    if alone:
        together.add_alone(total_alone, alone)
    return max(1.0, together.likeness().design_effect)
